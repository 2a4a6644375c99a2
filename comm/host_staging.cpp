// The queue of copies, and the works behind them.
#include "tandem/comm/host_staging.h"

#include <algorithm>

namespace tandem::comm {

namespace {

Tensor pinned_like(const Tensor& tensor) {
  const MemoryTagScope scope(MemoryTag::comm);
  const Tensor flat = Tensor::empty(tensor.shape(), {.dtype = tensor.dtype(), .pinned = true});
  return tensor.numel() > 0 ? flat.as_strided(tensor.shape(), tensor.strides(), 0) : flat;
}

/// Room for both in pinned memory, in the same strides: the same room where they are the same tensor.
StagedTensors pinned_room(const StagedTensors& tensors) {
  StagedTensors room;
  if (tensors.input.defined()) room.input = pinned_like(tensors.input);
  if (tensors.output.defined()) {
    const bool is_same = tensors.input.defined() && tensors.input.is_same(tensors.output);
    room.output = is_same ? room.input : pinned_like(tensors.output);
  }
  return room;
}

/// Lets `later` begin after all that `earlier` holds now.
void put_behind(const Stream& later, const Stream& earlier) {
  Event mark;
  mark.record(earlier);
  later.wait(mark);
}

}  // namespace

struct HostStaging::Transfer {
  StagedTensors device, host;
  Stream stream;
  Event copied;
  Start start;
  std::unique_ptr<Work> work;  // null before it has started

  void finish() {
    if (device.output.defined()) {
      {
        const StreamScope scope(stream);
        device.output.copy_from_async(host.output);
      }
      put_behind(current_stream(device.device()), stream);
    }
    work.reset();
    host = {};
  }
};

class HostStaging::StagedWork final : public Work {
 public:
  StagedWork(HostStaging& staging, std::shared_ptr<Transfer> transfer)
      : staging_(staging), transfer_(std::move(transfer)) {}
  ~StagedWork() override { std::erase(staging_.waiting_, transfer_); }
  StagedWork(const StagedWork&) = delete;
  StagedWork& operator=(const StagedWork&) = delete;

  bool poll() override {
    if (done_) return true;
    staging_.start_copied();
    if (transfer_->work && transfer_->work->poll()) finish();
    return done_;
  }

  void wait() override {
    if (done_) return;
    while (!transfer_->work) staging_.start_front();
    transfer_->work->wait();
    finish();
  }

 private:
  void finish() {
    transfer_->finish();
    done_ = true;
  }

  HostStaging& staging_;
  std::shared_ptr<Transfer> transfer_;
  bool done_ = false;
};

std::unique_ptr<Work> HostStaging::enqueue(const StagedTensors& tensors, Start start) {
  auto transfer = std::make_shared<Transfer>();
  // Detached: by the time of finish(), recording may be on again.
  if (tensors.input.defined()) transfer->device.input = tensors.input.detach();
  if (tensors.output.defined()) transfer->device.output = tensors.output.detach();
  transfer->host = pinned_room(tensors);
  transfer->stream = stream_of(tensors.device());
  transfer->start = std::move(start);
  put_behind(transfer->stream, current_stream(tensors.device()));
  if (tensors.input.defined()) {
    const StreamScope scope(transfer->stream);
    transfer->host.input.copy_from_async(transfer->device.input);
  }
  for (const Tensor& tensor : {tensors.input, tensors.output}) {
    if (tensor.defined()) tensor.storage()->record_stream(transfer->stream);
  }
  transfer->copied.record(transfer->stream);
  waiting_.push_back(transfer);
  return std::make_unique<StagedWork>(*this, std::move(transfer));
}

void HostStaging::run(const StagedTensors& tensors, const std::function<void(const StagedTensors&)>& body) {
  const StagedTensors host = pinned_room(tensors);
  if (tensors.input.defined()) host.input.copy_from(tensors.input);
  body(host);
  if (tensors.output.defined()) tensors.output.copy_from(host.output);
}

void HostStaging::start_all() {
  while (!waiting_.empty()) start_front();
}

void HostStaging::start_front() {
  const std::shared_ptr<Transfer> transfer = waiting_.front();
  transfer->copied.synchronize();
  waiting_.pop_front();
  transfer->work = transfer->start(transfer->host);
}

void HostStaging::start_copied() {
  while (!waiting_.empty() && waiting_.front()->copied.is_done()) start_front();
}

Stream& HostStaging::stream_of(Device device) {
  if (!stream_ || stream_->device() != device) stream_ = Stream(device);
  return *stream_;
}

}  // namespace tandem::comm
