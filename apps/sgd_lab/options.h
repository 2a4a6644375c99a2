// What one lesson is about.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::sgd_lab {

/// What synchronous SGD does beside plain SGD, and what a run may be without.
enum class Part : std::uint8_t {
  sync_init,  ///< rank 0's initial weights go to all ranks; without: each rank keeps those that it drew
  sync_grad,  ///< gradients are averaged over ranks; without: each rank uses its own
  sampler,    ///< ranks have different examples; without: all have those of rank 0
  order,      ///< ranks exchange buckets of gradients in one order; without: odd ranks do it the other way round
};

struct PartEntry {
  Part part;
  std::string_view name;
  std::string_view what_breaks;  ///< what is different in a run without it, as a sentence
};

std::span<const PartEntry> parts();

/// Throws Error for a name that is neither a part's nor "all", and gives the parts that it names.
std::vector<PartEntry> parts_by_name(std::string_view name);

struct LabOptions {
  int ranks = 4;
  int steps = 300;
  std::uint64_t seed = 1;
  std::vector<PartEntry> broken;  ///< of each a run without it
  std::string html_file;          ///< empty: none
};

}  // namespace tandem::sgd_lab
