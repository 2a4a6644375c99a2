// A thread for each checkpoint.
#include "tandem/train/checkpoint/checkpoint_writer.h"

#include "tandem/core/error.h"
#include "tandem/core/serial_scope.h"
#include "tandem/kernels/optimizer/all_finite.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>

namespace tandem::train {
namespace {

bool has_nan(const Tensor& tensor) {
  if (kernels::all_finite(std::array{tensor})) return false;
  const auto values = tensor.to_vector<double>();
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

/// Of the epoch in work, on some rank: the first entry of its row.
bool has_bad_loss(const Tensor& epoch_sums) {
  if (epoch_sums.rank() != 2 || epoch_sums.size(1) == 0 || epoch_sums.dtype() != DType::f64) return false;
  const auto sums = epoch_sums.to_vector<double>();
  const auto columns = static_cast<std::size_t>(epoch_sums.size(1));
  for (std::size_t row = 0; row < sums.size(); row += columns)
    if (!std::isfinite(sums[row])) return true;
  return false;
}

/// Throws Error where the state of a model or an optimizer has NaN, or a loss was not finite.
void check_numbers(const std::string& path, const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.state) {
    require(name != "trainer.epoch_sums" || !has_bad_loss(tensor), "{}: not written: the loss is not a finite number",
            path);
    const bool is_of_run = !name.starts_with("model.") && !name.starts_with("optimizer.");
    if (is_of_run || !is_floating(tensor.dtype())) continue;
    require(!has_nan(tensor), "{}: not written: {} has values that are not numbers (NaN)", path, name);
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointFolder folder, std::int64_t keep)
    : folder_(std::move(folder)), keep_(keep) {
  require(keep >= 1, "checkpoints: cannot keep {}; keep 1 or more", keep);
  lock_ = folder_.prepare();
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
  maybe_best_ = best ? step : best_;
  writing_ = std::async(std::launch::async, [this, step, checkpoint = std::move(copy)] {
    const SerialScope alone;  // a team of threads would compete with training
    check_numbers(folder_.path_of(step), checkpoint);
    folder_.write(step, checkpoint);
    is_there_ = true;
    tidy(step);
  });
}

/// Removes what is not to be kept behind the one of this step. In the thread that writes.
void CheckpointWriter::tidy(std::int64_t step) {
  const std::vector<std::int64_t> there = folder_.steps();
  for (const std::int64_t old : std::exchange(replaced_, {})) {
    if (old != step && std::binary_search(there.begin(), there.end(), old)) folder_.remove(old);
  }
  folder_.keep(keep_, maybe_best_ ? std::vector{*maybe_best_} : std::vector<std::int64_t>());
}

bool CheckpointWriter::is_ready() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void CheckpointWriter::finish() {
  if (!writing_.valid()) return;
  has_written_ = false;
  try {
    writing_.get();
    has_written_ = true;
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
  if (std::exchange(is_there_, false)) best_ = maybe_best_;
}

}  // namespace tandem::train
