// ProcessGroup: the ranks that train together, and the collective operations between them.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/host_staging.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/core/out.h"

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tandem::comm {

/// The ranks of one run. Every operation but poll() and the plain questions is collective: all ranks call it, in the
/// same order, with the same shapes, dtypes and arguments. Tensors are dense, on any device; elements are matched by
/// their order in memory, so strides must be alike on all ranks as well. Nothing is recorded: a tensor that requires a
/// gradient is refused while recording, as Tensor refuses raw writes and copies. Backends that know host memory only
/// get device tensors by way of pinned memory; results are there for what is enqueued on the current stream afterwards.
/// One thread at a time may use a group, and works must not outlive it. Errors are thrown as tandem::Error.
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     MpiEnvironment environment;
///     const auto group = make_process_group("auto", environment);
///     const Tensor x = Tensor::full({2}, 3.0);
///     group->all_reduce(Out(x), ReduceOp::average);
///     const std::vector<float> mean = x.to_vector<float>();  // {3, 3}
///     const Tensor all = group->all_gather(x);               // of shape {group->size(), 2}
class ProcessGroup {
 public:
  explicit ProcessGroup(std::unique_ptr<Backend> backend, std::string notice = {})
      : backend_(std::move(backend)), notice_(std::move(notice)) {}
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  Place place() const { return backend_->place(); }
  int rank() const { return backend_->place().rank; }
  int size() const { return backend_->place().size; }
  /// Rank and number of ranks on this host.
  int local_rank() const { return backend_->place().local_rank; }
  int local_size() const { return backend_->place().local_size; }
  /// A number that all ranks of one host, and no others, have in common.
  int node() const { return backend_->place().node; }
  /// "self", "mpi", "ring" or "nccl".
  std::string_view name() const { return backend_->name(); }
  /// Why "auto" did not choose what one would expect, in a line to be shown once; the same on all ranks, mostly empty.
  const std::string& notice() const { return notice_; }

  /// Replaces the elements by their reduction over all ranks: the same bits on every rank. f64, f32, i64 and i32
  /// directly, f16 and bf16 by way of f32 (rounded once, at the end); `average` needs a floating dtype. Of the
  /// backends, ring and self promise that min and max pass NaN on; MPI's and NCCL's may drop it.
  void all_reduce(const Out& tensor, ReduceOp op = ReduceOp::sum);

  /// all_reduce that returns at once: the tensor is busy until the work is complete. Several may be under way.
  std::unique_ptr<Work> all_reduce_async(const Out& tensor, ReduceOp op = ReduceOp::sum);

  /// Gives every rank the elements of `root`'s tensor. Any dtype.
  void broadcast(const Out& tensor, int root = 0);

  /// All ranks' tensors, stacked: shape [size, ...tensor.shape()], row-major, on the device of `tensor`. Any dtype.
  Tensor all_gather(const Tensor& tensor);

  /// All ranks' byte strings, by rank; lengths may differ. For small things: names, hashes, error texts.
  std::vector<std::string> all_gather_bytes(std::string_view mine);

  /// Returns once every rank has called it.
  void barrier();

  /// Payload bytes that this rank has sent in all_reduce so far, where the backend moves them itself (ring); 0 for
  /// mpi, which does not tell.
  std::int64_t all_reduce_bytes_sent() const { return backend_->all_reduce_bytes_sent(); }

 private:
  std::unique_ptr<Work> start_all_reduce(const Out& tensor, ReduceOp op);

  std::unique_ptr<Backend> backend_;
  std::string notice_;
  HostStaging staging_;
};

/// The group of all ranks of this run; collective. `backend`: "self" (one process), "mpi" (the MPI library's
/// collectives), "ring" (our own ring all-reduce), "nccl" (between GPUs, one per rank) or "auto": self for one rank,
/// nccl for more where all compute on GPUs of their own, else ring. `device` is where this rank computes. Throws Error
/// for mpi, ring and nccl in a build without MPI, and AgreedError for an unknown name, for ranks that name different
/// backends, for self when a launcher started several ranks, and for nccl where it cannot be used, which with "auto" is
/// a notice(). Groups are independent of each other; the environment must outlive them. A program that wants to agree
/// on its command line first makes an "auto" group for that, then the one that the command line names.
std::unique_ptr<ProcessGroup> make_process_group(std::string_view backend, MpiEnvironment& environment,
                                                 Device device = {});

/// run_program() (launch/mpi_environment.h) for a body that is given the group of all ranks,
/// make_process_group("auto", environment, device), and returns nothing or an exit code.
/// Example:
///     int main() {
///       return run_program([](ProcessGroup& group) { std::printf("rank %d of %d\n", group.rank(), group.size()); });
///     }
template <std::invocable<ProcessGroup&> Body>
int run_program(const Body& body, Device device = {}) {
  return run_program([&](MpiEnvironment& environment) {
    const auto group = make_process_group("auto", environment, device);
    if constexpr (std::is_void_v<std::invoke_result_t<const Body&, ProcessGroup&>>) {
      body(*group);
      return 0;
    } else {
      return body(*group);
    }
  });
}

}  // namespace tandem::comm
