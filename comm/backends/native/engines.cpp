// Works, and who has a turn.
#include "tandem/comm/backends/native/engines.h"

#include "tandem/comm/doctor/rank_status.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <exception>
#include <type_traits>
#include <utility>

namespace tandem::comm {

namespace {

constexpr int kLooksBeforeShown = 256;

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

/// Of an engine whose operations go on to their end.
template <typename Operation>
class EngineWork final : public Work {
 public:
  EngineWork(std::shared_ptr<Engines> engines, std::shared_ptr<Operation> operation)
      : engines_(std::move(engines)), operation_(std::move(operation)) {}
  bool poll() override {
    if (!is_complete()) engines_->poll();
    return is_complete();
  }
  void wait() override {
    Patience patience(engines_->many_ranks);
    while (!is_complete()) patience.pause(engines_->poll());
  }
  /// On GPUs: the host waits until the stream has all of it, for which the others' hosts are needed and no GPU.
  bool join(const Stream& stream) override {
    if constexpr (!std::is_same_v<Operation, DeviceOperation>) return Work::join(stream);
    Patience patience(engines_->many_ranks);
    while (!is_enqueued()) patience.pause(engines_->poll());
    if constexpr (std::is_same_v<Operation, DeviceOperation>) stream.wait(operation_->done);
    return true;
  }
  std::int64_t moves() const override { return engines_->moves; }

 private:
  bool is_enqueued() const {
    if constexpr (std::is_same_v<Operation, DeviceOperation>)
      if (!operation_->fault && operation_->stage == DeviceOperation::Stage::issued) return true;
    return is_complete();
  }
  /// Throws what it failed by.
  bool is_complete() const {
    if (operation_->fault) std::rethrow_exception(operation_->fault);
    return operation_->is_complete();
  }

  std::shared_ptr<Engines> engines_;
  std::shared_ptr<Operation> operation_;
};

template <typename Operation>
std::unique_ptr<Work> work_on(const std::shared_ptr<Engines>& engines, std::shared_ptr<Operation> operation) {
  return std::make_unique<EngineWork<Operation>>(engines, std::move(operation));
}

/// Of a collective that begins when all ranks have announced it.
class AgreedWork final : public Work {
 public:
  AgreedWork(std::shared_ptr<Engines> engines, std::shared_ptr<AnnouncedCollective> announced)
      : engines_(std::move(engines)), announced_(std::move(announced)) {}

  bool poll() override {
    if (!has_begun()) engines_->poll();
    return has_begun() && announced_->work->poll();
  }
  void wait() override {
    Patience patience(engines_->many_ranks);
    while (!has_begun()) patience.pause(engines_->poll());
    announced_->work->wait();
  }
  bool join(const Stream& stream) override {
    if (!announced_->is_on_gpu) return false;
    Patience patience(engines_->many_ranks);
    while (!has_begun()) patience.pause(engines_->poll());
    return announced_->work->join(stream);
  }
  std::int64_t moves() const override { return engines_->moves; }

 private:
  /// Throws why it has not.
  bool has_begun() const {
    if (announced_->fault) std::rethrow_exception(announced_->fault);
    return announced_->work != nullptr;
  }

  std::shared_ptr<Engines> engines_;
  std::shared_ptr<AnnouncedCollective> announced_;
};

Device device_of(const Collective& collective) {
  const Tensor& owner = collective.input_owner.defined() ? collective.input_owner : collective.output_owner;
  return owner.defined() ? owner.device() : Device{};
}

}  // namespace

void Engines::use_devices(std::unique_ptr<DeviceEngine> engine) {
  devices = std::move(engine);
  agreement_.emplace(devices->agreement());
  ended_.emplace(devices->ended_peer());
}

std::unique_ptr<Work> Engines::start(const Collective& collective) {
  if (!agreement_ || is_message(collective.kind)) return begin(collective);
  auto announced = std::make_shared<AnnouncedCollective>();
  announced->collective = collective;
  announced->is_on_gpu = device_of(collective).type != DeviceType::cpu;
  if (announced->is_on_gpu) announced->ready.record(current_stream(devices->device()));
  agreement_->add(announced);
  auto work = std::make_unique<AgreedWork>(shared_from_this(), std::move(announced));
  begin_agreed();
  return work;
}

/// In host memory.
std::unique_ptr<Work> Engines::begin(const Collective& collective) {
  if (window && window->takes(collective.kind)) return work_on(shared_from_this(), window->start(collective));
  return std::make_unique<MessageWork>(shared_from_this(), messages.start(collective));
}

/// Whether any has begun, or has failed.
bool Engines::begin_agreed() {
  bool moved = false;
  while (const std::shared_ptr<AnnouncedCollective> next = agreement_->take()) {
    moved = true;
    if (next->fault) continue;
    try {
      next->work = next->is_on_gpu ? work_on(shared_from_this(), devices->start(next->collective, next->ready))
                                   : begin(next->collective);
    } catch (...) {
      next->fault = std::current_exception();
    }
  }
  return moved;
}

/// Of a collective that has not begun: a rank that has failed, or has ended, will not come.
void Engines::check_agreement() {
  const AnnouncedCollective* const next = agreement_->next();
  if (next == nullptr) return;
  if (next->is_on_gpu) {
    try {
      devices->check_failures(next->collective);
    } catch (...) {
      agreement_->cancel_next(std::current_exception());
      return;
    }
  }
  const int ended = ended_->look([&](int rank) { return agreement_->waits_for(rank); });
  if (ended >= 0) fail("{}: {}", describe(next->collective), ended_->text_of(ended));
}

bool Engines::poll() {
  const bool message_moved = messages.poll(), window_moved = window && window->poll(),
             device_moved = devices && devices->poll(), agreement_moved = agreement_ && begin_agreed();
  if (message_moved || window_moved || device_moved || agreement_moved) {
    ++moves;
    if (steps != nullptr) show_step();
    return true;
  }
  if (steps != nullptr && ++idle_looks_ == kLooksBeforeShown) steps->wait(waits_for());
  if (window) {
    messages.transport().check();
    window->check_peers();
  }
  if (devices) {
    devices->check_peers();
    check_agreement();
  }
  return false;
}

void Engines::show_step() {
  steps->count(static_cast<std::uint64_t>(moves));
  if (idle_looks_ >= kLooksBeforeShown) steps->wait("");
  idle_looks_ = 0;
}

std::string Engines::waits_for() const {
  std::string text = messages.waits_for();
  if (text.empty() && window) text = window->waits_for();
  if (text.empty() && devices) text = devices->waits_for();
  if (text.empty() && agreement_) text = agreement_->waits_for();
  return text;
}

}  // namespace tandem::comm
