// A backend whose works move on while their rank computes.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/progress/progress_thread.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// Another backend and a ProgressThread for its works: what is computed are the same bits. All calls of the backend
/// are within an Entry. Groups that are split off have a thread each.
class ProgressBackend final : public Backend {
 public:
  /// `backend` moves_by_polls(), and has no thread_obstacle(). Throws Error where the system gives no thread.
  ProgressBackend(std::unique_ptr<Backend> backend, bool many_threads)
      : backend_(std::move(backend)), many_threads_(many_threads), thread_(many_threads) {}

  /// The backend as it was; not to be called twice, and while no work is under way.
  static std::unique_ptr<Backend> without_thread(std::unique_ptr<ProgressBackend> backend) {
    return std::move(backend->backend_);
  }
  bool is_idle() { return thread_.is_idle(); }

  std::string_view name() const override { return backend_->name(); }
  Place place() const override { return backend_->place(); }
  bool takes(Device device, CollectiveKind kind) const override { return backend_->takes(device, kind); }
  bool reduces_half(CollectiveKind kind, ReduceOp op) const override { return backend_->reduces_half(kind, op); }

  std::unique_ptr<Work> start(const Collective& collective) override {
    return thread_.add([&] { return backend_->start(collective); });
  }
  void run(const Collective& collective) override {
    const auto inside = thread_.enter();
    backend_->run(collective);
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    const auto inside = thread_.enter();
    return backend_->all_gather_bytes(mine);
  }
  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    const auto inside = thread_.enter();
    return std::make_unique<ProgressBackend>(backend_->subgroup(members), many_threads_);
  }
  std::shared_ptr<Storage> allocate_shared(std::int64_t bytes) override {
    const auto inside = thread_.enter();
    return backend_->allocate_shared(bytes);
  }
  std::optional<MessageCosts> measure_costs() override {
    const auto inside = thread_.enter();
    return backend_->measure_costs();
  }
  void use_costs(const MessageCosts& costs) override {
    const auto inside = thread_.enter();
    backend_->use_costs(costs);
  }
  std::int64_t all_reduce_bytes_sent() const override {
    const auto inside = thread_.enter();  // works that move on count what they send
    return backend_->all_reduce_bytes_sent();
  }

  // What does not change while works move on.
  std::optional<MessageCosts> costs() const override { return backend_->costs(); }
  std::optional<double> predicted_all_reduce_seconds(std::int64_t bytes) const override {
    return backend_->predicted_all_reduce_seconds(bytes);
  }
  std::string_view algorithm() const override { return backend_->algorithm(); }
  std::string network() const override { return backend_->network(); }
  std::vector<AlgorithmChoice> algorithm_choices() const override { return backend_->algorithm_choices(); }
  std::string notice() const override { return backend_->notice(); }
  std::string sharing_obstacle() const override { return backend_->sharing_obstacle(); }
  bool moves_by_polls() const override { return true; }

 private:
  std::unique_ptr<Backend> backend_;
  bool many_threads_;
  mutable ProgressThread thread_;  // ends before the backend does
};

}  // namespace tandem::comm
