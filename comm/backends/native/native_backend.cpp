// Groups, and by which ways their ranks exchange data.
#include "tandem/comm/backends/native/native_backend.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/native/engines.h"
#include "tandem/comm/backends/native/measure_costs.h"
#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/backends/native/open_device_engine.h"
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/doctor/rank_status.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/shared_memory/first_fault.h"
#include "tandem/comm/transports/shared_memory/peer_blocks.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/comm/transports/simulated/delayed_transport.h"
#include "tandem/comm/transports/simulated/real_time_network.h"
#include "tandem/core/cpu_allocator.h"
#include "tandem/core/error.h"
#include "tandem/kernels/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace tandem::comm {

namespace {

constexpr std::string_view kSingleCopy = "TANDEM_SINGLE_COPY", kCudaIpc = "TANDEM_CUDA_IPC";

template <typename Wish>
std::string_view name_of_wish(Wish wish) {
  return wish == Wish::on ? "on" : wish == Wish::off ? "off" : "auto";
}

/// `unsaid`: where the variable is not set.
template <typename Wish>
Wish wish_of(std::string_view variable, const EnvironmentLookup& environment, Wish unsaid) {
  const char* const text = environment(variable.data());
  if (text == nullptr) return unsaid;
  for (const Wish wish : {Wish::automatic, Wish::on, Wish::off})
    if (name_of_wish(wish) == text) return wish;
  fail("{}={}: choose auto, on or off", variable, text);
}

class NativeBackend final : public Backend {
 public:
  NativeBackend(const Place& place, const std::vector<int>& node_of_rank, std::unique_ptr<Transport> transport,
                NativeOptions options)
      : place_(place), node_of_rank_(node_of_rank), options_(std::move(options)) {
    require(node_of_rank.size() == static_cast<std::size_t>(place.size), "native: hosts of {} ranks for a group of {}",
            node_of_rank.size(), place.size);
    const AllReduceAlgorithm& algorithm = all_reduce_algorithm(is_by_cost() ? "ring" : options_.all_reduce);
    engines_ = std::make_shared<Engines>(
        NativeEngine(std::move(transport), place.size, place.rank, algorithm.make(node_of_rank), options_.segments));
    if (place.size > 1)
      engines_->many_ranks = shared_cores(cores_by_host(all_gather_bytes(place_text(place.node)))) > 0;
    if (place.size > 1) open_window();
    choose();
  }

  std::string_view name() const override { return options_.name; }
  Place place() const override { return place_; }
  bool takes(Device device, CollectiveKind kind) const override {
    return device.type == DeviceType::cpu ||
           (engines_->devices && engines_->devices->device() == device && DeviceEngine::takes(kind));
  }
  bool reduces_half(CollectiveKind kind, ReduceOp) const override {
    return engines_->window && engines_->window->takes(kind);
  }
  std::unique_ptr<Work> start(const Collective& collective) override { return engines_->start(collective); }
  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    std::vector<int> nodes;
    for (const int member : members) nodes.push_back(node_of_rank_[static_cast<std::size_t>(member)]);
    const auto mine = std::ranges::find(members, place_.rank);
    const Place place = place_of(nodes, static_cast<int>(mine - members.begin()));
    return std::make_unique<NativeBackend>(place, nodes, engines_->messages.transport().subgroup(members), options_);
  }
  std::int64_t all_reduce_bytes_sent() const override { return engines_->messages.all_reduce_bytes_sent(); }
  std::shared_ptr<Storage> allocate_shared(std::int64_t bytes) override {
    if (!engines_->window) {
      tell_obstacle(notice_);
      return nullptr;
    }
    // Each rank's part lies behind those before it, so all must be of one size.
    const std::vector<std::string> all = all_gather_bytes(std::to_string(bytes));
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      require(all[rank] == all.front(),
              "shared_zeros: rank 0 asks for {} bytes, and rank {} for {}; all ranks must ask for the same",
              all.front(), rank, all[rank]);
    // What no number holds is refused as other memory of that size is.
    if (bytes == 0 || bytes > std::numeric_limits<std::int64_t>::max() / place_.size - kPageBytes) return nullptr;
    if (std::shared_ptr<Storage> storage = shared_block(bytes)) return storage;
    const SharedByRanks shared = share_memory(*this, SharedParts::part_bytes(bytes));
    if (shared.memory) return engines_->window->parts().add(shared.memory, bytes);
    tell_obstacle(fmt::format("tensors share no memory between ranks, and take longer to reduce: {}", shared.obstacle));
    return nullptr;
  }
  std::string notice() const override { return notice_; }
  std::string sharing_obstacle() const override { return sharing_obstacle_; }
  void show_steps(StepStatus* status) override {
    engines_->steps = status;
    if (status != nullptr) engines_->messages.transport().begin_watched();
  }
  bool moves_by_polls() const override { return true; }
  std::string thread_obstacle() const override { return engines_->messages.transport().thread_obstacle(); }
  std::optional<MessageCosts> measure_costs() override {
    if (place_.size == 1) return options_.costs;
    NativeEngine& engine = engines_->messages;
    return measure_message_costs(*this, engine.transport(), engine.take_tag(), node_of_rank_, engine.segments());
  }
  void use_costs(const MessageCosts& costs) override {
    check_costs(costs);
    if (place_.size > 1)
      options_.costs = message_costs_from_text(all_gather_bytes(place_.rank == 0 ? to_text(costs) : "").front());
    choose();
  }
  std::optional<MessageCosts> costs() const override { return options_.costs; }
  std::optional<double> predicted_all_reduce_seconds(std::int64_t bytes) const override {
    if (place_.size == 1 || engines_->window) return std::nullopt;
    std::string_view name = options_.all_reduce;
    for (const AlgorithmChoice& choice : choices_)
      if (choice.from_bytes <= bytes) name = choice.algorithm;
    return predicted_seconds(all_reduce_algorithm(name).make(node_of_rank_), node_of_rank_, bytes, options_.costs,
                             options_.segments);
  }
  std::string network() const override { return options_.network; }
  std::string_view algorithm() const override {
    return place_.size == 1 ? "" : engines_->window ? "shared-memory" : std::string_view(options_.all_reduce);
  }
  std::vector<AlgorithmChoice> algorithm_choices() const override { return choices_; }

 private:
  bool is_by_cost() const { return options_.all_reduce == kByCost; }

  /// Rank 0's choice, for all ranks: others may round a prediction otherwise.
  void choose() {
    if (!is_by_cost() || place_.size == 1 || engines_->window) return;
    const std::string mine =
        place_.rank == 0 ? to_text(choose_algorithms(node_of_rank_, options_.costs, options_.segments)) : "";
    choices_ = choices_from_text(all_gather_bytes(mine).front());
    std::vector<SizedSchedule> schedules;
    for (const AlgorithmChoice& choice : choices_)
      schedules.push_back({choice.from_bytes, std::make_shared<const Schedule>(
                                                  all_reduce_algorithm(choice.algorithm).make(node_of_rank_))});
    engines_->messages.set_all_reduce(std::move(schedules));
  }

  /// Once in a group: sizes in such a line are others each time.
  void tell_obstacle(const std::string& line) {
    if (place_.rank == 0 && !line.empty() && !std::exchange(has_told_, true)) kernels::notice(line);
  }

  void open_window() {
    check_wishes();
    if (!options_.shared_memory) {
      const std::string reason = options_.network.empty()
                                     ? "ranks exchange messages by algorithm " + options_.all_reduce
                                     : "ranks exchange messages on a simulated network";
      add_notice_of_devices(reason);
      return refuse(reason);
    }
    if (place_.local_size < place_.size) {
      add_notice_of_devices("the ranks are on several hosts");
      return refuse("the ranks are on several hosts");
    }
    SharedByRanks shared = share_memory(*this, Window::part_bytes(place_.size));
    if (!shared.memory) {
      notice_ = fmt::format("ranks of this host exchange messages: {}", shared.obstacle);
      add_notice_of_devices("ranks exchange messages");
      return refuse(shared.obstacle);
    }
    auto peers = std::make_unique<PeerProcesses>();
    peers->exchange(*this);
    DataAccess access = access_to(*peers);
    maps_blocks_ = access.blocks != nullptr;
    engines_->window = std::make_unique<WindowEngine>(Window(std::move(shared.memory), place_.size), place_.rank,
                                                      std::move(peers), std::move(access));
    open_devices();
  }

  void open_devices() {
    if (options_.device_copies == DeviceCopies::off) return;
    OpenedDevices opened =
        open_device_engine(*this, options_.device, engines_->window->peers(), options_.device_segments);
    if (opened.engine) engines_->use_devices(std::move(opened.engine));
    if (opened.obstacle.empty()) return;
    refuse_device_copies(opened.obstacle);
    add_notice_of_devices(opened.obstacle);
  }

  /// Collective: ranks on CPUs want to know nothing of GPUs.
  void add_notice_of_devices(std::string_view reason) {
    if (options_.device_copies == DeviceCopies::off || !has_gpus()) return;
    notice_ += fmt::format("{}tensors of GPUs go through host memory: {}", notice_.empty() ? "" : "; ", reason);
  }

  /// Whether any rank computes on one. Collective.
  bool has_gpus() {
    const std::vector<std::string> all = all_gather_bytes(options_.device.type == DeviceType::cuda ? "GPU" : "");
    return std::ranges::any_of(all, [](const std::string& one) { return !one.empty(); });
  }

  /// Collective.
  DataAccess access_to(const PeerProcesses& peers) {
    if (options_.single_copy == SingleCopy::off) {
      sharing_obstacle_ = fmt::format("{}=off", kSingleCopy);
      return {};
    }
    DataAccess access{.reading_obstacle = obstacle_to_reading(*this, peers)};
    if (!access.reading_obstacle.empty()) {
      refuse_single_copy(access.reading_obstacle);
    } else {
      const bool always = options_.single_copy == SingleCopy::on || peers.are_all_here();
      access.reads_from_bytes = always ? 0 : DataAccess::kLeastToRead;
    }
    if (peers.are_all_here()) return access;
    const bool is_on_cpu = options_.device.type == DeviceType::cpu;
    OpenedBlocks opened = open_peer_blocks(*this, is_on_cpu ? "" : "it computes on a GPU");
    sharing_obstacle_ = std::move(opened.obstacle);
    access.blocks = std::move(opened.blocks);
    return access;
  }

  /// A block that others can map, of zeros. Null on all ranks where one of them has none.
  std::shared_ptr<Storage> shared_block(std::int64_t bytes) {
    if (!maps_blocks_ || bytes < CpuAllocator::kLargeBlock) return nullptr;
    std::shared_ptr<Storage> storage;
    std::string fault;
    try {
      storage = std::make_shared<Storage>(bytes, Device{}, MemoryTag::comm);
      if (!cpu_allocator().find_shared(storage->data(), bytes)) fault = "it is in no file";
    } catch (const Error& error) {
      fault = error.what();
    }
    if (!first_fault(*this, fault).empty()) return nullptr;
    std::memset(storage->data(), 0, static_cast<std::size_t>(bytes));
    return storage;
  }

  /// Else some would wait for the others.
  void check_wishes() {
    check_wish(kSingleCopy, name_of_wish(options_.single_copy));
    check_wish(kCudaIpc, name_of_wish(options_.device_copies));
  }
  void check_wish(std::string_view variable, std::string_view wish) {
    const std::vector<std::string> all = all_gather_bytes(wish);
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all.front())
        throw AgreedError(fmt::format("{} is {} on rank 0 and {} on rank {}; give all ranks the same", variable,
                                      all.front(), all[rank], rank));
  }

  /// Both wishes.
  void refuse(const std::string& reason) {
    refuse_single_copy(reason);
    if (options_.device_copies == DeviceCopies::on && has_gpus()) refuse_device_copies(reason);
  }
  void refuse_single_copy(std::string_view reason) const {
    if (options_.single_copy == SingleCopy::on) throw AgreedError(fmt::format("{}=on: {}", kSingleCopy, reason));
  }
  void refuse_device_copies(std::string_view reason) const {
    if (options_.device_copies == DeviceCopies::on) throw AgreedError(fmt::format("{}=on: {}", kCudaIpc, reason));
  }

  Place place_;
  std::vector<int> node_of_rank_;
  NativeOptions options_;
  std::vector<AlgorithmChoice> choices_;
  std::string notice_;
  bool has_told_ = false;
  std::string sharing_obstacle_;
  bool maps_blocks_ = false;
  std::shared_ptr<Engines> engines_;
};

/// All ranks have the same words.
NetworkModel network_of(const NativeOptions& options, int ranks) {
  try {
    return real_time_network(options.network, ranks);
  } catch (const Error& error) {
    throw AgreedError(error.what());
  }
}

}  // namespace

NativeOptions native_options(std::string name, std::string_view algorithm, std::string_view network,
                             const EnvironmentLookup& environment) {
  if (!network.empty() && algorithm == "shared-memory")
    throw AgreedError(
        "algorithm shared-memory: sends no messages that a simulated network could hold up; choose auto, or one of "
        "messages");
  NativeOptions options{.name = std::move(name),
                        .network = std::string(network),
                        .single_copy = wish_of(kSingleCopy, environment, SingleCopy::automatic),
                        .device_copies = wish_of(kCudaIpc, environment, DeviceCopies::automatic)};
  if (algorithm == "auto" || algorithm == "shared-memory") return options;
  options.all_reduce = algorithm;
  options.shared_memory = false;
  return options;
}

std::unique_ptr<Backend> make_native_backend(const Place& place, const std::vector<int>& node_of_rank,
                                             std::unique_ptr<Transport> transport, const NativeOptions& options) {
  if (options.network.empty())
    return std::make_unique<NativeBackend>(place, node_of_rank, std::move(transport), options);
  const NetworkModel model = network_of(options, place.size);
  NativeOptions held_up = options;
  held_up.network = to_text(model);
  held_up.shared_memory = false;
  held_up.costs = real_time_costs_of(model);
  return std::make_unique<NativeBackend>(place, model.node_of_rank(),
                                         delay_messages(std::move(transport), place.rank, model), held_up);
}

}  // namespace tandem::comm
