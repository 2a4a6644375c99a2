// Works of both engines, and groups of some ranks.
#include "tandem/comm/backends/native/native_backend.h"

#include "tandem/comm/backends/native/measure_costs.h"
#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"
#include "tandem/kernels/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tandem::comm {

namespace {

/// Whichever operation is polled or waited for, all move on.
struct Engines {
  explicit Engines(NativeEngine engine) : messages(std::move(engine)) {}

  bool poll() {
    const bool message_moved = messages.poll(), window_moved = window && window->poll();
    if (message_moved || window_moved) {
      ++moves;
      return true;
    }
    if (window) {
      messages.transport().check();
      window->check_peers();
    }
    return false;
  }

  NativeEngine messages;
  std::int64_t moves = 0;                // polls that moved anything
  bool many_ranks = false;               // more of them than cores
  std::unique_ptr<WindowEngine> window;  // null where ranks exchange messages only
};

class MessageWork final : public Work {
 public:
  MessageWork(std::shared_ptr<Engines> engines, std::shared_ptr<NativeOperation> operation)
      : engines_(std::move(engines)), operation_(std::move(operation)) {}
  ~MessageWork() override { engines_->messages.cancel(*operation_); }
  MessageWork(const MessageWork&) = delete;
  MessageWork& operator=(const MessageWork&) = delete;

  bool poll() override {
    engines_->poll();
    return is_complete();
  }
  void wait() override {
    Patience patience(engines_->many_ranks);
    while (!is_complete()) patience.pause(engines_->poll());
  }
  std::int64_t moves() const override { return engines_->moves; }

 private:
  bool is_complete() const { return engines_->messages.is_complete(*operation_); }

  std::shared_ptr<Engines> engines_;
  std::shared_ptr<NativeOperation> operation_;
};

class WindowWork final : public Work {
 public:
  WindowWork(std::shared_ptr<Engines> engines, std::shared_ptr<WindowOperation> operation)
      : engines_(std::move(engines)), operation_(std::move(operation)) {}
  bool poll() override {
    if (!is_complete()) engines_->poll();
    return is_complete();
  }
  void wait() override {
    Patience patience(engines_->many_ranks);
    while (!is_complete()) patience.pause(engines_->poll());
  }
  std::int64_t moves() const override { return engines_->moves; }

 private:
  /// Throws what it failed by.
  bool is_complete() const {
    if (operation_->fault) std::rethrow_exception(operation_->fault);
    return operation_->stage == WindowOperation::Stage::complete;
  }

  std::shared_ptr<Engines> engines_;
  std::shared_ptr<WindowOperation> operation_;
};

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
    if (options_.shared_memory && place.size > 1 && place.local_size == place.size) open_window();
    choose();
  }

  std::string_view name() const override { return options_.name; }
  Place place() const override { return place_; }
  bool reduces_half(CollectiveKind kind) const override { return engines_->window && WindowEngine::takes(kind); }
  std::unique_ptr<Work> start(const Collective& collective) override {
    if (engines_->window && WindowEngine::takes(collective.kind))
      return std::make_unique<WindowWork>(engines_, engines_->window->start(collective));
    return std::make_unique<MessageWork>(engines_, engines_->messages.start(collective));
  }
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
    const SharedByRanks shared = share_memory(*this, SharedParts::part_bytes(bytes));
    if (shared.memory) return engines_->window->parts().add(shared.memory, bytes);
    tell_obstacle(fmt::format("tensors share no memory between ranks, and take longer to reduce: {}", shared.obstacle));
    return nullptr;
  }
  std::string notice() const override { return notice_; }
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
    SharedByRanks shared = share_memory(*this, Window::part_bytes(place_.size));
    if (!shared.memory) {
      notice_ = fmt::format("ranks of this host exchange messages: {}", shared.obstacle);
      return;
    }
    auto peers = std::make_unique<PeerProcesses>();
    peers->exchange(*this);
    engines_->window =
        std::make_unique<WindowEngine>(Window(std::move(shared.memory), place_.size), place_.rank, std::move(peers));
  }

  Place place_;
  std::vector<int> node_of_rank_;
  NativeOptions options_;
  std::vector<AlgorithmChoice> choices_;
  std::string notice_;
  bool has_told_ = false;
  std::shared_ptr<Engines> engines_;
};

}  // namespace

NativeOptions native_options(std::string name, std::string_view algorithm) {
  NativeOptions options{.name = std::move(name)};
  if (algorithm == "auto" || algorithm == "shared-memory") return options;
  options.all_reduce = algorithm;
  options.shared_memory = false;
  return options;
}

std::unique_ptr<Backend> make_native_backend(const Place& place, const std::vector<int>& node_of_rank,
                                             std::unique_ptr<Transport> transport, const NativeOptions& options) {
  return std::make_unique<NativeBackend>(place, node_of_rank, std::move(transport), options);
}

}  // namespace tandem::comm
