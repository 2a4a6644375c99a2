// From a collective to a schedule and the memory of its chunks.
#pragma once

#include "tandem/comm/backends/native/schedule_run.h"
#include "tandem/comm/collective.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::comm {

/// A collective made ready: what is to be copied beforehand has been copied.
struct CollectivePlan {
  std::shared_ptr<const Schedule> schedule = {};
  std::vector<ChunkMemory> chunks = {};
  Elements elements = {};
  std::unique_ptr<Storage> scratch = {};  ///< of chunks that are in neither input nor output; null where there are none
};

/// The schedule of all-reduces of so many bytes and more, up to the next one's.
struct SizedSchedule {
  std::int64_t from_bytes = 0;
  std::shared_ptr<const Schedule> schedule = {};
};

/// Schedules by what they are for, made once. `all_reduce` are those of all-reduces, the first from 0 bytes on.
class Schedules {
 public:
  Schedules(int ranks, int rank, std::vector<SizedSchedule> all_reduce);
  void set_all_reduce(std::vector<SizedSchedule> all_reduce) { all_reduce_ = std::move(all_reduce); }

  /// For this rank. Copies the input, or this rank's part of it, to where the schedule works on it.
  CollectivePlan plan(const Collective& collective);

 private:
  std::shared_ptr<const Schedule> all_reduce_of(std::int64_t bytes) const;
  std::shared_ptr<const Schedule> schedule_of(CollectiveKind kind, int root);
  std::shared_ptr<const Schedule> schedule_of_message(const Collective& collective) const;
  std::vector<ChunkMemory> reduction_chunks(const Collective& collective, const Schedule& schedule,
                                            std::unique_ptr<Storage>& scratch) const;
  std::vector<ChunkMemory> block_chunks(const Collective& collective) const;
  std::vector<ChunkMemory> all_to_all_chunks(const Collective& collective) const;
  std::vector<ChunkMemory> reduce_scatter_chunks(const Collective& collective) const;

  int ranks_;
  int rank_;
  std::vector<SizedSchedule> all_reduce_;
  std::vector<std::pair<std::pair<CollectiveKind, int>, std::shared_ptr<const Schedule>>> made_;  // by kind and root
  std::int32_t token_ = 0;  // what barriers exchange
};

}  // namespace tandem::comm
