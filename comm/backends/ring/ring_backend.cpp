// The ring's engine and its backend.
#include "tandem/comm/backends/ring/ring_backend.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tandem::comm {

namespace {

constexpr int kIdlePollsBeforeYield = 200;  // some tens of microseconds: what a message of a rank that is running takes
constexpr std::chrono::microseconds kYielding{500};  // then the other rank is computing, and may want this core
constexpr std::chrono::microseconds kNap{50};
constexpr int kTags = 32768;  // MPI promises tags up to 32767

class RingWork final : public Work {
 public:
  RingWork(std::shared_ptr<RingEngine> engine, std::shared_ptr<RingAllReduce> operation)
      : engine_(std::move(engine)), operation_(std::move(operation)) {}
  ~RingWork() override { engine_->cancel(*operation_); }

  bool poll() override {
    engine_->poll();
    return engine_->is_complete(*operation_);
  }
  void wait() override { engine_->wait_for(*operation_); }

 private:
  std::shared_ptr<RingEngine> engine_;
  std::shared_ptr<RingAllReduce> operation_;
};

class RingBackend final : public Backend {
 public:
  RingBackend(std::unique_ptr<Backend> others, std::unique_ptr<Transport> transport, RingOptions options)
      : others_(std::move(others)),
        engine_(std::make_shared<RingEngine>(std::move(transport), others_->place().size, others_->place().rank,
                                             options)) {}

  std::string_view name() const override { return "ring"; }
  Place place() const override { return others_->place(); }
  std::unique_ptr<Work> start_all_reduce(const CollectiveBuffer& buffer, ReduceOp op) override {
    return std::make_unique<RingWork>(engine_, engine_->start(buffer, op));
  }
  void broadcast(void* data, std::int64_t bytes, int root) override { others_->broadcast(data, bytes, root); }
  void all_gather(const void* mine, std::int64_t bytes, void* all) override { others_->all_gather(mine, bytes, all); }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override { return others_->all_gather_bytes(mine); }
  void barrier() override { others_->barrier(); }
  std::int64_t all_reduce_bytes_sent() const override { return engine_->bytes_sent(); }

 private:
  std::unique_ptr<Backend> others_;
  std::shared_ptr<RingEngine> engine_;
};

}  // namespace

std::shared_ptr<RingAllReduce> RingEngine::start(CollectiveBuffer buffer, ReduceOp op) {
  auto operation =
      std::make_shared<RingAllReduce>(*transport_, ranks_, rank_, next_tag_, std::move(buffer), op, options_);
  next_tag_ = (next_tag_ + 1) % kTags;
  active_.push_back(operation);
  poll();
  return operation;
}

bool RingEngine::poll() {
  bool moved = false;
  std::erase_if(active_, [&](const std::shared_ptr<RingAllReduce>& operation) {
    const std::size_t before = operation->messages();
    const bool complete = operation->poll();
    moved = moved || complete || operation->messages() != before;
    if (complete) bytes_sent_ += operation->bytes_sent();
    return complete;
  });
  return moved;
}

void RingEngine::wait_for(const RingAllReduce& operation) {
  using Clock = std::chrono::steady_clock;
  int idle = 0;
  Clock::time_point since;
  while (!is_complete(operation)) {
    if (poll()) {
      idle = 0;
      continue;
    }
    if (++idle < kIdlePollsBeforeYield) continue;
    // Ranks may outnumber the cores: the one we wait for may need ours.
    if (idle == kIdlePollsBeforeYield) since = Clock::now();
    if (Clock::now() - since < kYielding) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

bool RingEngine::is_complete(const RingAllReduce& operation) const {
  return std::none_of(active_.begin(), active_.end(), [&](const auto& active) { return active.get() == &operation; });
}

void RingEngine::cancel(const RingAllReduce& operation) {
  std::erase_if(active_, [&](const auto& active) { return active.get() == &operation; });
}

std::unique_ptr<Backend> make_ring_backend(std::unique_ptr<Backend> others, std::unique_ptr<Transport> transport,
                                           RingOptions options) {
  return std::make_unique<RingBackend>(std::move(others), std::move(transport), options);
}

}  // namespace tandem::comm
