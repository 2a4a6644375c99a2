// Parameters and options of Open MPI's mpirun.
#include "tandem/comm/launch/mpirun.h"

#include "tandem/core/number_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace tandem::comm {

namespace {

enum class Kind { binding, mapping, cores };

struct Setting {
  std::string_view name;
  Kind kind;
};

/// MCA parameters: of Open MPI 4, then of PRRTE.
constexpr std::array kParameters{
    Setting{"hwloc_base_binding_policy", Kind::binding},    Setting{"rmaps_base_mapping_policy", Kind::mapping},
    Setting{"rmaps_base_cpus_per_rank", Kind::cores},       Setting{"hwloc_base_cpu_set", Kind::cores},
    Setting{"hwloc_default_binding_policy", Kind::binding}, Setting{"rmaps_default_mapping_policy", Kind::mapping},
    Setting{"hwloc_default_cpu_list", Kind::cores}};

/// Options of mpirun, without their dashes.
constexpr std::array kOptions{Setting{"bind-to", Kind::binding},     Setting{"map-by", Kind::mapping},
                              Setting{"cpus-per-proc", Kind::cores}, Setting{"cpus-per-rank", Kind::cores},
                              Setting{"cpu-set", Kind::cores},       Setting{"cpu-list", Kind::cores},
                              Setting{"rankfile", Kind::cores},      Setting{"rf", Kind::cores},
                              Setting{"bind-to-core", Kind::cores},  Setting{"bind-to-socket", Kind::cores}};

constexpr std::array<std::string_view, 4> kParameterOptions{"mca", "gmca", "prtemca", "gprtemca"};
constexpr std::array<std::string_view, 2> kParameterPrefixes{"OMPI_MCA_", "PRTE_MCA_"};

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

/// Whether a setting with this value says on which cores ranks are to run. Binding "none" does not, nor does a mapping
/// of modifiers alone, like ":oversubscribe", unless PE=N or PE-LIST=... is among them.
bool asks(Kind kind, std::string_view value) {
  const std::string text = lower_case(value);
  if (kind == Kind::binding) return text != "none";
  if (kind == Kind::mapping) return !text.starts_with(':') || text.find(":pe") != std::string::npos;
  return true;
}

template <typename Settings>
bool asks(const Settings& settings, std::string_view name, std::string_view value) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return setting.name == name && asks(setting.kind, value); });
}

bool asks_by_environment(const std::string& variable) {
  const std::size_t equals = variable.find('=');
  if (equals == std::string::npos) return false;
  const std::string_view name = std::string_view(variable).substr(0, equals);
  for (const std::string_view prefix : kParameterPrefixes) {
    if (name.starts_with(prefix)) return asks(kParameters, name.substr(prefix.size()), variable.substr(equals + 1));
  }
  return false;
}

struct Option {
  std::string_view name;         // without dashes
  std::string_view value, next;  // the two words that follow, or the text after "=" and the word that follows
};

/// The options among mpirun's words. The program's own are among them, too: one that looks like mpirun's counts as
/// that.
std::vector<Option> options_of(const std::vector<std::string>& words) {
  std::vector<Option> options;
  const auto word = [&](std::size_t i) { return i < words.size() ? std::string_view(words[i]) : std::string_view(); };
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t dashes = std::min<std::size_t>(word(i).find_first_not_of('-'), word(i).size());
    if (dashes != 1 && dashes != 2) continue;
    const std::string_view text = word(i).substr(dashes);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos)
      options.push_back({text, word(i + 1), word(i + 2)});
    else
      options.push_back({text.substr(0, equals), text.substr(equals + 1), word(i + 1)});
  }
  return options;
}

bool asks_by_option(const Option& option) {
  if (asks(kOptions, option.name, option.value)) return true;
  const bool sets_parameter =
      std::find(kParameterOptions.begin(), kParameterOptions.end(), option.name) != kParameterOptions.end();
  return sets_parameter && asks(kParameters, option.value, option.next);
}

template <typename Items, typename Condition>
bool any(const Items& items, Condition condition) {
  return std::any_of(items.begin(), items.end(), condition);
}

}  // namespace

bool is_default_binding(const EnvironmentLookup& lookup, const ProcessCall& launcher) {
  const bool by_orte = lookup("OMPI_MCA_orte_launch") != nullptr, by_prrte = lookup("PRTE_LAUNCHED") != nullptr;
  const char* const ranks = lookup("OMPI_COMM_WORLD_SIZE");
  if (!(by_orte || by_prrte) || ranks == nullptr || parse_number<int>(ranks).value_or(0) > 2)
    return false;  // of more it makes better use
  for (const Setting& parameter : kParameters) {
    for (const std::string_view prefix : kParameterPrefixes) {
      const char* const value = lookup((std::string(prefix) + std::string(parameter.name)).c_str());
      if (value != nullptr && asks(parameter.kind, value)) return false;
    }
  }
  return by_orte ||
         !(any(options_of(launcher.words), asks_by_option) || any(launcher.environment, asks_by_environment));
}

bool ends_all_ranks_on_failure(const EnvironmentLookup& lookup, const ProcessCall& launcher) {
  if (lookup("OMPI_MCA_orte_launch") != nullptr) return lookup("OMPI_MCA_orte_abort_on_non_zero_status") == nullptr;
  if (lookup("PRTE_LAUNCHED") == nullptr || launcher.words.empty()) return false;
  const std::string_view program = std::string_view(launcher.words[0]).substr(launcher.words[0].find_last_of('/') + 1);
  if (program != "prterun" && program != "mpirun" && program != "mpiexec") return false;
  const auto contains_any = [](std::string_view text, std::initializer_list<std::string_view> parts) {
    return any(parts, [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
  };
  const auto says_otherwise = [&](const Option& option) {
    return contains_any(option.name, {"runtime-options", "rtos", "recovery", "continuous", "max-restarts"}) ||
           contains_any(option.value, {"non_zero", "recover", "continuous"});
  };
  const auto variable_says_otherwise = [&](const std::string& variable) {
    return variable.starts_with("PRTE_MCA_") && contains_any(variable, {"non_zero", "recover", "continuous"});
  };
  return !any(options_of(launcher.words), says_otherwise) && !any(launcher.environment, variable_says_otherwise);
}

}  // namespace tandem::comm
