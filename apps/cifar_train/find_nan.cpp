// A run that writes nothing, and the wording.
#include "find_nan.h"

#include "run_directory.h"

#include "tandem/comm/agreement.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/reporter.h"
#include "tandem/train/stderr_line.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

namespace tandem::apps {
namespace {

constexpr const char* kSmallerSteps = "a lower --lr, --warmup-epochs 1 or --clip-norm 1";

bool is_f16(const train::NanFinding& finding) { return finding.dtype == name_of(DType::f16); }

/// Of an overflow in half precision: what f16 cannot hold, bf16 can.
std::string range_advice() {
  return fmt::format("f16 ends at 65504: try --precision bf16, which has the range of f32, or {}", kSmallerSteps);
}

std::string go_on_from(const Settings& s, train::Checkpointing& checkpoints) {
  const std::string& place = s.resume.empty() || s.resume == "auto" ? s.run_dir : s.resume;
  const train::Resumed resumed = checkpoints.resume(place);
  return resumed.path.empty() ? fmt::format("{} has no checkpoint: from the beginning", place)
                              : fmt::format("from {}, behind step {}", resumed.path, resumed.steps);
}

/// The end of a search, and its exit code.
int tell(const Settings& s, const std::optional<train::NanFinding>& finding, const train::EpochRecord& last,
         std::int64_t steps, bool is_first_rank) {
  const int code = finding ? kFoundNan : last.diverged ? 1 : 0;
  if (!is_first_rank) return code;
  if (finding) {
    fmt::print("found    {}\n  try    {}\n", to_string(*finding), advice_on(*finding, s));
  } else if (last.diverged) {
    fmt::print("found    all tensors are finite up to step {}, but the loss is not: the loss function makes it\n",
               last.diverged->step);
  } else {
    fmt::print("found    nothing: all tensors are finite up to the run's end, step {}\n", steps);
  }
  std::fflush(stdout);
  return code;
}

}  // namespace

std::string advice_on(const train::NanFinding& f, const Settings& s) {
  using train::NanPlace;
  switch (f.place) {
    case NanPlace::weight:
      return s.load_weights.empty() ? "go on from an older checkpoint: --resume RUN/checkpoints/step-N"
                                    : fmt::format("other weights than --load-weights {}", s.load_weights);
    case NanPlace::model_input:
      return f.examples.empty() ? "look at the data, and at --augment"
                                : fmt::format("look at training image{} {} of {}{}", f.examples.size() == 1 ? "" : "s",
                                              fmt::join(f.examples, ", "), s.data.name,
                                              s.validation_split > 0.0 ? ", counted without those held out" : "");
    case NanPlace::layer_input:
    case NanPlace::output:
      return is_f16(f) ? range_advice() : kSmallerSteps;
    case NanPlace::output_gradient:
    case NanPlace::input_gradient:
    case NanPlace::parameter_gradient:
      if (!is_f16(f)) return kSmallerSteps;
      return *s.loss_scale == "dynamic" || *s.loss_scale == "none"
                 ? range_advice()
                 : fmt::format("--loss-scale dynamic in place of {}, or --precision bf16", *s.loss_scale);
    case NanPlace::exchanged_gradient:
    case NanPlace::update:
      break;
  }
  return kSmallerSteps;
}

std::string divergence_text(const Settings& s, const train::EpochRecord& last) {
  const std::string& place = s.run_dir.empty() ? s.resume : s.run_dir;
  const std::string search =
      place.empty() ? "; a run with a --run-dir can be searched by --find-nan"
                    : fmt::format("; the same command with --run-dir {} --find-nan tells where it comes from", place);
  const std::string saved = weights_files_of(s).empty() ? "" : "; the weights were not saved";
  if (last.diverged && last.diverged->skipped_steps > 0) {
    return fmt::format(
        "the loss scale, now {:g}, skipped {} steps in a row, up to step {} in epoch {} (--max-skipped-steps): some "
        "gradient is not finite at any scale: try --precision bf16 or {}{}{}",
        last.loss_scale, last.diverged->skipped_steps, last.diverged->step, last.epoch, kSmallerSteps, search, saved);
  }
  const std::string where = last.diverged ? fmt::format("at step {}, in epoch {}", last.diverged->step, last.epoch)
                                          : fmt::format("on the test images, after epoch {}", last.epoch);
  return fmt::format("the loss is not a finite number {}: try {}{}{}", where, kSmallerSteps, search, saved);
}

int find_nan(const Settings& s, const OptionTable& table, const Data& images, Device device,
             comm::ProcessGroup& group) {
  RunParts parts = make_parts(s, images, group, device, [] {});
  const bool is_first_rank = group.rank() == 0;
  std::string differences;
  train::Checkpointing checkpoints(*parts.trainer, group, train::CheckpointFolder(""),
                                   checkpointing_options(s, table, *images.train, differences));
  const std::string from = go_on_from(s, checkpoints);
  if (is_first_rank) {
    if (!differences.empty())
      train::print_to_stderr(
          fmt::format("note: some settings differ from those that the run began with: it had {}", differences));
    fmt::print("search   {}, with every tensor watched\n", from);
    std::fflush(stdout);
  }
  train::NanFinder finder(*parts.trainer);
  std::optional<train::NanFinding> finding = finder.first({});
  if (finding) return tell(s, finding, {}, parts.trainer->steps_done(), is_first_rank);
  train::Reporter reporter({.silent = !is_first_rank,
                            .progress = train::parse_progress_mode(s.progress),
                            .epochs = s.trainer.epochs,
                            .logs = {},
                            .elapsed = {}});
  train::TrainObserver observer = reporter.observer();
  observer.first_step = {};
  const train::EpochRecord last = parts.trainer->run(finder.with(observer));
  finding = finder.first(last);
  return tell(s, finding, last, parts.trainer->steps_done(), is_first_rank);
}

}  // namespace tandem::apps
