// A library that a process looks for once: what came of it.
#pragma once

#include "tandem/core/error.h"

#include <memory>
#include <string>

namespace tandem::kernels {

template <typename Interface>
struct FoundLibrary {
  std::unique_ptr<Interface> library;
  std::string problem;  // why there is none
};

/// The library that `make` returns, or the words of the Error that it throws.
template <typename Interface, typename Make>
FoundLibrary<Interface> find_library(Make&& make) {
  try {
    return {make(), ""};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

/// From here on an automatic choice takes the library: multiply-adds of an op. Smaller ones are over before it pays to
/// prepare a library for their sizes.
inline constexpr std::int64_t kLeastLibraryWork = std::int64_t{1} << 24;

}  // namespace tandem::kernels
