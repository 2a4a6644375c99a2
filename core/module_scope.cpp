// The path is one text for each thread, made longer and shorter.
#include "tandem/core/module_scope.h"

#include "tandem/core/profiler.h"

#include <utility>

namespace tandem::detail {

namespace {

std::string& path_of_thread() {
  thread_local std::string path;
  return path;
}

}  // namespace

const std::string& module_path() { return path_of_thread(); }

PartScope::PartScope(std::string_view name) {
  std::string& path = path_of_thread();
  outer_length_ = path.size();
  if (listeners() == 0 || name.empty()) [[likely]]
    return;
  if (!path.empty()) path += '.';
  path += name;
}

PartScope::~PartScope() {
  std::string& path = path_of_thread();
  if (path.size() > outer_length_) path.resize(outer_length_);
}

PathScope::PathScope(std::string path) : outer_(std::exchange(path_of_thread(), std::move(path))) {}

PathScope::~PathScope() { path_of_thread() = std::move(outer_); }

}  // namespace tandem::detail
