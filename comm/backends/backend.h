// What a ProcessGroup is made of: collectives on flat memory, one implementation per backend.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/work.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

struct NetworkModel;
class StepStatus;

/// Where a rank stands among all ranks and among those of its host. `node` is the lowest rank on the same host.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
};

/// The place of `rank`, where `node_of_rank` has a number for each rank, alike for ranks of a host.
Place place_of(std::span<const int> node_of_rank, int rank);

/// Arguments are checked by ProcessGroup. Reductions come as f64, f32, i64 or i32, as f16 and bf16 only where
/// reduces_half() says so, and `average` only for floats. One thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  virtual Place place() const = 0;
  /// True if it does this on memory of this device; tensors of other devices are brought to host memory first. The same
  /// on all ranks, for the device that each of them computes on.
  virtual bool takes(Device device, CollectiveKind) const { return device.type == DeviceType::cpu; }
  /// What works on memory of a device that this backend takes: itself, or another backend that it holds.
  virtual Backend& on(Device) { return *this; }
  /// True if it reduces f16 and bf16 by this operation itself: in f32, and rounded once.
  virtual bool reduces_half(CollectiveKind, ReduceOp) const { return false; }

  /// Begins an operation, and returns at once. Several may be under way; the n-th collective that is started on one
  /// rank meets the n-th on every other. Messages meet by sender, receiver and tag, in their order.
  virtual std::unique_ptr<Work> start(const Collective& collective) = 0;
  /// The same to its end.
  virtual void run(const Collective& collective) { start(collective)->wait(); }

  /// Why a WorkGraph cannot record operations on this device, which start() begins and Work::join() ends; "": it can.
  /// Where it can, all ranks record the same operations in one order, or none does.
  virtual std::string recording_obstacle(Device device) const;
  /// A WorkGraph that has recorded operations was launched on the current stream: a work that is complete once it has
  /// done all that the stream holds. `like` says what of, and is not done.
  virtual std::unique_ptr<Work> launched(const Collective& like);

  /// All ranks' byte strings, by rank.
  virtual std::vector<std::string> all_gather_bytes(std::string_view mine);

  /// A backend of this kind between some of the ranks, which get the numbers of their places in `members`. Called by
  /// all members, and by no others, in the same order as other calls that have one of them in common.
  virtual std::unique_ptr<Backend> subgroup(std::span<const int> members) = 0;

  /// Host memory whose reductions copy nothing between these ranks, filled with zeros; null where there is no such
  /// memory, on all ranks alike. Collective; throws Error on all ranks where they do not ask for the same.
  virtual std::shared_ptr<Storage> allocate_shared(std::int64_t /*bytes*/) { return nullptr; }

  /// What messages cost between these ranks, measured now; nothing where a backend sends none itself. Collective.
  virtual std::optional<MessageCosts> measure_costs() { return std::nullopt; }
  /// Chooses algorithms by these costs, rank 0's, from now on. Collective.
  virtual void use_costs(const MessageCosts& /*costs*/) {}
  /// The costs by which it chooses, or would: what use_costs() was given, or the usual ones; nothing where it sends
  /// none itself.
  virtual std::optional<MessageCosts> costs() const { return std::nullopt; }
  /// Seconds of an all-reduce of so many bytes by these costs; nothing where it does not go by messages of its own.
  /// Ranks may round it otherwise.
  virtual std::optional<double> predicted_all_reduce_seconds(std::int64_t /*bytes*/) const { return std::nullopt; }
  /// How sums over the ranks are taken, as in GroupOptions::algorithm; empty where the backend does not say.
  virtual std::string_view algorithm() const { return ""; }
  /// What was chosen by costs; empty where nothing is.
  virtual std::vector<AlgorithmChoice> algorithm_choices() const { return {}; }

  /// The network that is simulated, as to_text() says it (comm/transports/simulated/network_model.h); empty where
  /// messages go as fast as they can.
  virtual std::string network() const { return ""; }

  virtual std::int64_t all_reduce_bytes_sent() const { return 0; }
  /// What a user may want to know of how it came to work as it does; mostly empty, the same on all ranks.
  virtual std::string notice() const { return ""; }
  /// Why ranks of one host copy tensors through a window, where they could see them where these are; mostly empty, the
  /// same on all ranks.
  virtual std::string sharing_obstacle() const { return ""; }

  /// From now on this rank writes there where its algorithms are; null: nowhere. What sends no messages itself says
  /// nothing. The group is set up by then, and its ranks watch each other.
  virtual void show_steps(StepStatus* /*status*/) {}

  /// True if works under way move on in polls and waits only: a thread may poll them then (comm/progress/).
  virtual bool moves_by_polls() const { return false; }
  /// Of such a backend: why another thread than the caller's cannot use it, the caller keeping away; mostly empty.
  virtual std::string thread_obstacle() const { return ""; }
};

/// The backend of a group of one, which sends nothing.
std::unique_ptr<Backend> make_self_backend();

/// The same with costs() of messages on a network, and predicted_all_reduce_seconds() of two ranks, each on a host of
/// its own: gradients are cut into the same buckets as on two ranks, of which the speed-up is predicted then.
std::unique_ptr<Backend> make_self_backend(const NetworkModel& network);

}  // namespace tandem::comm
