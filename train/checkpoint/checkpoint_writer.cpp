// A thread for each checkpoint.
#include "tandem/train/checkpoint/checkpoint_writer.h"

#include "tandem/core/error.h"
#include "tandem/core/serial_scope.h"

#include <exception>

namespace tandem::train {

CheckpointWriter::CheckpointWriter(CheckpointFolder folder, std::int64_t keep)
    : folder_(std::move(folder)), keep_(keep) {
  require(keep >= 1, "checkpoints: cannot keep {}; keep 1 or more", keep);
  folder_.prepare();
}

CheckpointWriter::~CheckpointWriter() { finish(); }

void CheckpointWriter::write(std::int64_t step, const Checkpoint& checkpoint, bool best) {
  finish();
  Checkpoint copy{{}, checkpoint.metadata};
  for (const auto& [name, tensor] : checkpoint.state) {
    require(tensor.defined(), "checkpoints: tensor {} is undefined", name);
    const Tensor value = tensor.detach();
    copy.state.emplace_back(name, value.device() == Device{} ? value.clone() : value.to(Device{}));
  }
  const std::vector<std::int64_t> kept = best ? std::vector{step} : best_;
  writing_ = std::async(std::launch::async, [this, step, kept, checkpoint = std::move(copy)] {
    const SerialScope alone;  // a team of threads would compete with training
    folder_.write(step, checkpoint);
    folder_.keep(keep_, kept);
  });
  best_ = kept;
}

void CheckpointWriter::finish() {
  if (!writing_.valid()) return;
  try {
    writing_.get();
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
}

}  // namespace tandem::train
