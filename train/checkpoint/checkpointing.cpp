// When checkpoints are written, and which are gone on from.
#include "tandem/train/checkpoint/checkpointing.h"

#include "tandem/comm/agreement.h"
#include "tandem/core/number_text.h"
#include "tandem/train/metrics.h"

#include <cmath>
#include <filesystem>

namespace tandem::train {
namespace {

namespace fs = std::filesystem;

const std::string kBestKey = "best_value", kBestStepKey = "best_step";

bool is_checkpoint(const fs::path& path) {
  std::error_code none;
  return fs::exists(path / "training.safetensors", none) || fs::exists(path / "model.safetensors", none);
}

/// The checkpoint at `path`, or the newest in it.
FoundCheckpoint find(const fs::path& path) {
  std::error_code none;
  require(fs::is_directory(path, none), "{}: there is no such folder to go on from", path.string());
  if (is_checkpoint(path)) return {read_checkpoint(path.string()), path.string(), {}};
  const fs::path inner = path / "checkpoints";
  FoundCheckpoint found = CheckpointFolder((fs::is_directory(inner, none) ? inner : path).string()).newest();
  require(found.checkpoint || found.passed_over.empty(), "{}: none of the {} checkpoints can be read; the newest: {}",
          path.string(), found.passed_over.size(), found.passed_over.empty() ? "" : found.passed_over.front());
  return found;
}

}  // namespace

CheckpointInterval parse_checkpoint_interval(std::string_view text) {
  if (text == "epoch") return {};
  const bool is_time = text.ends_with('s');
  const std::optional<double> number = parse_number<double>(text.substr(0, text.size() - (is_time ? 1 : 0)));
  constexpr double kMost = 1e9;
  require(number && *number > 0.0 && *number <= kMost && (is_time || *number == std::floor(*number)),
          "a checkpoint interval is epoch, a number of steps (500) or of seconds (600s), got '{}'", text);
  return is_time ? CheckpointInterval{.seconds = *number}
                 : CheckpointInterval{.steps = static_cast<std::int64_t>(*number)};
}

std::string to_string(const CheckpointInterval& interval) {
  if (interval.steps > 0) return fmt::format("{}", interval.steps);
  return interval.seconds > 0.0 ? fmt::format("{}s", interval.seconds) : "epoch";
}

Checkpointing::Checkpointing(Trainer& trainer, comm::ProcessGroup& group, CheckpointFolder folder,
                             const CheckpointingOptions& options)
    : trainer_(trainer), group_(group), options_(options), writes_(!folder.path().empty()) {
  comm::run_agreed(group, [&] {
    require(options.every.steps >= 0 && options.every.seconds >= 0.0 && options.keep >= 1,
            "checkpoints: every {} steps or {} seconds, {} kept, make no sense", options.every.steps,
            options.every.seconds, options.keep);
    if (group.rank() == 0 && writes_) writer_ = std::make_unique<CheckpointWriter>(std::move(folder), options.keep);
  });
}

Resumed Checkpointing::resume(const std::string& path) {
  const FoundCheckpoint found = comm::run_agreed(group_, [&] { return find(path); });
  comm::check_same(group_, "the checkpoint to go on from", fmt::format("path={}\n", found.path));
  Resumed resumed{.path = found.path, .passed_over = found.passed_over};
  if (!found.checkpoint) return resumed;
  trainer_.load_state_dict(found.checkpoint->state);
  const layers::Metadata& metadata = found.checkpoint->metadata;
  if (metadata.contains(kBestKey) && metadata.contains(kBestStepKey)) {
    best_ = parse_number<double>(metadata.at(kBestKey));
    best_step_ = parse_number<std::int64_t>(metadata.at(kBestStepKey)).value_or(0);
    if (writer_ != nullptr) writer_->set_best(best_step_);
  }
  resumed.epochs = trainer_.epochs_done();
  resumed.steps = trainer_.steps_done();
  return resumed;
}

TrainObserver Checkpointing::with(const TrainObserver& observer) {
  if (!writes_) return observer;
  TrainObserver both = observer;
  both.progress = [this, inner = observer.progress](const Progress& progress) {
    if (inner) inner(progress);
    if (is_due(progress)) write();
  };
  both.epoch = [this, inner = observer.epoch](const EpochRecord& epoch) {
    if (inner) inner(epoch);
    if (options_.every.epochs) write_epoch(epoch);
  };
  return both;
}

/// Whether to write one behind this step, the same on all ranks. Behind an epoch's last one write_epoch() does.
bool Checkpointing::is_due(const Progress& progress) {
  if (progress.step == progress.steps && options_.every.epochs) return false;
  if (options_.every.steps > 0 && trainer_.steps_done() % options_.every.steps == 0) return true;
  if (options_.every.seconds == 0.0) return false;
  const double passed = std::chrono::duration<double>(Clock::now() - last_).count();
  return max_over_ranks(group_.rank() == 0 && passed >= options_.every.seconds ? 1.0 : 0.0, group_) > 0.0;
}

void Checkpointing::write_epoch(const EpochRecord& epoch) {
  const double merit = merit_of(epoch, options_.best_by);
  const bool is_best = !std::isnan(merit) && (!best_ || merit > *best_);
  if (is_best) {
    best_ = merit;
    best_step_ = trainer_.steps_done();
  }
  write(is_best);
}

void Checkpointing::write() { write(false); }

void Checkpointing::write(bool best) {
  require(writes_, "checkpoints: there is no folder to write them to");
  Checkpoint checkpoint{trainer_.state_dict(), options_.metadata};
  if (best_) {
    checkpoint.metadata[kBestKey] = fmt::format("{}", *best_);
    checkpoint.metadata[kBestStepKey] = fmt::format("{}", best_step_);
  }
  if (writer_ != nullptr) {
    writer_->write(trainer_.steps_done(), checkpoint, best);
    tell_problem();  // of the one before
  }
  last_ = Clock::now();
}

void Checkpointing::tell_problem() {
  const std::string problem = writer_->take_problem();
  if (!problem.empty() && options_.on_problem) options_.on_problem(problem);
}

std::string Checkpointing::finish() {
  if (writer_ == nullptr) return "";
  writer_->finish();
  return writer_->take_problem();
}

}  // namespace tandem::train
