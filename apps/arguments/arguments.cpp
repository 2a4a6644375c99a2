// On top of CLI11, which splits the command line.
#include "apps/arguments/arguments.h"

#include "apps/arguments/help_layout.h"
#include "apps/arguments/program.h"
#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <span>
#include <type_traits>

namespace tandem::apps {
namespace {

/// What options are called elsewhere, too far off to be taken for slips.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"--dtype", "--precision"}, {"--learning-rate", "--lr"}, {"--gpu", "--device"}, {"--num-threads", "--threads"}};

constexpr std::string_view kEndOfOptions = "--";  // what follows are names, also those that begin with a dash

/// "" if the whole text is a number of this type, else what is wrong. `value`: the number.
template <typename T>
std::string problem_of(const std::string& text, std::string_view kind, T& value) {
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) return fmt::format("{} is too large or too small for {}", text, kind);
  return error == std::errc{} && read == end
             ? ""
             : fmt::format("'{}' is not {} such as {}", text, kind, std::is_integral_v<T> ? "12" : "0.5 or 1e-3");
}

/// `problem` may rewrite the text. In lists, CLI11 asks of each value by itself.
void expect(CLI::Option& option, const std::function<std::string(std::string&)>& problem,
            const std::string& description) {
  option.transform(CLI::Validator([problem](std::string& text) { return problem(text); }, description));
}

/// Throws Error where a flag is given another value than true or false. CLI11 takes numbers, too, and anything for
/// help.
void require_flag_values(const CLI::App& app, std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == argument.npos) continue;
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option == nullptr || option->get_items_expected_max() > 0) continue;
    require(value == "true" || value == "false", "{} = {}: a flag takes true or false", name, value);
  }
}

/// What CLI11 says of an option without its value and the like, in one line.
[[noreturn]] void fail_parsing(const CLI::ParseError& error) {
  const std::string what = error.what();
  const std::string option = what.substr(0, what.find(':'));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && option.size() < what.size()) {
    const bool too_many = what.find("received") != std::string::npos && what.find("received 0") == std::string::npos;
    fail("{} {}", option, too_many ? "is given more than once: give one" : "needs a value: --help tells which");
  }
  constexpr std::string_view kBadFlag = "Could not convert: ";  // numbers and texts have been checked before
  if (what.starts_with(kBadFlag)) fail("{}: a flag takes true or false", what.substr(kBadFlag.size()));
  fail("{}; --help tells what is taken", what);
}

/// Throws Error for what is no option of the program: "unknown option --layer: did you mean --layers?". `known`: with
/// their dashes.
[[noreturn]] void fail_unknown(std::span<const std::string> arguments, std::span<const std::string> known) {
  const auto dashed =
      std::find_if(arguments.begin(), arguments.end(), [](const std::string& text) { return text.starts_with('-'); });
  require(dashed != arguments.end(), "unexpected argument '{}': options begin with --, and flags take no value",
          arguments.front());
  const std::string written = dashed->substr(0, dashed->find('='));
  for (const auto& [theirs, ours] : kOtherNames)
    require(written != theirs || std::find(known.begin(), known.end(), ours) == known.end(),
            "unknown option {}: here it is called {}", theirs, ours);
  const std::string nearest = nearest_name(written, known);
  fail("unknown option {}: {}", written,
       nearest.empty() ? std::string("--help lists all options") : "did you mean " + nearest + "?");
}

/// "images..." for one or more of them, "[RUN...]" for any number.
std::string usage_of(const CLI::Option& option) {
  const std::string name = option.get_name(true) + (option.get_items_expected_max() > 1 ? "..." : "");
  return option.get_required() ? name : "[" + name + "]";
}

/// "2 to 1024" of "INT:2 to 1024", or "".
std::string range_of(std::string_view type) {
  const std::size_t colon = type.find(':');
  return colon == type.npos ? "" : std::string(type.substr(colon + 1));
}

/// What an option takes: "N" of "INT:2 to 1024".
std::string value_name_of(std::string_view type) {
  const std::string_view name = type.substr(0, type.find(':'));
  return std::string(name == "INT" ? "N" : name == "FLOAT" ? "NUMBER" : name);
}

/// A default without the brackets that CLI11 puts around lists.
std::string default_of(const CLI::Option& option) {
  const std::string text = option.get_default_str();
  return text.size() >= 2 && text.front() == '[' && text.back() == ']' ? text.substr(1, text.size() - 2) : text;
}

/// The lines of a help page about an option.
std::string entry_of(const CLI::Option& option, int columns) {
  if (option.get_name() == "--help" || option.check_lname("help"))
    return help_entry("-h, --help", "Print this page and stop", columns);
  const std::string type = option.get_items_expected_max() > 0 ? option.get_type_name() : "";
  std::string name = option.get_positional() ? usage_of(option) : option.get_name(), text = option.get_description();
  if (!type.empty() && !option.get_positional()) name += " " + value_name_of(type);
  if (option.get_required() && !option.get_positional()) text += " (required)";
  if (const std::string range = range_of(type); !range.empty()) text += fmt::format(" ({})", range);
  if (const std::string value = default_of(option); !value.empty()) text += fmt::format(" [{}]", value);
  return help_entry(name, text, columns);
}

}  // namespace

void expect_whole_number(CLI::Option& option, std::int64_t least, std::int64_t most) {
  expect(
      option,
      [least, most](std::string& text) {
        std::int64_t value = 0;
        std::string problem = problem_of(text, "a whole number", value);
        if (!problem.empty()) return problem;
        if (value < least || value > most) return fmt::format("{} is not between {} and {}", text, least, most);
        text = fmt::format("{}", value);  // CLI11 would take 010 for 8
        return problem;
      },
      fmt::format("{} to {}", least, most));
}

void expect_finite_number(CLI::Option& option) {
  expect(
      option,
      [](std::string& text) {
        double value = 0.0;
        const std::string problem = problem_of(text, "a number", value);
        if (!problem.empty()) return problem;
        return std::isfinite(value) && value >= 0.0 ? "" : fmt::format("{} must be at least 0, and finite", text);
      },
      "");
}

std::string with_flags(std::string_view text, std::pair<std::string_view, std::string_view> only) {
  constexpr std::string_view kOption = "option ";
  std::string result;
  for (std::size_t found = 0; (found = text.find(kOption)) != text.npos;) {
    result += text.substr(0, found);
    text.remove_prefix(found + kOption.size());
    const std::string_view name = text.substr(0, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    text.remove_prefix(name.size());
    if (!only.first.empty() && name != only.first) {
      result.append(kOption).append(name);
      continue;
    }
    std::string flag(only.first.empty() ? name : only.second);
    std::ranges::replace(flag, '_', '-');
    result += "--" + flag;
  }
  return result.append(text);
}

void require_path(std::string_view option, std::string_view path) {
  require(!path.empty(), "{}: the path is empty; name one, or leave the option out", option);
}

void expect_path(CLI::Option& option) {
  expect(
      option,
      [](std::string& text) { return text.empty() ? "the path is empty; name one, or leave the option out" : ""; }, "");
}

std::string printable(std::string_view text) {
  std::string visible;
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    visible += is_control ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  }
  return visible;
}

void require_printable(std::string_view text) {
  const std::string visible = printable(text);
  require(visible == text, "'{}': control characters are not taken, leave them out", visible);
}

bool read_arguments(CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  for (const std::string& argument : given) require_printable(argument);
  const std::vector<std::string> arguments(given.begin(), std::ranges::find(given, kEndOfOptions));
  require_flag_values(app, arguments);
  app.allow_extras();
  std::vector<std::string> known;
  for (CLI::Option* option : app.get_options()) {
    const bool is_open = option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
    if (is_open && option->get_items_expected_max() == 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    // Who asks for help may not know yet what the rest takes.
    if (std::ranges::find(arguments, "--help") != arguments.end()) return false;
    fail_parsing(error);
  }
  std::vector<std::string> extras = app.remaining();
  const auto end = std::ranges::find(extras, kEndOfOptions);
  if (end != extras.begin()) fail_unknown(std::span(extras.begin(), end), known);
  if (extras.size() > 1) fail("unexpected argument '{}': what follows -- is no option", extras[1]);
  return true;
}

std::string help_page(const CLI::App& app, const std::string& program, int columns) {
  std::string usage = fmt::format("Usage: {} [options]", program), positionals, others;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional()) usage += " " + usage_of(*option);
    (option->get_positional() ? positionals : others) += entry_of(*option, columns);
  }
  return fmt::format("{}\n{}\nOptions\n{}{}", help_paragraph(app.get_description(), columns),
                     help_paragraph(usage, columns), positionals, others);
}

bool parse_arguments(CLI::App& app, int argc, const char* const* argv) {
  if (read_arguments(app, argc, argv)) return true;
  fmt::print("{}", help_page(app, program_name(argv), help_columns()));
  return false;
}

}  // namespace tandem::apps
