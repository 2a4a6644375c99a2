// Environment variables, read through a function so that tests can put a table in their place.
#pragma once

#include <cstdlib>
#include <functional>

namespace tandem {

/// Reads the variable of a name; null if it is not set.
using EnvironmentLookup = std::function<const char*(const char*)>;

/// The process's own.
inline const char* environment_variable(const char* name) { return std::getenv(name); }

}  // namespace tandem
