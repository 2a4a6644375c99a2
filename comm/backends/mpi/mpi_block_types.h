// Blocks of memory as MPI_Ialltoallw takes them, of any length. Only for *_mpi.cpp files, which include <mpi.h> before
// it.
#pragma once

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/backends/owned_handle.h"

#include <algorithm>
#include <vector>

namespace tandem::comm::detail {

struct ReleaseType {
  void operator()(MPI_Datatype& type) const {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Type_free(&type);
  }
};

/// A count, an offset and a type for each block, as seen from `base`. Bytes where an int counts them, and reaches them;
/// else one element of a type that is that block, chunk by chunk.
class BlockTypes {
 public:
  BlockTypes(const void* base, const std::vector<Block>& blocks, const MpiLimits& limits) {
    for (const Block& block : blocks) {
      const std::int64_t offset = block.bytes > 0 ? block.data - static_cast<const std::byte*>(base) : 0;
      const bool is_short = offset + block.bytes <= limits.total;
      types_.push_back(is_short ? MPI_BYTE : add_type(offset, block.bytes, limits.chunk));
      counts_.push_back(is_short ? static_cast<int>(block.bytes) : 1);
      offsets_.push_back(is_short ? static_cast<int>(offset) : 0);
    }
  }

  const int* counts() const { return counts_.data(); }
  const int* offsets() const { return offsets_.data(); }
  const MPI_Datatype* types() const { return types_.data(); }

 private:
  MPI_Datatype add_type(std::int64_t offset, std::int64_t bytes, std::int64_t chunk) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (std::int64_t at = 0; at < bytes; at += chunk) {
      lengths.push_back(static_cast<int>(std::min(chunk, bytes - at)));
      places.push_back(offset + at);
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    TANDEM_CHECK_MPI(
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, &type));
    owned_.emplace_back(type, MPI_DATATYPE_NULL);
    TANDEM_CHECK_MPI(MPI_Type_commit(&type));
    return type;
  }

  std::vector<int> counts_, offsets_;
  std::vector<MPI_Datatype> types_;
  std::vector<OwnedHandle<MPI_Datatype, ReleaseType>> owned_;
};

}  // namespace tandem::comm::detail
