// Reading, writing and making groups of parameters.
#include "parameter_groups.h"

#include "optimization.h"
#include "settings.h"

#include "tandem/autograd/variable.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tandem::apps {
namespace {

constexpr std::string_view kNone = "none", kExample = "*norm*.bias:lr-factor=64,weight-decay=0";
constexpr std::array<std::string_view, 6> kKeys{"lr-factor", "weight-decay",   "momentum",
                                                "schedule",  "schedule-steps", "freeze-step"};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end == text.npos ? 0 : end + 1)) {
    end = text.find_first_of(",;");
    pieces.push_back(trimmed(text.substr(0, end)));
  }
  return pieces;
}

double read_real(std::string_view key, std::string_view text, double below) {
  const std::optional<double> value = parse_number<double>(text);
  require(value && std::isfinite(*value) && *value >= 0.0 && *value < below, "{}={}: must be a number >= 0{}", key,
          text, below < std::numeric_limits<double>::infinity() ? fmt::format(" and below {}", below) : "");
  return *value;
}

std::int64_t read_steps(std::string_view key, std::string_view text, std::int64_t least) {
  const std::optional<std::int64_t> value = parse_number<std::int64_t>(text);
  require(value && *value >= least, "{}={}: must be a whole number of steps, {} or more", key, text, least);
  return *value;
}

void read_entry(GroupSettings& group, std::string_view key, std::string_view text,
                std::span<const std::string_view> schedules) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  if (key == "lr-factor") {
    group.lr_factor = read_real(key, text, kAny);
  } else if (key == "weight-decay") {
    group.weight_decay = read_real(key, text, kAny);
  } else if (key == "momentum") {
    group.momentum = read_real(key, text, 1.0);
  } else if (key == "schedule") {
    require(std::ranges::find(schedules, text) != schedules.end(), "{}", unknown_name("schedule", text, schedules));
    group.schedule = text;
  } else if (key == "schedule-steps") {
    group.schedule_steps = read_steps(key, text, 1);
  } else if (key == "freeze-step") {
    group.freeze_step = read_steps(key, text, 0);
  } else {
    fail("{}", unknown_name("key", key, kKeys));
  }
}

/// "lr x 64, weight decay 0", or "as all others".
std::string options_text(const GroupSettings& group) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (group.lr_factor != 1.0) add(fmt::format("lr x {}", group.lr_factor));
  if (group.weight_decay) add(fmt::format("weight decay {}", *group.weight_decay));
  if (group.momentum) add(fmt::format("momentum {}", *group.momentum));
  if (!group.schedule.empty()) add(fmt::format("schedule {}", group.schedule));
  if (group.schedule_steps) add(fmt::format("of {} steps", *group.schedule_steps));
  if (group.freeze_step) add(fmt::format("frozen from step {} on", *group.freeze_step));
  return text.empty() ? "as all others" : text;
}

std::string line_of(std::string_view heading, std::string_view what, const std::vector<Tensor>& parameters,
                    const std::string& options) {
  std::int64_t values = 0;
  for (const Tensor& parameter : parameters) values += parameter.numel();
  return fmt::format("  {:<8} {}: {} parameter{}, {} value{}{}\n", heading, what, parameters.size(),
                     parameters.size() == 1 ? "" : "s", with_separators(values), values == 1 ? "" : "s",
                     options.empty() ? "" : ": " + options);
}

/// Of a group with one of its own; null for others.
std::shared_ptr<const optim::Schedule> schedule_of(const Settings& settings, const GroupSettings& group,
                                                   std::int64_t steps_per_epoch) {
  if (group.schedule.empty()) return nullptr;
  Settings own = settings;
  own.schedule = group.schedule;
  if (!own.step_epochs) own.step_epochs = kDefaultStepEpochs;
  if (!own.step_factor) own.step_factor = kDefaultStepFactor;
  if (group.schedule_steps) {
    own.trainer.steps = *group.schedule_steps;
    own.final_lr_steps = 0;
  }
  if (group.schedule_steps || group.schedule == "one-cycle") {
    own.warmup_epochs = 0.0;
    own.warmup_steps = 0;
  }
  return make_schedule(own, steps_per_epoch);
}

/// Taken out of `parameters`, which are those that later patterns have left.
std::vector<Tensor> take_from(std::vector<Tensor>& parameters, const std::vector<Tensor>& wanted) {
  const auto is_wanted = [&](const Tensor& parameter) {
    return std::ranges::any_of(wanted, [&](const Tensor& other) { return other.is_same(parameter); });
  };
  std::vector<Tensor> taken;
  std::ranges::copy_if(parameters, std::back_inserter(taken), is_wanted);
  std::erase_if(parameters, is_wanted);
  return taken;
}

std::vector<Tensor> trained_of(std::vector<Tensor> parameters) {
  std::erase_if(parameters, [](const Tensor& parameter) { return !autograd::requires_grad(parameter); });
  return parameters;
}

/// Those that are trained of a pattern's parameters. Throws Error where there are none.
std::vector<Tensor> matching(const layers::Module& model, const std::string& pattern) {
  try {
    std::vector<Tensor> parameters = trained_of(model.parameters(pattern));
    require(!parameters.empty(), "'{}' matches only parameters that the model does not train; leave it out", pattern);
    return parameters;
  } catch (const Error& error) {
    fail("--param-group {}", error.what());
  }
}

}  // namespace

std::vector<GroupSettings> parse_parameter_groups(std::string_view text, std::span<const std::string_view> schedules) {
  if (trimmed(text) == kNone) return {};
  std::vector<GroupSettings> groups;
  std::vector<std::string_view> keys;
  for (std::string_view piece : pieces_of(text)) {
    if (const std::size_t colon = piece.find(':'); colon != std::string_view::npos) {
      groups.push_back({.pattern = std::string(trimmed(piece.substr(0, colon)))});
      keys.clear();
      require(!groups.back().pattern.empty(), "'{}' has no pattern of names before ':', as in {}", piece, kExample);
      piece = trimmed(piece.substr(colon + 1));
    }
    const std::size_t equals = piece.find('=');
    require(!groups.empty() && equals != std::string_view::npos, "'{}' is no PATTERN:KEY=VALUE,... such as {}", piece,
            kExample);
    const std::string_view key = trimmed(piece.substr(0, equals));
    require(std::ranges::find(keys, key) == keys.end(), "{} is given twice for {}; give it once", key,
            groups.back().pattern);
    keys.push_back(key);
    read_entry(groups.back(), key, trimmed(piece.substr(equals + 1)), schedules);
  }
  for (const GroupSettings& group : groups)
    require(!group.schedule_steps || !group.schedule.empty(), "{}: schedule-steps needs a schedule=NAME",
            group.pattern);
  return groups;
}

std::string to_string(const std::vector<GroupSettings>& groups) {
  if (groups.empty()) return std::string(kNone);
  std::string text;
  for (const GroupSettings& group : groups) {
    std::string entries;
    const auto add = [&](std::string_view key, const auto& value) {
      entries += fmt::format("{}{}={}", entries.empty() ? "" : ",", key, value);
    };
    if (group.weight_decay) add("weight-decay", *group.weight_decay);
    if (group.momentum) add("momentum", *group.momentum);
    if (!group.schedule.empty()) add("schedule", group.schedule);
    if (group.schedule_steps) add("schedule-steps", *group.schedule_steps);
    if (group.freeze_step) add("freeze-step", *group.freeze_step);
    const bool has_factor = group.lr_factor != 1.0 || entries.empty();
    if (has_factor) entries = fmt::format("lr-factor={}{}{}", group.lr_factor, entries.empty() ? "" : ",", entries);
    text += fmt::format("{}{}:{}", text.empty() ? "" : "; ", group.pattern, entries);
  }
  return text;
}

void check_parameter_groups(const Settings& s) {
  const optim::OptimizerEntry& optimizer = optim::find_optimizer(s.optimizer.name);
  for (const GroupSettings& group : s.groups)
    require(!group.momentum || optimizer.momentum, "--param-group {}: --optimizer {} has no momentum; leave it out",
            to_string({group}), optimizer.name);
}

std::string add_parameter_groups(const Settings& s, const layers::Module& model, optim::Optimizer& optimizer,
                                 std::int64_t steps_per_epoch) {
  if (s.groups.empty()) return "";
  std::vector<Tensor> rest = trained_of(optimizer.parameters());
  std::vector<std::vector<Tensor>> members(s.groups.size());
  for (std::size_t i = s.groups.size(); i-- > 0;) {
    const std::vector<Tensor> wanted = matching(model, s.groups[i].pattern);
    members[i] = take_from(rest, wanted);
    require(!members[i].empty(),
            "--param-group '{}': later patterns match all {} parameters that it does, and the last one counts; put the "
            "narrower pattern last",
            s.groups[i].pattern, wanted.size());
  }
  const std::int64_t steps = s.trainer.steps > 0 ? s.trainer.steps : s.trainer.epochs * steps_per_epoch;
  const bool ends_frozen = steps > 0 && rest.empty() && std::ranges::all_of(s.groups, [&](const GroupSettings& group) {
                             return group.freeze_step.value_or(steps) < steps;
                           });
  require(!ends_frozen, "--param-group {}: freezes all parameters before the run's {} steps end; leave some to train",
          to_string(s.groups), steps);
  std::string lines;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const GroupSettings& group = s.groups[i];
    lines += line_of(i == 0 ? "groups" : "", group.pattern, members[i], options_text(group));
    optimizer.add_group({.parameters = std::move(members[i]),
                         .lr_factor = group.lr_factor,
                         .weight_decay = group.weight_decay,
                         .momentum = group.momentum,
                         .schedule = schedule_of(s, group, steps_per_epoch),
                         .freeze_step = group.freeze_step});
  }
  return rest.empty() ? lines : lines + line_of("", "all others", rest, "");
}

}  // namespace tandem::apps
