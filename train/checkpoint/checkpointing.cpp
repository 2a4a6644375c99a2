// When checkpoints are written, and which are gone on from.
#include "tandem/train/checkpoint/checkpointing.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/number_text.h"
#include "tandem/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace tandem::train {
namespace {

namespace fs = std::filesystem;

constexpr double kNoMerit = std::numeric_limits<double>::quiet_NaN();  // of one that is not of an epoch's end

const std::string kBestKey = "best_value", kBestStepKey = "best_step", kBestByKey = "best_by",
                  kEpochSecondsKey = "epoch_seconds";

bool is_checkpoint(const fs::path& path) {
  std::error_code none;
  return fs::exists(path / "training.safetensors", none) || fs::exists(path / "model.safetensors", none);
}

/// The folder that `path` names, or that of the checkpoint whose file it names.
fs::path folder_of(const fs::path& path) {
  std::error_code none;
  require(fs::exists(path, none), "{}: there is no such folder to go on from; name one of a run that wrote checkpoints",
          path.string());
  if (fs::is_directory(path, none)) return path;
  const fs::path folder = fs::absolute(path, none).parent_path();
  require(fs::is_regular_file(path, none) && is_checkpoint(folder),
          "{}: is no file of a checkpoint: name a run's folder, a checkpoint's folder (step-...), or a file in one",
          path.string());
  return path.has_parent_path() ? path.parent_path() : folder;
}

/// The checkpoint at `given`, or the newest in it.
FoundCheckpoint find(const fs::path& given) {
  const fs::path path = folder_of(given);
  std::error_code none;
  if (is_checkpoint(path)) return {read_checkpoint(path.string()), path.string(), {}};
  const fs::path inner = path / "checkpoints";
  FoundCheckpoint found = CheckpointFolder((fs::is_directory(inner, none) ? inner : path).string()).newest();
  require(found.checkpoint || found.passed_over.empty(), "{}: none of the {} checkpoints can be read; the newest: {}",
          path.string(), found.passed_over.size(), found.passed_over.empty() ? "" : found.passed_over.front());
  return found;
}

/// What went wrong, without the files, steps and bytes, which differ each time.
std::string reason_of(const std::string& problem) {
  const std::size_t colon = problem.rfind(": ");
  std::string reason = colon == std::string::npos ? problem : problem.substr(colon);
  const std::size_t after = reason.find(" (after "), end = reason.find(')', after);
  if (after != std::string::npos && end != std::string::npos) reason.erase(after, end + 1 - after);
  std::erase_if(reason, [](char c) { return c >= '0' && c <= '9'; });
  return reason;
}

std::string text_of(const layers::Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

/// What the epoch in work had taken; 0 where a checkpoint does not tell, as older ones do not.
double epoch_seconds_of(const layers::Metadata& metadata) {
  const double seconds = parse_number<double>(text_of(metadata, kEpochSecondsKey)).value_or(0.0);
  return std::isfinite(seconds) ? std::max(seconds, 0.0) : 0.0;
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
    require(options.every.steps >= 0 && options.every.seconds >= 0.0,
            "checkpoints: every {} steps or {} seconds: both must be 0 (not by these) or more", options.every.steps,
            options.every.seconds);
    require(options.keep >= 1, "checkpoints: cannot keep {}; keep 1 or more", options.keep);
    if (group.rank() == 0 && writes_) writer_ = std::make_unique<CheckpointWriter>(std::move(folder), options.keep);
  });
}

Checkpointing::~Checkpointing() {
  options_.on_problem = {};
  try {
    wait();
  } catch (const std::exception&) {  // such as no thread
  }
}

Resumed Checkpointing::resume(const std::string& path) {
  const FoundCheckpoint found = comm::run_agreed(group_, [&] {
    const comm::LongWork reading;
    return find(path);
  });
  comm::check_same(group_, "the checkpoint to go on from", fmt::format("path={}\n", found.path));
  Resumed resumed{.path = found.path, .passed_over = found.passed_over};
  if (!found.checkpoint) return resumed;
  const layers::Metadata& metadata = found.checkpoint->metadata;
  comm::run_agreed(group_, [&] {
    const comm::LongWork comparing;
    if (options_.accept) options_.accept(metadata);
  });
  trainer_.load_state_dict(found.checkpoint->state);
  take_best(metadata, found.path);
  trainer_.set_epoch_seconds(epoch_seconds_of(metadata));
  if (is_in_own_folder(found.path) && !found.passed_over.empty()) {
    std::vector<std::int64_t> later = writer_->folder().steps();
    std::erase_if(later, [&](std::int64_t step) { return step <= trainer_.steps_done(); });
    writer_->replace(later);
  }
  check_folder();
  resumed.epochs = trainer_.epochs_done();
  resumed.steps = trainer_.steps_done();
  return resumed;
}

/// Whether new checkpoints are written beside this one.
bool Checkpointing::is_in_own_folder(const std::string& path) const {
  std::error_code none;
  return writer_ != nullptr && fs::equivalent(fs::path(path).parent_path(), writer_->folder().path(), none);
}

/// The best so far, by the figure that this run goes by, too. In this run's folder it may lack: a stop that was cut
/// short has not come to it.
void Checkpointing::take_best(const layers::Metadata& metadata, const std::string& path) {
  const auto merit = parse_number<double>(text_of(metadata, kBestKey));
  const auto step = parse_number<std::int64_t>(text_of(metadata, kBestStepKey));
  if (!merit || std::isnan(*merit) || !step || text_of(metadata, kBestByKey) != name_of(options_.best_by)) return;
  if (is_in_own_folder(path) && !is_checkpoint(writer_->folder().path_of(*step))) return;
  best_ = {*merit, *step};
  if (writer_ != nullptr) writer_->set_best(*step);
}

TrainObserver Checkpointing::with(const TrainObserver& observer) {
  if (!writes_) return observer;
  check_folder();
  TrainObserver both = observer;
  both.progress = [this, inner = observer.progress](const Progress& progress) {
    if (inner) inner(progress);
    begin_if_free();
    if (is_due(progress)) take(kNoMerit);
    prepare();
  };
  both.epoch = [this, inner = observer.epoch](const EpochRecord& epoch) {
    if (inner) inner(epoch);
    if (options_.every.epochs && !epoch.diverged) take(merit_of(epoch, options_.best_by));
  };
  return both;
}

/// Refuses a folder whose newest checkpoint would go on being another one than this run's.
void Checkpointing::check_folder() {
  comm::run_agreed(group_, [&] {
    if (writer_ == nullptr) return;
    const comm::LongWork slow_disk;
    const std::vector<std::int64_t>& replaced = writer_->replaced();
    std::vector<std::int64_t> steps = writer_->folder().steps();
    std::erase_if(steps, [&](std::int64_t step) {
      return step <= trainer_.steps_done() || std::find(replaced.begin(), replaced.end(), step) != replaced.end();
    });
    require(
        steps.empty(),
        "{}: holds one of step {}, and this run is behind step {}: go on from the newest checkpoint, remove those of "
        "later steps, or name another folder",
        writer_->folder().path(), steps.empty() ? 0 : steps.back(), trainer_.steps_done());
  });
}

bool Checkpointing::is_better(const Candidate& candidate, const std::optional<Candidate>& best) {
  return !std::isnan(candidate.merit) && (!best || candidate.merit > best->merit);
}

/// Whether to write one behind this step, the same on all ranks: one is due, and the writer of rank 0 is free and has
/// memory. Behind an epoch's last step comes that of its end.
bool Checkpointing::is_due(const Progress& progress) {
  if (progress.step == progress.steps && options_.every.epochs) return false;
  if (options_.every.steps > 0 && trainer_.steps_done() % options_.every.steps == 0) is_due_ = true;
  if (!is_due_ && options_.every.seconds == 0.0) return false;
  const double passed = std::chrono::duration<double>(Clock::now() - last_).count();
  const bool is_time = is_due_ || passed >= options_.every.seconds;
  const bool begins = is_time && writer_ != nullptr && is_prepared_ && writer_->is_free() && !taken_;
  return max_over_ranks(begins ? 1.0 : 0.0, group_) > 0.0;
}

/// Copies the state, and begins to write it if nothing else is being written. On all ranks.
void Checkpointing::take(double merit) {
  require(writes_, "checkpoints: there is no folder to write them to; give the CheckpointFolder a path");
  const NamedTensors state = trainer_.state_dict();
  is_prepared_ = true;
  is_due_ = false;
  last_ = Clock::now();
  if (writer_ == nullptr) return;
  if (options_.before_copy) options_.before_copy();
  if (taken_) begin_taken();
  writer_->take(state);
  taken_ = {{merit, trainer_.steps_done()}, trainer_.epoch_seconds()};
  begin_if_free();
}

void Checkpointing::begin_if_free() {
  if (writer_ != nullptr && writer_->is_free()) begin_taken();
}

/// Goes on behind what is being written: waits for it, tells what went wrong, and begins what was taken meanwhile.
/// `coming_best`: one that is written behind it, and will be the best.
void Checkpointing::begin_taken(const std::optional<Candidate>& coming_best) {
  const comm::LongWork slow_disk;
  finish_written();
  tell_problem();
  if (!taken_) return;
  const auto [taken, epoch_seconds] = *std::exchange(taken_, {});
  const bool is_best = is_better(taken, best_);
  if (is_best) maybe_best_ = taken;
  layers::Metadata metadata = options_.metadata;
  metadata[kEpochSecondsKey] = fmt::format("{:.6f}", epoch_seconds);
  if (const std::optional<Candidate>& known = coming_best ? coming_best : is_best ? maybe_best_ : best_) {
    metadata[kBestByKey] = name_of(options_.best_by);
    metadata[kBestKey] = fmt::format("{}", known->merit);
    metadata[kBestStepKey] = fmt::format("{}", known->step);
  }
  writer_->begin(taken.step, metadata, is_best);
}

/// Waits for what is being written; the best is what was written as such.
void Checkpointing::finish_written() {
  const comm::LongWork slow_disk;
  writer_->finish();
  if (maybe_best_ && writer_->best() == maybe_best_->step) best_ = maybe_best_;
  maybe_best_.reset();
}

void Checkpointing::write() {
  wait();
  take(kNoMerit);
}

void Checkpointing::write_last() {
  require(writes_, "checkpoints: there is no folder to write them to; give the CheckpointFolder a path");
  const NamedTensors state = trainer_.state_dict();  // on all ranks
  if (writer_ == nullptr) return;
  if (options_.before_copy) options_.before_copy();
  Candidate last{kNoMerit, trainer_.steps_done()};
  std::optional<Taken> best;
  if (writer_->obstacle_to(last.step, state).empty()) best = cancel_others();
  wait();
  if (best && best->candidate.step == last.step) last = std::exchange(best, {})->candidate;  // the same state
  writer_->take(state);  // into the memory of what was written: that of `best` is the other one
  taken_ = {last, trainer_.epoch_seconds()};
  begin_taken(best ? std::optional(best->candidate) : std::nullopt);
  taken_ = best;
}

/// What was copied where it is the best of all, and is still to be written.
std::optional<Checkpointing::Taken> Checkpointing::cancel_others() {
  std::optional<Taken> taken = std::exchange(taken_, {});
  if (taken && !is_better(taken->candidate, maybe_best_ ? maybe_best_ : best_)) taken.reset();
  if (!maybe_best_ || taken) writer_->cancel();
  return taken;
}

void Checkpointing::begin_again() {
  if (writer_ != nullptr) writer_->begin_again();
}

void Checkpointing::tell_removed() {
  if (writer_->take_removed() && options_.on_problem)
    options_.on_problem(fmt::format(
        "{}: was removed while the run wrote there; it is made again, and the checkpoints that it held are lost",
        writer_->folder().path()));
}

/// Behind the first step, when the optimizer has its state, too: what comes next is then only a copy. Two where the end
/// of an epoch can come while another one is being written.
void Checkpointing::prepare() {
  if (std::exchange(is_prepared_, true)) return;
  const NamedTensors state = trainer_.state_dict();  // on all ranks
  const bool may_overlap = options_.every.epochs && (options_.every.steps > 0 || options_.every.seconds > 0.0);
  if (writer_ != nullptr) writer_->prepare(state, may_overlap);
}

void Checkpointing::tell_problem() {
  tell_removed();
  const std::string problem = writer_->take_problem(), reason = reason_of(problem);
  if (problem.empty() && !writer_->has_written()) return;  // nothing new
  problem_ = problem;
  if (reason == std::exchange(reported_, reason) || !options_.on_problem) return;
  options_.on_problem(
      problem.empty() ? fmt::format("{}: can be written again", writer_->folder().path())
                      : fmt::format("{}; {}, and writing is tried again each time", problem, options_.after_problem));
}

void Checkpointing::wait() {
  if (writer_ == nullptr) return;
  if (taken_) begin_taken();
  finish_written();
}

std::string Checkpointing::finish() {
  wait();
  if (writer_ == nullptr) return "";
  tell_removed();
  // That of the last one may have been told, and taken, behind a step.
  const std::string problem = writer_->take_problem();
  if (!problem.empty() || writer_->has_written()) problem_ = problem;
  return problem_;
}

}  // namespace tandem::train
