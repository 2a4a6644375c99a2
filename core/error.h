// The one exception type of the project, and the check that throws it.
// Example:
//     double mean_of(double sum, int count) {
//       require(count > 0, "mean_of: needs one value or more, got {}", count);
//       return sum / count;
//     }
//     const double mean = mean_of(6.0, 4);  // 1.5
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tandem {

/// A request that cannot be carried out: bad arguments, bad files, bad configuration. Its text is one line: what was
/// wrong, where (op, tensor, file, rank) and, where it can be known, what to do. Programs print it and end with exit
/// code 2.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a message shows of an argument: the argument itself, or what an overload for its type gives. A tensor's is one
/// line without the values (core/print.h).
template <typename T>
const T& in_message(const T& argument) {
  return argument;  // NOLINT(bugprone-return-const-ref-from-parameter): fail() has it until its message is made
}

/// Throws an Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(fmt::runtime(fmt::string_view(format)), in_message(args)...));
}

/// Throws an Error with a formatted message unless `condition` holds. The message is only formatted on failure.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    fail(format, std::forward<Args>(args)...);
}

}  // namespace tandem
