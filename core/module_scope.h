// Which module of a network this thread computes, by its dotted name: kept for profiler ranges while somebody listens.
#pragma once

#include <string>
#include <string_view>

namespace tandem::detail {

/// "features.7"; "" outside of any module, or while nobody listens to ranges (profiler.h).
const std::string& module_path();

/// While it is there, this thread computes the part `name` of the module that it computed before.
class PartScope {
 public:
  explicit PartScope(std::string_view name);
  ~PartScope();
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

 private:
  std::string::size_type outer_length_;
};

/// While it is there, this thread works for the module of this path, wherever it was before: in a backward pass.
class PathScope {
 public:
  explicit PathScope(std::string path);
  ~PathScope();
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  std::string outer_;
};

}  // namespace tandem::detail
