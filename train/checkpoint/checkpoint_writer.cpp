// A thread for each checkpoint.
#include "tandem/train/checkpoint/checkpoint_writer.h"

#include "tandem/core/error.h"
#include "tandem/core/profiler.h"
#include "tandem/core/serial_scope.h"
#include "tandem/kernels/optimizer/all_finite.h"

#include <sys/resource.h>  // setpriority
#include <sys/stat.h>
#include <unistd.h>  // gettid

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

/// Device and inode of what `path` names; zeros where that is nothing.
std::pair<std::uint64_t, std::uint64_t> identity_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
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

bool is_running(const std::future<void>& work) {
  return work.valid() && work.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

/// Lets this thread, which ends with what it writes, have the cores when training leaves them.
void yield_to_training() {
  constexpr int kNice = 5;  // about a third of the share of others: it still gets on where all cores are busy
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), ::getpriority(PRIO_PROCESS, 0) + kNice);
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointFolder folder, std::int64_t keep)
    : folder_(std::move(folder)), keep_(keep) {
  require(keep >= 1, "checkpoints: cannot keep {}; keep 1 or more", keep);
  hold();
}

CheckpointWriter::~CheckpointWriter() { finish(); }

void CheckpointWriter::hold() {
  lock_.reset();
  lock_ = folder_.prepare();
  held_ = identity_of(folder_.path());
}

/// Whether the path leads to the folder that this writer holds: somebody may have removed it, or put another there.
bool CheckpointWriter::is_held() const { return identity_of(folder_.path()) == held_; }

void CheckpointWriter::begin_again() {
  finish();
  if (!is_held()) hold();
}

/// Writes one, if need be in a folder made again; false where it was given up. In the thread that writes.
bool CheckpointWriter::put(std::int64_t step, const Checkpoint& checkpoint, const std::stop_token& stop) {
  const auto make_again = [this] {
    hold();
    was_removed_ = true;
  };
  if (!is_held()) make_again();
  try {
    return folder_.write(step, checkpoint, stop);
  } catch (const Error&) {
    if (is_held()) throw;
    make_again();  // it was removed meanwhile
    return folder_.write(step, checkpoint, stop);
  }
}

void CheckpointWriter::prepare(const NamedTensors& state, bool twice) {
  finish();
  const auto on_gpu = std::ranges::find_if(state, [](const auto& entry) { return entry.second.device() != Device{}; });
  const Stream stream = on_gpu == state.end() ? Stream() : current_stream(on_gpu->second.device());
  preparing_ = std::async(std::launch::async, [this, state, stream, twice] {
    yield_to_training();
    const StreamScope scope(stream);  // pinned memory is of this GPU's context
    copy_.reserve(state);
    if (twice) taken_.reserve(state);
  });
}

void CheckpointWriter::take(const NamedTensors& state) {
  finish_preparing();
  if (!is_running(writing_)) std::swap(copy_, taken_);  // memory that is free, and was used last
  try {
    return taken_.take(state);
  } catch (const Error&) {
    if (!is_running(writing_)) throw;
  }
  // There is no memory for two: this one gets that of the other, which must be written first.
  taken_ = {};
  writing_.wait();
  std::swap(copy_, taken_);
  taken_.take(state);
}

void CheckpointWriter::begin(std::int64_t step, const layers::Metadata& metadata, bool best) {
  finish();
  std::swap(copy_, taken_);
  maybe_best_ = best ? step : best_;
  stop_ = {};
  writing_ = std::async(std::launch::async, [this, step, metadata, stop = stop_.get_token()] {
    const ProfileRange range(kWritesCheckpoint);
    const SerialScope alone;  // a team of threads would compete with training
    yield_to_training();
    copy_.wait();
    const Checkpoint copy{copy_.tensors(), metadata};
    check_numbers(folder_.path_of(step), copy);
    if (!put(step, copy, stop)) return;
    is_there_ = true;
    tidy(step);
  });
}

std::string CheckpointWriter::obstacle_to(std::int64_t step, const NamedTensors& state) const {
  try {
    check_numbers(folder_.path_of(step), {state, {}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void CheckpointWriter::write(std::int64_t step, const Checkpoint& checkpoint, bool best) {
  finish();
  take(checkpoint.state);
  begin(step, checkpoint.metadata, best);
}

/// Removes what is not to be kept behind the one of this step. In the thread that writes.
void CheckpointWriter::tidy(std::int64_t step) {
  const std::vector<std::int64_t> there = folder_.steps();
  for (const std::int64_t old : std::exchange(replaced_, {})) {
    if (old != step && std::binary_search(there.begin(), there.end(), old)) folder_.remove(old);
  }
  folder_.keep(keep_, maybe_best_ ? std::vector{*maybe_best_} : std::vector<std::int64_t>());
}

bool CheckpointWriter::is_free() const { return !is_running(preparing_) && !is_running(writing_); }

/// Where there was too little memory, take() says so when it needs it.
void CheckpointWriter::finish_preparing() {
  if (preparing_.valid()) std::exchange(preparing_, {}).wait();
}

void CheckpointWriter::finish() {
  finish_preparing();
  if (!writing_.valid()) return;
  has_written_ = false;
  try {
    writing_.get();
    has_written_ = is_there_;
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
  if (std::exchange(is_there_, false)) best_ = maybe_best_;
}

}  // namespace tandem::train
