// A row for each backend, and how each is made.
#include "tandem/comm/backends.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/gloo/gloo_backend.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/backends/nccl/nccl_start.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/simulated/real_time_network.h"
#include "tandem/core/suggest.h"

namespace tandem::comm {

namespace {

std::unique_ptr<ProcessGroup> group_of(std::unique_ptr<Backend> backend, std::string notice = {}) {
  return std::make_unique<ProcessGroup>(std::move(backend), std::move(notice));
}

/// request.mpi, which is there from now on.
std::unique_ptr<ProcessGroup>& need_mpi(BackendRequest& request) {
  if (!request.mpi) {
    request.environment.initialize();
    request.mpi = group_of(detail::make_mpi_backend());
  }
  return request.mpi;
}

/// What so many processes can have in this build.
std::string choices_for(int ranks) {
  std::vector<std::string> names;
  for (const BackendEntry& entry : backends())
    if (entry.missing().empty() && entry.name != "threads" && (ranks == 1 || entry.name != "self"))
      names.emplace_back(entry.name);
  return one_of(names);
}

std::unique_ptr<ProcessGroup> make_self(BackendRequest& request) {
  const int ranks = request.environment.size();
  if (ranks > 1)
    throw AgreedError(fmt::format("backend self is for one process, but {} started {}: choose {}",
                                  request.environment.launch().launcher, ranks, choices_for(ranks)));
  if (request.network.empty()) return group_of(make_self_backend());
  try {
    return group_of(make_self_backend(real_time_network(request.network, 1)));
  } catch (const Error& error) {
    throw AgreedError(error.what());
  }
}

std::unique_ptr<ProcessGroup> make_mpi(BackendRequest& request) { return std::move(need_mpi(request)); }

std::unique_ptr<ProcessGroup> make_native_with(BackendRequest& request, std::string notice) {
  ProcessGroup& mpi = *need_mpi(request);
  if (!request.network.empty() && mpi.local_size() < mpi.size())
    throw AgreedError(
        "network: it is simulated by the clock of one host, and the ranks are on several; start all on one, or leave "
        "it out");
  const auto nodes = mpi.all_gather(Tensor::from(std::vector{static_cast<std::int64_t>(mpi.node())}, {1}));
  std::vector<int> node_of_rank;
  for (const std::int64_t node : nodes.to_vector<std::int64_t>()) node_of_rank.push_back(static_cast<int>(node));
  NativeOptions options = run_agreed(mpi, [&] { return native_options("native", request.algorithm, request.network); });
  options.device = request.device;
  auto backend = make_native_backend(mpi.place(), node_of_rank, detail::make_mpi_transport(), options);
  if (request.algorithm == "shared-memory") {
    if (mpi.local_size() < mpi.size())
      throw AgreedError("algorithm shared-memory: the ranks are on several hosts; choose auto, or one of messages");
    if (mpi.size() > 1 && backend->algorithm() != "shared-memory")
      throw AgreedError("algorithm shared-memory: " + backend->notice());
  }
  if (const std::string more = backend->notice(); !more.empty()) notice += (notice.empty() ? "" : "; ") + more;
  return group_of(std::move(backend), std::move(notice));
}

std::unique_ptr<ProcessGroup> make_gloo(BackendRequest& request) {
  need_mpi(request);  // which is started by it
  return group_of(make_gloo_backend(detail::make_mpi_backend()));
}

/// MPI starts the ranks.
std::string_view missing_mpi_or_gloo() { return missing_mpi().empty() ? missing_gloo() : missing_mpi(); }

std::unique_ptr<ProcessGroup> make_native(BackendRequest& request) { return make_native_with(request, {}); }

NcclStart start_nccl(BackendRequest& request) {
  ProcessGroup& mpi = *need_mpi(request);
  return start_nccl(mpi, detail::make_mpi_backend(), request.device);
}

std::unique_ptr<ProcessGroup> make_nccl(BackendRequest& request) {
  NcclStart start = start_nccl(request);
  if (!start.backend) throw AgreedError(fmt::format("backend nccl: {}, or choose backend native", start.obstacle));
  return group_of(std::move(start.backend));
}

std::unique_ptr<ProcessGroup> make_automatic(BackendRequest& request) {
  if (request.environment.size() == 1) return make_self(request);
  if (!missing_nccl().empty()) return make_native(request);
  NcclStart start = start_nccl(request);
  if (start.backend) return group_of(std::move(start.backend));
  return make_native_with(request, start.has_gpus
                                       ? fmt::format("using backend native instead of nccl: {}", start.obstacle)
                                       : std::string());
}

std::unique_ptr<ProcessGroup> make_threads(BackendRequest& request) {
  throw AgreedError(fmt::format(
      "backend threads joins ranks that are threads of one process, which run_thread_ranks() starts: choose {}",
      choices_for(request.environment.size())));
}

std::string_view nothing() { return ""; }

// In the order of CollectiveKind: send, receive, broadcast, all_reduce, reduce, all_gather, gather, scatter,
// reduce_scatter, all_to_all, barrier.

constexpr CollectiveWays kSelfWays{"",       "",       "nothing", "a copy", "a copy", "a copy",
                                   "a copy", "a copy", "a copy",  "a copy", "nothing"};
constexpr CollectiveWays kMpiWays{
    "MPI_Isend",           "MPI_Irecv",       "MPI_Ibcast",   "MPI_Allreduce, MPI_Iallreduce",
    "MPI_Ireduce",         "MPI_Iallgatherv", "MPI_Igatherv", "MPI_Iscatterv",
    "MPI_Ireduce_scatter", "MPI_Ialltoallw",  "MPI_Ibarrier"};
constexpr CollectiveWays kNativeWays{"a message",
                                     "a message",
                                     "shared memory, or binomial tree or chain of segments",
                                     "shared memory, or --comm-algorithm",
                                     "shared memory, or binomial tree",
                                     "shared memory, or ring",
                                     "shared memory, or messages to the root",
                                     "shared memory, or messages from the root",
                                     "shared memory, or messages to the rank that adds",
                                     "shared memory, or messages to all",
                                     "shared memory, or recursive doubling"};
constexpr CollectiveWays kGlooWays{"UnboundBuffer::send",
                                   "UnboundBuffer::recv",
                                   "gloo::broadcast",
                                   "gloo::allreduce",
                                   "gloo::reduce",
                                   "gloo::allgatherv, messages where a rank has nothing",
                                   "messages",
                                   "messages",
                                   "gloo::reduce to each",
                                   "messages",
                                   "gloo::barrier"};
constexpr std::string_view kNcclAllReduce =
    "ncclAllReduce; sums of halves ncclSend, ncclRecv, a kernel that adds in f32, ncclAllGather";
constexpr std::string_view kNcclAllGather = "ncclAllGather; of unequal parts ncclSend, ncclRecv";
constexpr CollectiveWays kNcclWays{"ncclSend",           "ncclRecv",           "ncclBroadcast",
                                   kNcclAllReduce,       "ncclReduce",         kNcclAllGather,
                                   "ncclSend, ncclRecv", "ncclSend, ncclRecv", "ncclReduceScatter",
                                   "ncclSend, ncclRecv", "MPI_Ibarrier"};
constexpr std::string_view kStaged = "by way of pinned host memory";
constexpr std::string_view kNativeOnGpus =
    "through GPU memory that the ranks of a host share (CUDA IPC), others and messages by way of pinned host memory";
constexpr std::string_view kPolled = "in polls and waits, or by --comm-progress thread";

constexpr BackendEntry kBackends[] = {
    {"auto", "nccl between GPUs, else native, for one rank self", "", nothing, "", make_automatic},
    {"self", "one process", "", nothing, "", make_self, &kSelfWays, kStaged, "nothing is under way"},
    {"mpi", "the MPI library's collectives", "MPI", missing_mpi, "self", make_mpi, &kMpiWays, kStaged, kPolled},
    {"native", "our own collectives, through memory or MPI messages", "MPI", missing_mpi, "self", make_native,
     &kNativeWays, kNativeOnGpus, kPolled, "ring"},
    {"threads", "as native, between ranks that are threads of one process", "", nothing, "", make_threads, &kNativeWays,
     kStaged, kPolled},
    {"gloo", "the Gloo library's collectives, over TCP", "MPI and Gloo", missing_mpi_or_gloo, "mpi", make_gloo,
     &kGlooWays, kStaged, "by a thread"},
    {"nccl", "NVIDIA's collectives", "MPI, NCCL and a GPU per rank", missing_nccl, "native", make_nccl, &kNcclWays,
     "where they are; those of CPUs go by mpi", "on a stream of the GPU"},
};

}  // namespace

std::span<const BackendEntry> backends() { return kBackends; }

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : kBackends) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names{"auto", "shared-memory", std::string(kByCost)};
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

std::vector<std::string> progress_names() { return {"auto", "thread", "poll"}; }

std::string current_backend_name(std::string_view name) {
  for (const BackendEntry& entry : kBackends)
    if (!entry.former_name.empty() && entry.former_name == name) return std::string(entry.name);
  return std::string(name);
}

}  // namespace tandem::comm
