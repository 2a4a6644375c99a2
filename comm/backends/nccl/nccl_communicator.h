// One communicator of NCCL without its types: what the backend is made of, and what tests put in its place.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/nccl/nccl_file.h"
#include "tandem/core/stream.h"

#include <memory>
#include <span>
#include <string>

namespace tandem::comm {

/// What goes to a rank, which may be this one, and what comes from it; 0 bytes for nothing. What two ranks have for
/// each other is the same in number, order and sizes on both.
struct NcclExchange {
  int rank = 0;
  const void* from = nullptr;
  std::int64_t bytes_sent = 0;
  void* into = nullptr;
  std::int64_t bytes_received = 0;
};

/// Calls return at once; all throw Error with NCCL's words where it refuses or has failed meanwhile. After start and
/// after every call but the last two, is_ready() must have been true before the next call or a look at the stream. One
/// thread at a time.
class NcclCommunicator {
 public:
  virtual ~NcclCommunicator() = default;

  /// False while a call is still under way. The one way to learn of errors that come later.
  virtual bool is_ready() = 0;

  /// On device memory, enqueued on `stream`; `to` may be `from`. All dtypes but u8.
  virtual void all_reduce(const void* from, void* to, std::int64_t count, DType dtype, ReduceOp op,
                          const Stream& stream) = 0;
  /// `to` counts on the root alone.
  virtual void reduce(const void* from, void* to, std::int64_t count, DType dtype, ReduceOp op, int root,
                      const Stream& stream) = 0;
  /// `count` elements for each rank.
  virtual void reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype, ReduceOp op,
                              const Stream& stream) = 0;
  virtual void broadcast(void* data, std::int64_t bytes, int root, const Stream& stream) = 0;
  /// `mine` may be this rank's part of `all`.
  virtual void all_gather(const void* mine, std::int64_t bytes, void* all, const Stream& stream) = 0;
  /// All at once.
  virtual void exchange(std::span<const NcclExchange> exchanges, const Stream& stream) = 0;

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
