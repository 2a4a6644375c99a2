// Works of the engine, and groups of some ranks.
#include "tandem/comm/backends/native/native_backend.h"

#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <utility>

namespace tandem::comm {

namespace {

class NativeWork final : public Work {
 public:
  NativeWork(std::shared_ptr<NativeEngine> engine, std::shared_ptr<NativeOperation> operation)
      : engine_(std::move(engine)), operation_(std::move(operation)) {}
  ~NativeWork() override { engine_->cancel(*operation_); }
  NativeWork(const NativeWork&) = delete;
  NativeWork& operator=(const NativeWork&) = delete;

  bool poll() override {
    engine_->poll();
    return engine_->is_complete(*operation_);
  }
  void wait() override { engine_->wait_for(*operation_); }

 private:
  std::shared_ptr<NativeEngine> engine_;
  std::shared_ptr<NativeOperation> operation_;
};

class NativeBackend final : public Backend {
 public:
  NativeBackend(const Place& place, const std::vector<int>& node_of_rank, std::unique_ptr<Transport> transport,
                NativeOptions options)
      : place_(place), node_of_rank_(node_of_rank), options_(std::move(options)) {
    require(node_of_rank.size() == static_cast<std::size_t>(place.size), "native: hosts of {} ranks for a group of {}",
            node_of_rank.size(), place.size);
    engine_ =
        std::make_shared<NativeEngine>(std::move(transport), place.size, place.rank,
                                       all_reduce_algorithm(options_.all_reduce).make(node_of_rank), options_.segments);
  }

  std::string_view name() const override { return options_.name; }
  Place place() const override { return place_; }
  std::unique_ptr<Work> start(const Collective& collective) override {
    return std::make_unique<NativeWork>(engine_, engine_->start(collective));
  }
  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    std::vector<int> nodes;
    for (const int member : members) nodes.push_back(node_of_rank_[static_cast<std::size_t>(member)]);
    const auto mine = std::ranges::find(members, place_.rank);
    const Place place = place_of(nodes, static_cast<int>(mine - members.begin()));
    return std::make_unique<NativeBackend>(place, nodes, engine_->transport().subgroup(members), options_);
  }
  std::int64_t all_reduce_bytes_sent() const override { return engine_->all_reduce_bytes_sent(); }

 private:
  Place place_;
  std::vector<int> node_of_rank_;
  NativeOptions options_;
  std::shared_ptr<NativeEngine> engine_;
};

}  // namespace

std::unique_ptr<Backend> make_native_backend(const Place& place, const std::vector<int>& node_of_rank,
                                             std::unique_ptr<Transport> transport, const NativeOptions& options) {
  return std::make_unique<NativeBackend>(place, node_of_rank, std::move(transport), options);
}

}  // namespace tandem::comm
