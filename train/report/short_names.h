// Names that have to be short where they stand, and must show what they differ by.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::train::report {

/// As they are, those that fit; the others without what they have in common, and where that is still too long without
/// their middle, "…" being what was left out. Different names stay different: where some would not, all are numbered by
/// their places, as in "3: …". Only such a name may be longer than what fits.
std::vector<std::string> short_names(const std::vector<std::string>& names,
                                     const std::function<bool(const std::string&)>& fits);

}  // namespace tandem::train::report
