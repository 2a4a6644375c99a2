// The run itself: what it trains, what it writes on the way, and how it is begun.
#include "training.h"

#include "comm_tuning.h"
#include "find_nan.h"
#include "profiled_steps.h"
#include "resume_text.h"
#include "run_directory.h"
#include "run_directory_watch.h"
#include "run_end.h"
#include "run_files.h"
#include "run_parts.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/notice.h"
#include "tandem/layers/file.h"
#include "tandem/train/message_costs_file.h"
#include "tandem/train/process_info.h"
#include "tandem/train/reporter.h"
#include "tandem/train/stderr_line.h"
#include "tandem/train/stop_signals.h"
#include "tandem/train/tuning_file.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <optional>

namespace tandem::apps {
namespace {

// Long before the file is written, so that no training is lost to a wrong path.
void check_writable(std::string_view option, const std::string& path) {
  if (path.empty()) return;
  try {
    const layers::AtomicFile probe(path);
  } catch (const Error& error) {
    fail("{} {}", option, error.what());
  }
}

/// What is wrong with the file of message costs. For rank 0.
void check_comm_costs(const Settings& s) {
  std::error_code unknown;
  require(s.tune_comm || s.comm_costs.empty() || std::filesystem::exists(s.comm_costs, unknown),
          "--comm-costs {}: no such file; --tune-comm makes one", s.comm_costs);
  if (!s.tune_comm) {  // what it has for these ranks is found out where it is read
    const std::string problem = s.comm_costs.empty() ? "" : train::load_message_costs(s.comm_costs, "").problem;
    return require(problem.empty(), "--comm-costs {}", problem);
  }
  check_writable("--comm-costs", s.comm_costs);
  require(
      s.comm_costs.empty() || train::can_hold_message_costs(s.comm_costs),
      "--comm-costs {}: holds something else, which --tune-comm would replace, or is of a newer program: name another "
      "file",
      s.comm_costs);
}

/// What is wrong with the places that a run writes to. For rank 0.
void check_places(const Settings& s) {
  if (!s.run_dir.empty()) prepare_run_directory(s);
  check_writable("--run-dir", s.run_weights);
  check_writable("--save-weights", s.save_weights);
  check_writable("--trace", s.trace);
  if (!s.trace.empty()) check_writable("--trace", step_picture_file(s.trace));
  if (!s.autotune) return;
  check_writable("--tuning-file", s.tuning_file);
  require(s.tuning_file.empty() || train::can_hold_tuning(s.tuning_file),
          "--tuning-file {}: holds something else, which --autotune would replace: name another file", s.tuning_file);
}

train::RunRecord describe_run(const Settings& s, const OptionTable& table, const comm::MpiEnvironment& environment,
                              const comm::ProcessGroup& group, const Data& images, double loading_seconds,
                              const RunParts& parts, Device device) {
  train::RunRecord run;
  run.config = table.config();
  run.without_effect = table.names_without_effect();
  run.versions = train::build_versions();
  run.versions.emplace_back("mpi_library", environment.mpi_library());
  run.host = train::host_name();
  run.started = train::utc_time();
  run.backend = group.name();
  run.all_reduce = group.algorithm();
  run.progress = group.progress();
  run.network = group.network();
  run.device = name_of(device);
  run.world_size = group.size();
  run.threads = num_threads();
  run.model = s.model.name;
  run.model_parameters = parts.model->parameter_count();
  run.dataset = s.data.name;
  run.train_images = images.train->size();
  run.test_images = images.test->size();
  run.validation_images = images.validation == nullptr ? 0 : images.validation->size();
  run.global_batch_size = global_batch_size(s, group.size());
  run.steps_per_epoch = parts.trainer->steps_per_epoch();
  run.steps_done = parts.trainer->steps_done();
  run.loading_seconds = loading_seconds;
  run.whitening_seconds = parts.whitening_seconds;
  return run;
}

}  // namespace

int train_and_report(const Settings& given, const OptionTable& table, const std::string& config_text, Device device,
                     const comm::MpiEnvironment& environment, comm::ProcessGroup& group, SharedData& data,
                     Clock::time_point start, const std::vector<std::string>& command, ClaimedDirectory& claimed) {
  const bool first_rank = group.rank() == 0;
  if (environment.rank() != 0) kernels::listen_to_notices(nullptr);
  const Clock::time_point before_loading = Clock::now();
  const Data images = comm::run_agreed(group, [&] {
    const comm::LongWork reading;
    return data.load(given);
  });
  const double loading_seconds = std::chrono::duration<double>(Clock::now() - before_loading).count();
  const Settings s = comm::run_agreed(group, [&] { return with_length(given, images.train->size(), group.size()); });
  if (s.find_nan) {
    use_kept_costs(s, group);  // as the run that is searched did
    return find_nan(s, table, images, device, group);
  }
  comm::run_agreed(group, [&] {
    if (first_rank) check_comm_costs(s);
  });
  std::string tuning;
  tune_comm(s, group, [&tuning](const std::string& lines) { tuning += lines; });  // buckets are sized by it
  // All else that can be wrong is found here, before the logs are opened, and agreed upon.
  RunParts parts = make_parts(s, images, group, device, [&] {
    const comm::LongWork slow_disk;
    if (first_rank) check_places(s);
  });
  train::Trainer& trainer = *parts.trainer;
  train::Reporter reporter({.silent = !first_rank,
                            .progress = train::parse_progress_mode(s.progress),
                            .epochs = s.trainer.epochs,
                            .logs = logs_of(s),
                            .elapsed = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); },
                            .after_problem = after_problem(s)});
  std::string differences;  // of a checkpoint's settings
  train::CheckpointingOptions checkpointing = checkpointing_options(s, table, *images.train, differences);
  checkpointing.before_copy = [&reporter] { reporter.flush_logs(); };
  train::Checkpointing checkpoints(trainer, group, checkpoint_folder(s), checkpointing);
  const train::Resumed resumed = resume(s, checkpoints, differences);
  const train::RunRecord run = describe_run(s, table, environment, group, images, loading_seconds, parts, device);
  std::optional<train::StopSignals> signals;  // without a place for a checkpoint, they end the run as they are used to
  comm::run_agreed(group, [&] {
    const comm::LongWork slow_disk;
    reporter.open_logs(run);
    if (first_rank && !s.run_dir.empty()) keep_config(s, config_text);
  });
  RunFiles files(s, run, command, group, trainer, *parts.model);
  ProfiledSteps profiled(s, trainer, *parts.model, *parts.optimizer, group, device);
  RunDirectoryWatch watch(claimed, {[&] { keep_config(s, config_text); }, [&] { reporter.begin_logs_again(); },
                                    [&] { files.write_again(); }, [&] { checkpoints.begin_again(); }});
  // Before anybody looks at steps, as a profile does. What it throws has left nothing to be kept.
  if (s.trainer.epochs > 0) trainer.rehearse(s.rehearsal_steps);
  const train::TrainObserver observer = watch.with(checkpoints.with(files.with(profiled.with(reporter.observer()))));
  reporter.header(run);
  const auto tell = [&reporter](const std::string& lines) { reporter.tell(lines); };
  if (!tuning.empty()) tell(tuning);
  if (!parts.images_text.empty()) tell(parts.images_text);
  if (!parts.groups_text.empty()) tell(parts.groups_text);
  if (first_rank && !parts.tuning_note.empty()) train::print_to_stderr(fmt::format("note: {}", parts.tuning_note));
  if (first_rank && !s.resume.empty()) {
    note_resumed(s, resumed, differences);
    tell(resume_text(s, resumed, trainer, claimed.is_new()));
  }
  const bool is_replica = s.replicas > 1 && !first_rank;  // of a process whose signals rank 0 takes
  if (!s.run_dir.empty() && !is_replica) signals.emplace();
  return train_to_the_end({.settings = s,
                           .images = images,
                           .parts = parts,
                           .group = group,
                           .device = device,
                           .checkpoints = checkpoints,
                           .files = files,
                           .profiled = profiled,
                           .watch = watch,
                           .reporter = reporter,
                           .signals = signals ? &*signals : nullptr},
                          observer);
}

}  // namespace tandem::apps
