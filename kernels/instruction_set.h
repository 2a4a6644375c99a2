// What the CPU's kernels were compiled for.
#pragma once

#include <string_view>

namespace tandem::kernels {

/// The vector instructions of this build of the kernels: "AVX-512", "AVX2", or "baseline" where it knows of none of
/// these. With TANDEM_SHARED and without TANDEM_NATIVE there are three builds of the library, and this is the one that
/// was loaded.
/// Example:
///     const std::string_view vectors = instruction_set();  // such as "AVX2"
std::string_view instruction_set();

}  // namespace tandem::kernels
