// Places, and byte strings by two gathers.
#include "tandem/comm/backends/backend.h"

#include "tandem/core/error.h"
#include "tandem/core/out.h"

#include <algorithm>

namespace tandem::comm {

Place place_of(std::span<const int> node_of_rank, int rank) {
  Place place{.rank = rank, .size = static_cast<int>(node_of_rank.size()), .local_size = 0, .node = -1};
  const int mine = node_of_rank[static_cast<std::size_t>(rank)];
  for (int other = 0; other < place.size; ++other) {
    if (node_of_rank[static_cast<std::size_t>(other)] != mine) continue;
    if (other == rank) place.local_rank = place.local_size;
    if (place.node < 0) place.node = other;
    ++place.local_size;
  }
  return place;
}

std::string Backend::recording_obstacle(Device /*device*/) const {
  return fmt::format("backend {} begins collectives on the host", name());
}

std::unique_ptr<Work> Backend::launched(const Collective& like) {
  fail("{}: {}: cannot be recorded, and so not launched", name(), describe(like));
}

std::vector<std::string> Backend::all_gather_bytes(std::string_view mine) {
  const auto ranks = static_cast<std::size_t>(place().size);
  const auto length = static_cast<std::int64_t>(mine.size());
  // Tensors: when an error has ended this call, other ranks may still read, and this one's part may go on and write.
  const Tensor own_length = Tensor::from(std::vector{length}, {1}),
               all_lengths = Tensor::empty({place().size}, {.dtype = DType::i64});
  run({.kind = CollectiveKind::all_gather,
       .dtype = DType::i64,
       .counts = std::vector<std::int64_t>(ranks, 1),
       .input = own_length.raw_data(),
       .output = Out(all_lengths).raw_data(),
       .input_owner = own_length,
       .output_owner = all_lengths});
  const auto lengths = all_lengths.to_vector<std::int64_t>();
  std::int64_t total = 0;
  for (const std::int64_t each : lengths) total += each;
  const Tensor own = Tensor::empty({length}, {.dtype = DType::u8}), all = Tensor::empty({total}, {.dtype = DType::u8});
  std::copy(mine.begin(), mine.end(), Out(own).data<std::uint8_t>());
  run({.kind = CollectiveKind::all_gather,
       .counts = lengths,
       .input = own.raw_data(),
       .output = Out(all).raw_data(),
       .input_owner = own,
       .output_owner = all});
  const auto* const bytes = reinterpret_cast<const char*>(all.raw_data());
  std::vector<std::string> result;
  std::size_t at = 0;
  for (const std::int64_t each : lengths) {
    result.emplace_back(bytes + at, static_cast<std::size_t>(each));
    at += static_cast<std::size_t>(each);
  }
  return result;
}

}  // namespace tandem::comm
