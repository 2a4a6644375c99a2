// One communicator of NCCL without its types: what the backend is made of, and what tests put in its place.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/nccl/nccl_file.h"
#include "tandem/core/stream.h"

#include <memory>
#include <span>
#include <string>

namespace tandem::comm {

/// As many bytes for a rank as from it, which may be this one. Between two ranks the swaps of both, in their order, are
/// the same in number and sizes.
struct NcclSwap {
  int rank = 0;
  const void* from = nullptr;
  void* into = nullptr;
  std::int64_t bytes = 0;
};

/// Calls return at once; all throw Error with NCCL's words where it refuses or has failed meanwhile. After start and
/// after every call but the last two, is_ready() must have been true before the next call or a look at the stream. One
/// thread at a time.
class NcclCommunicator {
 public:
  virtual ~NcclCommunicator() = default;

  /// False while a call is still under way. The one way to learn of errors that come later.
  virtual bool is_ready() = 0;

  /// In place, on device memory; enqueued on `stream`. All dtypes but u8.
  virtual void all_reduce(void* data, std::int64_t count, DType dtype, ReduceOp op, const Stream& stream) = 0;
  virtual void broadcast(void* data, std::int64_t bytes, int root, const Stream& stream) = 0;
  /// `mine` may be this rank's part of `all`.
  virtual void all_gather(const void* mine, std::int64_t bytes, void* all, const Stream& stream) = 0;
  /// All at once.
  virtual void swap(std::span<const NcclSwap> swaps, const Stream& stream) = 0;

  /// True once `stream` has passed `mark`.
  virtual bool has_passed(const Event& mark) { return mark.is_done(); }

  /// Collective: lets what was enqueued come to its end. Then, when ready, close().
  virtual void finalize() = 0;
  virtual void close() = 0;

  /// Instead of those: gives up all that is under way, on this rank alone. Returns in some seconds at most.
  virtual void abort() noexcept = 0;
};

/// An id for start_nccl_communicator(), made by one rank and given to all.
std::string make_nccl_id(const LibraryFile& file);

/// Begins to connect this rank to the others. Collective. These two are absent from builds without NCCL.
std::unique_ptr<NcclCommunicator> start_nccl_communicator(const LibraryFile& file, const std::string& id,
                                                          const Place& place, Device device);

}  // namespace tandem::comm
