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

/// Throws Error for a name that is neither a part's nor "all", and gives the parts that it names.
std::vector<PartEntry> parts_by_name(std::string_view name);

/// What a lesson shows.
enum class Chapter : std::uint8_t {
  step,        ///< one step in detail
  ring,        ///< an all-reduce on small numbers
  time,        ///< the exchange of gradients behind the backward pass, and beside it
  speed_up,    ///< what more ranks gain
  batch_size,  ///< larger batches
  broken       ///< what breaks when a part is left out
};

/// Throws Error for a name that is neither a chapter's nor "all", and gives the chapters that it names.
std::vector<Chapter> chapters_by_name(std::string_view name);

inline constexpr std::string_view kUsualNetwork = "alpha=100us beta=2.5Gbit";

/// Throws Error, naming the option, for words that are no network, and for one that the lesson cannot be timed on: it
/// must be for any number of hosts, lose nothing, and take 50 ms at most for a message of a mebibyte.
void check_network(std::string_view words);

struct LabOptions {
  int ranks = 4;
  int steps = 300;
  std::uint64_t seed = 1;
  std::vector<Chapter> chapters;
  std::vector<PartEntry> broken;  ///< of each a run without it
  std::string network = std::string(kUsualNetwork);
  std::string html_file;       ///< empty: none
  std::string picture_folder;  ///< empty: none

  bool shows(Chapter chapter) const;
};

}  // namespace tandem::sgd_lab
