#include "apps/sgd_lab/options.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <algorithm>

namespace tandem::sgd_lab {

namespace {

constexpr PartEntry kParts[] = {
    {Part::sync_init, "sync-init",
     "Each rank keeps the initial weights that it drew. Gradients are averaged, so that all ranks take the same steps, "
     "but from different places."},
    {Part::sync_grad, "sync-grad",
     "Each rank steps by its own gradient. Replicas begin equal and then go different ways: there are several runs of "
     "small batches rather than one of large batches."},
    {Part::sampler, "sampler",
     "All ranks have the examples of rank 0. Replicas stay equal, but each computes what the others compute: the batch "
     "is as small as that of one rank."},
    {Part::order, "order",
     "Odd ranks exchange the two buckets of gradients in the reverse order. Both are of the same size, so no operation "
     "fails, but gradients of different weights are averaged with each other."},
};

}  // namespace

std::span<const PartEntry> parts() { return kParts; }

std::vector<PartEntry> parts_by_name(std::string_view name) {
  if (name == "all") return {std::begin(kParts), std::end(kParts)};
  const auto* const found = std::ranges::find(kParts, name, &PartEntry::name);
  if (found != std::end(kParts)) return {*found};
  std::vector<std::string_view> names;
  for (const PartEntry& entry : kParts) names.push_back(entry.name);
  names.emplace_back("all");
  fail("--break: {}", unknown_name("part", name, names));
}

}  // namespace tandem::sgd_lab
