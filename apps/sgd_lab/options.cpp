#include "apps/sgd_lab/options.h"

#include "tandem/comm/transports/simulated/network_model.h"
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

struct ChapterEntry {
  Chapter chapter;
  std::string_view name;
};

constexpr ChapterEntry kChapters[] = {{Chapter::step, "step"},
                                      {Chapter::ring, "ring"},
                                      {Chapter::time, "time"},
                                      {Chapter::speed_up, "speed-up"},
                                      {Chapter::batch_size, "batch-size"},
                                      {Chapter::broken, "broken"}};

/// Those entries of a table that a name names: one, or all of them.
template <typename Entry>
std::vector<Entry> entries_by_name(std::span<const Entry> table, std::string_view name, std::string_view option,
                                   std::string_view what) {
  if (name == "all") return {table.begin(), table.end()};
  const auto found = std::ranges::find(table, name, &Entry::name);
  if (found != table.end()) return {*found};
  std::vector<std::string_view> names;
  for (const Entry& entry : table) names.push_back(entry.name);
  names.emplace_back("all");
  fail("{}: {}", option, unknown_name(what, name, names));
}

}  // namespace

std::vector<PartEntry> parts_by_name(std::string_view name) {
  return entries_by_name(std::span<const PartEntry>(kParts), name, "--break", "part");
}

std::vector<Chapter> chapters_by_name(std::string_view name) {
  std::vector<Chapter> chapters;
  for (const ChapterEntry& entry :
       entries_by_name(std::span<const ChapterEntry>(kChapters), name, "--chapter", "chapter"))
    chapters.push_back(entry.chapter);
  return chapters;
}

void check_network(std::string_view words) {
  constexpr double kMostSeconds = 0.05;
  comm::NetworkModel model;
  try {
    model = comm::parse_network_model(words);
  } catch (const Error& error) {
    fail("--network: {}", error.what());
  }
  require(model.hosts == 0, "--network: leave hosts out: the lesson is timed on several numbers of them");
  require(!model.is_link_shared, "--network: leave link=shared out: it is for a virtual clock alone");
  require(model.lost.empty(), "--network: leave lose out: ranks would wait for what is lost until the run ends");
  const double seconds = model.between_hosts.time(1 << 20) + model.jitter;
  require(seconds <= kMostSeconds,
          "--network: a message of 1 MiB takes {:.3g} s there, and the lesson many of them; choose a network that "
          "takes {} s or less",
          seconds, kMostSeconds);
}

bool LabOptions::shows(Chapter chapter) const { return std::ranges::find(chapters, chapter) != chapters.end(); }

}  // namespace tandem::sgd_lab
