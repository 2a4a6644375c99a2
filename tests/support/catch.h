// Catch2, version 2.13 or 3.x, whichever is installed.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 has it in the global namespace
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace tandem::test {

/// Matches a text that contains `part`; the matcher has another name in each Catch2 line.
#if __has_include(<catch2/catch_all.hpp>)
inline auto ContainsText(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
#else
inline auto ContainsText(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif

}  // namespace tandem::test
