// ProcessGroup: the ranks that train together, and the collective operations between them.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/host_staging.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/tensor_collective.h"
#include "tandem/core/out.h"

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tandem::comm {

struct WatchOptions;

/// Ranks that work together: those of a run, or of a part of it. Every operation but messages (send, receive),
/// Work::poll() and the plain questions is collective: all ranks call it, in the same order, with the same shapes,
/// dtypes and arguments. Tensors are dense, on any device; elements are matched by their order in memory, so strides
/// must be alike on all ranks as well. Nothing is recorded: a tensor that requires a gradient is refused while
/// recording, as Tensor refuses raw writes and copies. Backends that know host memory only get device tensors by way of
/// pinned memory; results are there for what is enqueued on the current stream afterwards. Between GPUs that share
/// memory (backend native, GroupOptions::device) a collective's tensors are on those GPUs on all ranks, or on none. One
/// thread at a time may use a group, and works must not outlive it. A wait moves on the works of its own group: where
/// several groups have some under way, all ranks wait for these groups in one order, or poll. Errors are thrown as
/// tandem::Error.
///
/// Each operation has a form that returns at once (`_async`): its tensors are busy until the work is complete. Several
/// may be under way. Where the others return a result, these write it: what is written has the dtype and device of what
/// is read, and as many elements as the result below, in any shape. What two arguments name must not overlap, unless
/// they are the same tensor and the operation says so.
///
/// Reductions take f64, f32, i64 and i32 directly, f16 and bf16 by way of f32 (rounded once, at the end); `average`
/// needs a floating dtype. Sums of whole numbers wrap around.
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     MpiEnvironment environment;
///     const auto group = make_process_group("auto", environment);
///     const Tensor x = Tensor::full({2}, 3.0);
///     group->all_reduce(Out(x), ReduceOp::average);
///     const std::vector<float> mean = x.to_vector<float>();  // {3, 3}
///     const Tensor all = group->all_gather(x);               // of shape {group->size(), 2}
///     const auto evens_and_odds = group->split(group->rank() % 2);
class ProcessGroup {
 public:
  /// Over the ranks of a backend. `notice` is what notice() gives.
  explicit ProcessGroup(std::unique_ptr<Backend> backend, std::string notice = {})
      : backend_(std::move(backend)), notice_(std::move(notice)) {}
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Where this rank is in the group: all that is known of it, its number, and how many ranks there are.
  /// @{
  Place place() const { return backend_->place(); }
  int rank() const { return backend_->place().rank; }
  int size() const { return backend_->place().size; }
  /// @}
  /// This rank's number among those of its host.
  int local_rank() const { return backend_->place().local_rank; }
  /// How many ranks this host has.
  int local_size() const { return backend_->place().local_size; }
  /// A number that all ranks of one host, and no others, have in common.
  int node() const { return backend_->place().node; }
  /// "self", "mpi", "native", "gloo", "threads" or "nccl".
  std::string_view name() const { return backend_->name(); }
  /// Why "auto" did not choose what one would expect, in a line to be shown once; the same on all ranks, mostly empty.
  const std::string& notice() const { return notice_; }
  /// Why ranks of one host copy tensors through a window, where `native` could combine them where they are: what to
  /// change for twice the speed, or why it cannot be had. Empty where they see each other's tensors, and elsewhere; the
  /// same on all ranks.
  std::string sharing_obstacle() const { return backend_->sharing_obstacle(); }

  // To all --------------------------------------------------------------------------------------------------------

  /// Replaces the elements by their reduction over all ranks: the same bits on every rank. MPI's and NCCL's min
  /// and max may drop NaN; those of the other backends pass it on. Every rank calls this form, or every rank
  /// all_reduce_async(): with backend mpi they are different calls of MPI, which do not meet.
  void all_reduce(const Out& tensor, ReduceOp op = ReduceOp::sum);
  /// Begins it and returns at once; it is done once wait() of the result has returned. Leave the elements alone until
  /// then.
  std::unique_ptr<Work> all_reduce_async(const Out& tensor, ReduceOp op = ReduceOp::sum);
  /// The same, into another tensor.
  void all_reduce(const Tensor& tensor, const Out& result, ReduceOp op = ReduceOp::sum);
  /// Begins it, as above.
  std::unique_ptr<Work> all_reduce_async(const Tensor& tensor, const Out& result, ReduceOp op = ReduceOp::sum);

  /// Gives every rank the elements of `root`'s tensor. Any dtype, as all that only moves elements.
  void broadcast(const Out& tensor, int root = 0);
  /// Begins it, as all_reduce_async() does.
  std::unique_ptr<Work> broadcast_async(const Out& tensor, int root = 0);

  /// All ranks' tensors, stacked: shape [size, ...tensor.shape()], row-major, on the device of `tensor`.
  Tensor all_gather(const Tensor& tensor);
  /// Begins it, as all_reduce_async() does. `all` is of the shape that all_gather() returns.
  std::unique_ptr<Work> all_gather_async(const Tensor& tensor, const Out& all);
  /// All ranks' tensors, by rank, which may differ in their first extent.
  std::vector<Tensor> all_gather_rows(const Tensor& tensor);

  // To one, and from one ------------------------------------------------------------------------------------------

  /// The reduction over all ranks, on the root alone: other ranks' tensors keep their elements.
  void reduce(const Out& tensor, int root = 0, ReduceOp op = ReduceOp::sum);
  /// Begins it, as all_reduce_async() does.
  std::unique_ptr<Work> reduce_async(const Out& tensor, int root = 0, ReduceOp op = ReduceOp::sum);

  /// All ranks' tensors on the root, as all_gather() gives them; elsewhere an undefined tensor.
  Tensor gather(const Tensor& tensor, int root = 0);
  /// Begins it, as all_reduce_async() does. `all` is looked at on the root alone.
  std::unique_ptr<Work> gather_async(const Tensor& tensor, const Out& all, int root = 0);

  /// The r-th part of `all` on the root, of shape [size, ...], goes to rank r. `all` is looked at on the root alone.
  void scatter(const Tensor& all, const Out& mine, int root = 0);
  /// Begins it, as all_reduce_async() does.
  std::unique_ptr<Work> scatter_async(const Tensor& all, const Out& mine, int root = 0);

  // A part for each -----------------------------------------------------------------------------------------------

  /// Of tensors of shape [size, ...] the reduction over all ranks, of which rank r gets the r-th part, of shape [...].
  Tensor reduce_scatter(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// Begins it, as all_reduce_async() does. `mine` is of the shape that reduce_scatter() returns.
  std::unique_ptr<Work> reduce_scatter_async(const Tensor& tensor, const Out& mine, ReduceOp op = ReduceOp::sum);

  /// Of shape [size, ...]: the r-th part goes to rank r, and the r-th part of the result is from rank r.
  Tensor all_to_all(const Tensor& tensor);
  /// Begins it, as all_reduce_async() does.
  std::unique_ptr<Work> all_to_all_async(const Tensor& tensor, const Out& result);
  /// The same of rows: `rows_to[r]` of them, one after another, go to rank r. The result has all that came, by rank.
  Tensor all_to_all_rows(const Tensor& tensor, const std::vector<std::int64_t>& rows_to);

  // Messages ------------------------------------------------------------------------------------------------------

  /// From this rank to `to`, which calls receive() with this rank, the same tag (0 to kMaxMessageTag) and a tensor of
  /// as many elements of the same dtype. Messages of one pair of ranks and one tag arrive in their order. send() may
  /// return before the message has arrived, or wait for the receiver: two ranks that both send first may wait for ever.
  /// With GroupOptions::checks both ranks throw Error where dtypes or numbers of elements differ, and nothing is sent.
  void send(const Tensor& tensor, int to, int tag = 0);
  /// Begins it, as all_reduce_async() does. Backend nccl does what it has begun one after another: two ranks that begin
  /// to send to each other before they begin to receive may wait for ever there, too.
  std::unique_ptr<Work> send_async(const Tensor& tensor, int to, int tag = 0);
  /// Waits for the message that the rank `from` sends with this tag.
  void receive(const Out& tensor, int from, int tag = 0);
  /// Begins it, as all_reduce_async() does.
  std::unique_ptr<Work> receive_async(const Out& tensor, int from, int tag = 0);

  // Recording -----------------------------------------------------------------------------------------------------

  /// Why a WorkGraph cannot record all-reduces of tensors on this device; "": it can. Recorded ones end with
  /// Work::join(), and all ranks record the same ones in one order.
  std::string recording_obstacle(Device device) const { return backend_->recording_obstacle(device); }
  /// Behind each launch of a WorkGraph that has recorded all-reduces, on the stream of the launch: a work that is
  /// complete once it has done all that the stream holds. It tells of a rank that does not come, or has failed, as the
  /// works of operations that are started do. `bytes`: those that the launch exchanges, for messages. Throws Error
  /// where they cannot be recorded.
  std::unique_ptr<Work> launched_all_reduces(Device device, std::int64_t bytes);

  // Memory --------------------------------------------------------------------------------------------------------

  /// A tensor of zeros on the CPU that `native` combines where it is in all_reduce(), where all ranks share a host, and
  /// copies nothing, whether or not other tensors can be seen by all ranks (docs/launching.md). A plain tensor in any
  /// other group. Collective: all ranks ask for the same, and make their tensors by the same calls. The memory lives as
  /// long as a tensor or view of it. A process that is made by fork() must not write to it. Where the system has no
  /// such memory to give, the tensor is a plain one, and a notice (kernels/notice.h) says why, once in a group. Throws
  /// Error, on all ranks, where they ask for different sizes.
  Tensor shared_zeros(const Shape& shape, DType dtype = DType::f32);

  // Costs ---------------------------------------------------------------------------------------------------------

  /// What messages between these ranks cost, measured now: the same on all ranks. Two seconds for two ranks; more where
  /// a machine is busy or a network slow. Collective, while nothing else is under way. Throws Error for backends other
  /// than native and threads.
  MessageCosts measure_message_costs();
  /// From now on all-reduces by algorithm "by-cost" (GroupOptions::algorithm) are chosen by these costs; those that
  /// rank 0 gives hold. Before, usual_message_costs() are taken. Collective. Groups that are split off have the same
  /// costs.
  void use_message_costs(const MessageCosts& costs);
  /// Those that were given, or usual_message_costs(); the latter for backends that do not choose by them, too.
  MessageCosts message_costs() const { return backend_->costs().value_or(usual_message_costs()); }
  /// Seconds of an all-reduce of so many bytes by these costs; nothing where it does not go by messages of `native` or
  /// `threads`. Ranks may round it otherwise.
  std::optional<double> predicted_all_reduce_seconds(std::int64_t bytes) const {
    return backend_->predicted_all_reduce_seconds(bytes);
  }
  /// How all-reduces go: an algorithm of GroupOptions other than "auto"; empty for one rank, and for backends other
  /// than native and threads.
  std::string_view algorithm() const { return backend_->algorithm(); }
  /// The network that is simulated (GroupOptions::network), all its words; empty where messages go as fast as they can.
  std::string network() const { return backend_->network(); }
  /// What "by-cost" has chosen; empty where nothing goes that way.
  std::vector<AlgorithmChoice> algorithm_choices() const { return backend_->algorithm_choices(); }

  // Progress ------------------------------------------------------------------------------------------------------

  /// Who moves on works that are under way, from now on: "poll" (polls and waits alone), "thread" (a thread of the
  /// group as well, which sleeps while there are none) or "auto", as in GroupOptions::progress. Results have the same
  /// bits. "auto" goes by num_threads() (core/parallel.h), so that comes first. Groups that are split off later do the
  /// same. Collective, while nothing is under way. Throws AgreedError as make_process_group() does, and Error where the
  /// group's thread has a work.
  void set_progress(std::string_view how);
  /// "thread" or "poll"; empty for backends whose works move on by themselves (self, gloo, nccl).
  std::string_view progress() const;

  // Watching ------------------------------------------------------------------------------------------------------

  /// From now on ranks show each other what they do, and name one that the others wait for in vain (comm/doctor/), as
  /// make_process_group() arranges; once in a group, before set_progress(). Collective.
  void watch(const WatchOptions& options);

  // Others --------------------------------------------------------------------------------------------------------

  /// All ranks' byte strings, by rank; lengths may differ. For small things: names, hashes, error texts.
  std::vector<std::string> all_gather_bytes(std::string_view mine);

  /// Returns once every rank has called it.
  void barrier();

  /// A group of the ranks that give the same `color` here, numbered in the order of `key`, then of their ranks here;
  /// null for a negative color. Collective over this group; afterwards both are independent of each other.
  std::unique_ptr<ProcessGroup> split(int color, int key = 0);

  /// Payload bytes that this rank has sent in all_reduce so far, where the backend sends messages itself (native); 0
  /// for mpi, which does not tell, and where ranks of one host read each other's memory.
  std::int64_t all_reduce_bytes_sent() const { return backend_->all_reduce_bytes_sent(); }

 private:
  std::unique_ptr<Work> start(const TensorCollective& collective);
  void run(const TensorCollective& collective);
  /// So many elements from, or for, each rank.
  std::vector<std::int64_t> for_each_rank(std::int64_t count) const;
  /// What is to have a part for each rank, and such a part.
  std::int64_t part_of(CollectiveKind kind, const Tensor& tensor) const;

  std::unique_ptr<Backend> backend_;
  std::string notice_;
  HostStaging staging_;
};

/// The group of all ranks of this run; collective. `backend`: "self" (one process), "mpi" (the MPI library's
/// collectives), "native" (our own; "ring", its former name, will do), "gloo" (the Gloo library's), "nccl" (between
/// GPUs, one per rank) or "auto": self for one rank, nccl for more where all compute on GPUs of their own, else native.
/// `device` is where this rank computes. Throws AgreedError for an unknown name, for a backend whose libraries this
/// build is without, for ranks that name different backends, for self when a launcher started several ranks, and for
/// nccl where it cannot be used, which with "auto" is a notice(). Groups are independent of each other; the environment
/// must outlive them. A program that wants to agree on its command line first makes an "auto" group for that, then the
/// one that the command line names.
std::unique_ptr<ProcessGroup> make_process_group(std::string_view backend, MpiEnvironment& environment,
                                                 Device device = {});

/// A choice of group.
struct GroupOptions {
  std::string backend = "auto";  ///< one of backend_names()
  Device device = {};            ///< where this rank computes
  /// How backends native and threads add up: "auto" is "shared-memory" where all ranks are on one host, else "by-cost",
  /// the algorithm of messages with the least predicted time for the size; others are such algorithms, by their names
  /// in algorithm_names() (comm/backends.h). With another than "auto", backend "auto" is native on several ranks.
  std::string algorithm = "auto";
  /// Words of a network (comm/transports/simulated/network_model.h), as "alpha=2ms beta=1Gbit hosts=2x2", on which the
  /// messages of backends native and threads arrive as late, in real time, as on that network; "" for none. The ranks
  /// are on its hosts then, by their numbers (without hosts each on one of its own), and exchange messages only, also
  /// where they share memory; message_costs() are the network's at first. A group of one has these alone, and predicts
  /// for two.
  std::string network = {};
  /// Who moves on works of backends native, threads and mpi that are under way: "poll" (polls and waits alone) or
  /// "thread" (a thread of each rank as well); "auto" is a thread where each rank has a core for it beside those that
  /// it computes on (num_threads() in core/parallel.h). Works of other backends move on by themselves.
  std::string progress = "auto";
  /// Seconds that a rank waits for the others in one operation: then the rank that is waited for is named on stderr of
  /// all ranks, which end with exit code 2 (docs/comm/doctor.md). 0: any time. Nothing: TANDEM_COMM_TIMEOUT, or 30. One
  /// that has ended is named at once.
  std::optional<double> timeout = {};
  /// Ranks compare the arguments of each collective before they begin it, and the two ranks of a message its dtype and
  /// number of elements: they throw Error where these differ. Slower, for finding faults of a program. A send() waits
  /// for its receive() then, however small it is.
  bool checks = false;
};

/// The same with such a choice. Throws Error for a timeout below 0. Throws AgreedError as well for an algorithm that
/// there is not, for one beside another backend, which has its own, and for shared memory that cannot be had; for a
/// kind of progress that there is not, for a thread beside another backend (but for "auto"), and for one where MPI does
/// not let several threads call it (with progress "auto" that is a notice()); and for a network that is none, that has
/// another number of ranks, beside another backend or shared memory, or where the ranks are on several hosts already.
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     MpiEnvironment environment;
///     const auto group = make_process_group({.algorithm = "halving-doubling"}, environment);
std::unique_ptr<ProcessGroup> make_process_group(const GroupOptions& options, MpiEnvironment& environment);

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
