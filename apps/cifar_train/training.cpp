// The run itself: data, model, replicas, trainer, and what they report.
#include "training.h"

#include "optimization.h"
#include "profiled_steps.h"
#include "run_directory.h"
#include "run_directory_watch.h"
#include "run_files.h"

#include "apps/arguments/arguments.h"

#include "tandem/comm/agreement.h"
#include "tandem/core/device_query.h"
#include "tandem/core/parallel.h"
#include "tandem/data/stratified_split.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/notice.h"
#include "tandem/layers/file.h"
#include "tandem/train/console.h"
#include "tandem/train/metrics.h"
#include "tandem/train/network_description.h"
#include "tandem/train/process_info.h"
#include "tandem/train/reporter.h"
#include "tandem/train/smallest_part.h"
#include "tandem/train/stop_signals.h"
#include "tandem/train/tuning_file.h"
#include "tandem/train/weights.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>

namespace tandem::apps {
namespace {

struct Data {
  std::shared_ptr<const data::ImageDataset> train;
  std::shared_ptr<const data::ImageDataset> validation;  // null: none
  std::shared_ptr<const data::ImageDataset> test;
};

/// "3x32x32"
std::string shape_of(const data::ImageDataset& images) {
  return fmt::format("{}x{}x{}", images.channels(), images.height(), images.width());
}

/// Takes the validation images out of the training images.
void hold_out(Data& loaded, const Settings& s) {
  const data::ImageDataset& all = *loaded.train;
  const std::span<const std::int64_t> labels(all.labels.data<std::int64_t>(), static_cast<std::size_t>(all.size()));
  try {
    const data::StratifiedSplit split = data::stratified_split(labels, s.validation_split, s.trainer.seed);
    loaded.validation = std::make_shared<const data::ImageDataset>(data::subset(all, split.held_out));
    loaded.train = std::make_shared<const data::ImageDataset>(data::subset(all, split.kept));
  } catch (const Error& error) {
    fail("--validation-split {}: {}", s.validation_split, error.what());
  }
}

Data load_data(const Settings& s) {
  const auto load = [&](data::Split split, std::int64_t limit) {
    data::DatasetRequest request = s.data;
    request.split = split;
    request.limit = limit;
    request.seed = s.trainer.seed;
    return naming_flags([&] { return std::make_shared<const data::ImageDataset>(data::load_dataset(request)); },
                        {"directory", "data"});
  };
  Data loaded{load(data::Split::train, s.limit_train), nullptr, load(data::Split::test, s.limit_test)};
  require(loaded.train->size() > 0 && loaded.test->size() > 0,
          "data set {}: {} training and {} test images are not enough", s.data.name, loaded.train->size(),
          loaded.test->size());
  const std::string train_shape = shape_of(*loaded.train), test_shape = shape_of(*loaded.test);
  require(train_shape == test_shape,
          "data set {}: training images are {}, test images {}: they must be alike; make them anew", s.data.name,
          train_shape, test_shape);
  require(loaded.train->height() == loaded.train->width(),
          "data set {}: images of {} are not square, as the networks need them; pad or crop them", s.data.name,
          train_shape);
  if (s.validation_split > 0.0) hold_out(loaded, s);
  return loaded;
}

std::unique_ptr<layers::Module> load_model(const Settings& s, const data::ImageDataset& images, Device device) {
  layers::ModelOptions options = s.model;
  options.in_channels = images.channels();
  options.image_size = images.height();
  options.classes = images.classes();
  options.seed = s.trainer.seed;
  auto model = layers::make_model(options);
  model->to(device);
  if (s.load_weights.empty()) return model;
  try {
    train::load_weights(*model, s.model.name, s.load_weights);
  } catch (const Error& error) {
    fail("--load-weights {}", error.what());
  }
  return model;
}

/// Brings the model to its precision and makes its optimizer, whose masters keep all digits of the weights.
std::unique_ptr<optim::Optimizer> prepare(const Settings& s, layers::Module& model) {
  std::vector<Tensor> full;  // what set_precision() rounds
  for (const Tensor& parameter : model.parameters()) full.push_back(parameter.detach());
  model.set_precision(s.precision);
  auto optimizer = optim::make_optimizer(model.parameters(), s.optimizer);
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (is_half(optimizer->parameters()[i].dtype())) optimizer->set_value(i, full[i]);
  }
  return optimizer;
}

// Long before the file is written, so that no training is lost to a wrong path.
void check_writable(std::string_view option, const std::string& path) {
  if (path.empty()) return;
  try {
    const layers::AtomicFile probe(path);
  } catch (const Error& error) {
    fail("{} {}", option, error.what());
  }
}

/// Lets convolutions run by what was measured, before or from now on. Returns what is to be said about it, or "".
std::string start_tuning(const Settings& s, Device device) {
  kernels::conv_tuner().set_measuring(s.autotune);
  if (!s.tuning_file.empty()) {
    const std::string problem = train::load_tuning(s.tuning_file, train::tuning_machine(device));
    if (!problem.empty()) return fmt::format("--tuning-file {}", problem);
  }
  if (s.autotune && device.type == DeviceType::cuda && cuda_is_simulated())
    return "--autotune: times on a simulated GPU say nothing about real ones";
  return "";
}

/// Keeps what was measured, and tells it, also where it cannot be kept: returns why, or "".
std::string finish_tuning(const Settings& s, Device device) {
  if (!s.autotune) return "";
  const std::int64_t measured = kernels::conv_tuner().measured();
  std::string kept, problem;
  if (measured > 0 && !s.tuning_file.empty()) {
    try {
      train::save_tuning(s.tuning_file, train::tuning_machine(device));
      kept = fmt::format(", kept in {}", s.tuning_file);
    } catch (const Error& error) {
      problem = fmt::format("--tuning-file {}", error.what());
    }
  }
  fmt::print("tuned {} convolution passes{}\n{}", measured, kept, train::tuning_table());
  return problem;
}

std::string describe_problem(const train::SavedWeights& saved) {
  return fmt::format("--save-weights {}; {}", saved.problem,
                     saved.path.empty() ? std::string("there was no room for them elsewhere, either: they are lost")
                                        : fmt::format("they are in {} instead", saved.path));
}

std::unique_ptr<data::Loader> make_loader(const std::shared_ptr<const data::ImageDataset>& images,
                                          const comm::ProcessGroup& group, bool training, std::int64_t per_rank,
                                          const Settings& s, Device device) {
  const data::DistributedSampler sampler(images->size(), group.size(), group.rank(), training, s.trainer.seed);
  data::LoaderOptions options = s.loader;
  options.global_batch_size = per_rank * group.size();
  options.drop_last = training && s.loader.drop_last && s.trainer.epochs > 0;
  if (training) options.augment = *s.augment;
  options.mix.classes = images->classes();
  if (!training) options.mix = {};
  options.seed = s.trainer.seed;
  options.dtype = storage_dtype(s.precision);
  options.device = device;
  return std::make_unique<data::Loader>(images, sampler, options);
}

train::RunRecord describe_run(const Settings& s, const OptionTable& table, const comm::MpiEnvironment& environment,
                              const comm::ProcessGroup& group, const Data& images, const layers::Module& model,
                              Device device) {
  train::RunRecord run;
  run.config = table.config();
  run.without_effect = table.names_without_effect();
  run.versions = train::build_versions();
  run.versions.emplace_back("mpi_library", environment.mpi_library());
  run.host = train::host_name();
  run.started = train::utc_time();
  run.backend = group.name();
  run.device = name_of(device);
  run.world_size = group.size();
  run.threads = num_threads();
  run.model = s.model.name;
  run.model_parameters = model.parameter_count();
  run.dataset = s.data.name;
  run.train_images = images.train->size();
  run.test_images = images.test->size();
  run.validation_images = images.validation == nullptr ? 0 : images.validation->size();
  run.global_batch_size = global_batch_size(s, group.size());
  return run;
}

/// The same by epochs that are known: those that hold --steps.
Settings with_epochs(const Settings& given, const Data& images, std::int64_t ranks) {
  Settings s = given;
  if (s.trainer.steps == 0) return s;
  const data::DistributedSampler sampler(images.train->size(), 1, 0, false, 0);
  const std::int64_t batches = sampler.batches(micro_batch_size(s, ranks) * ranks, s.loader.drop_last);
  const std::int64_t in_epoch = (batches + s.trainer.accumulation - 1) / s.trainer.accumulation;
  require(in_epoch > 0, "--drop-last leaves nothing: {} training images do not fill a batch of {}",
          images.train->size(), micro_batch_size(s, ranks) * ranks);
  s.trainer.epochs = (s.trainer.steps - 1) / in_epoch + 1;
  return s;
}

}  // namespace

int train_and_report(const Settings& given, const OptionTable& table, const std::string& config_text, Device device,
                     const comm::MpiEnvironment& environment, comm::ProcessGroup& group, Clock::time_point start,
                     const std::vector<std::string>& command, ClaimedDirectory& claimed) {
  const bool first_rank = group.rank() == 0;
  if (!first_rank) kernels::listen_to_notices(nullptr);
  const Data images = comm::run_agreed(group, [&] { return load_data(given); });
  const Settings s = comm::run_agreed(group, [&] { return with_epochs(given, images, group.size()); });
  const auto model = comm::run_agreed(group, [&] { return load_model(s, *images.train, device); });
  train::RunRecord run = describe_run(s, table, environment, group, images, *model, device);
  comm::check_same(
      group, "data",
      fmt::format("training images={}\nvalidation images={}\ntest images={}\nclasses={}\nimage={}\n", run.train_images,
                  run.validation_images, run.test_images, images.train->classes(), shape_of(*images.train)));
  train::Reporter reporter(
      {.silent = !first_rank,
       .progress = train::parse_progress_mode(s.progress),
       .epochs = s.trainer.epochs,
       .log = s.log,
       .elapsed = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); }});
  // All that can be wrong is found here, before the log is opened, and agreed upon.
  const std::int64_t micro_batch = micro_batch_size(s, group.size());
  std::unique_ptr<data::Loader> train_loader, test_loader, validation_loader;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  comm::run_agreed(group, [&] {
    train_loader = make_loader(images.train, group, true, micro_batch, s, device);
    test_loader = make_loader(images.test, group, false, micro_batch, s, device);
    if (images.validation) validation_loader = make_loader(images.validation, group, false, micro_batch, s, device);
    run.steps_per_epoch = train::steps_per_epoch(*train_loader, s.trainer.accumulation);
    optimizer = prepare(s, *model);
    if (s.trainer.epochs > 0) train::check_smallest_part(*model, *train_loader);
    schedule = make_schedule(s, run.steps_per_epoch);
    if (first_rank && !s.run_dir.empty()) prepare_run_directory(s);
    if (first_rank) check_writable("--save-weights", s.save_weights);
    if (first_rank && s.autotune) {
      check_writable("--tuning-file", s.tuning_file);
      require(s.tuning_file.empty() || train::can_hold_tuning(s.tuning_file),
              "--tuning-file {}: holds something else, which --autotune would replace: name another file",
              s.tuning_file);
    }
  });
  const std::string tuning_note = start_tuning(s, device);

  comm::DistributedDataParallel replicas(
      group, train::parameters_and_masters(*model, *optimizer), model->named_buffers(),
      {.bucket_bytes = static_cast<std::int64_t>(s.bucket_mb * (1 << 20)),
       .half = s.allreduce_dtype == "half" ? comm::HalfExchange::as_half : comm::HalfExchange::in_f32});
  optim::GradScaler scaler = make_scaler(s);
  train::Trainer trainer({*model, *optimizer, *schedule, group, replicas, *train_loader, test_loader.get(), scaler,
                          validation_loader.get()},
                         s.trainer);
  std::string differences;  // of a checkpoint's settings
  train::Checkpointing checkpoints(trainer, group, checkpoint_folder(s), checkpointing_options(s, table, differences));
  const train::Resumed resumed = resume(s, checkpoints);
  std::optional<train::StopSignals> signals;  // without a place for a checkpoint, they end the run as they are used to
  comm::run_agreed(group, [&] {
    if (first_rank && !s.run_dir.empty()) keep_config(s, config_text);
    reporter.open_log(run);
  });
  RunFiles files(s, run, command, group, trainer, *model);
  ProfiledSteps profiled(s, trainer, *model, *optimizer, device);
  RunDirectoryWatch watch(claimed, {[&] { keep_config(s, config_text); }, [&] { reporter.begin_log_again(); },
                                    [&] { files.write_again(); }, [&] { checkpoints.begin_again(); }});
  train::TrainObserver observer = watch.with(checkpoints.with(files.with(profiled.with(reporter.observer()))));
  reporter.header(run);
  if (first_rank && !tuning_note.empty()) fmt::print(stderr, "note: {}\n", tuning_note);
  if (first_rank) tell_resumed(s, resumed, differences);
  if (!s.run_dir.empty()) {
    signals.emplace();
    observer.stop = [&signals] { return signals->requested() != 0; };
  }
  const std::int64_t steps_before = trainer.steps_done();
  const train::EpochRecord last = trainer.run(observer);
  watch.look();
  if (last.stopped) {
    const StoppedRun stopped = end_stopped_run(s, last, *signals, checkpoints, group);
    const int code = files.end_stopped(stopped.exit_code);
    if (!first_rank) return code;
    const auto made = make_report(s);
    reporter.tell(train::closing_text(stopped.text, files.places("", reporter.log_problem(), made ? &*made : nullptr)));
    return code;
  }
  const bool has_trained = trainer.steps_done() > steps_before;  // else its last checkpoint was of the very end
  const bool finite = (!has_trained || std::isfinite(last.train_loss)) && std::isfinite(last.test_loss);
  std::optional<train::EvaluationReport> report;
  if (s.trainer.detailed) report = trainer.evaluation_report();
  // What goes wrong from here on loses as little as it can, and is told at the end.
  std::vector<std::string> problems;
  train::SavedWeights saved;
  const train::TensorMemory memory = train::peak_tensor_memory(device);  // before a profile measures the machine
  profiled.finish(group, problems);
  comm::run_agreed(group, [&] {
    if (!first_rank) return;
    if (const std::string problem = checkpoints.finish(); !problem.empty())
      problems.push_back(finite ? checkpoint_problem(s, problem) : problem);
    if (finite && !s.save_weights.empty()) {
      saved = train::save_weights(s.save_weights, trainer.weights(),
                                  train::to_metadata(train::describe_network(s.model, *images.train)));
    }
    if (report && !s.run_dir.empty()) {
      const std::string problem = write_evaluation(s, *report, *images.test);
      if (!problem.empty()) problems.push_back(problem);
    }
    if (!saved.problem.empty()) problems.push_back(describe_problem(saved));
    const std::string tuning_problem = finish_tuning(s, device);
    if (!tuning_problem.empty()) problems.push_back(tuning_problem);
    reporter.finish(last, memory);
    files.finish(finite, problems);
    if (report && s.per_class) reporter.tell(train::per_class_text(*report, images.test->class_names));
    if (!reporter.log_problem().empty()) problems.push_back(fmt::format("--log: {}", reporter.log_problem()));
  });
  if (!finite) {
    problems.push_back(
        fmt::format("the loss is not a finite number after epoch {}: try a lower --lr, or --clip-norm 1{}", last.epoch,
                    s.save_weights.empty() ? "" : "; the weights were not saved"));
  }
  const int code = files.end(finite, train::max_over_ranks(problems.empty() ? 0.0 : 1.0, group) > 0.0 ? 1 : 0);
  if (!first_rank) return code;
  const auto made = make_report(s);
  reporter.tell_result(files.places(saved.path, reporter.log_problem(), made ? &*made : nullptr));
  for (const std::string& problem : problems) fmt::print(stderr, "error: {}\n", problem);
  return code;
}

}  // namespace tandem::apps
