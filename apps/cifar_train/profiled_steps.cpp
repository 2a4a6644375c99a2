// Recording, and writing what was recorded.
#include "profiled_steps.h"

#include "apps/measure/bandwidth.h"
#include "apps/measure/peak.h"

#include "tandem/autograd/variable.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"
#include "tandem/train/profile/op_table.h"
#include "tandem/train/profile/profile_json.h"
#include "tandem/train/profile/rank_table.h"
#include "tandem/train/profile/trace.h"
#include "tandem/train/report/step_page.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>

namespace tandem::apps {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text, std::vector<std::string>& problems) {
  try {
    layers::write_file(path.string(), text);
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
}

/// With a picture of one of its steps beside it, if one is complete.
void write_trace(const std::string& file, const std::string& trace, std::vector<std::string>& problems) {
  write(file, trace, problems);
  const std::string page = train::report::step_page(trace);
  if (!page.empty()) write(step_picture_file(file), page, problems);
}

std::string count_of_steps(std::int64_t steps) { return fmt::format("{} step{}", steps, steps == 1 ? "" : "s"); }

/// Without --profile: behind the first steps, which find memory and learn the order of gradients.
train::StepWindow usual_window(std::int64_t steps_done) { return {steps_done + 3, steps_done + 7}; }

/// What this rank's threads can do on the CPU, measured; of a GPU what its clocks and widths say.
train::MachineLimits limits_of(Device device) {
  if (device.type != DeviceType::cpu) {
    const NominalLimits nominal = nominal_limits(device);
    return {nominal.flops_per_second, nominal.bytes_per_second, nominal.flops_per_second > 0.0};
  }
  return {.flops_per_second = measure_peak_flops(num_threads()), .bytes_per_second = measure_bandwidth(num_threads())};
}

}  // namespace

std::string step_picture_file(const std::string& trace_file) {
  return fs::path(trace_file).replace_extension(".html").string();
}

ProfiledSteps::ProfiledSteps(const Settings& settings, const train::Trainer& trainer, const layers::Module& model,
                             const optim::Optimizer& optimizer, comm::ProcessGroup& group, Device device)
    : settings_(settings),
      trainer_(trainer),
      model_(model),
      optimizer_(optimizer),
      group_(group),
      device_(device),
      window_(settings.profile) {
  if (!window_ && !settings.trace.empty()) window_ = usual_window(trainer.steps_done());
}

/// What of the run lives on between steps: parameters, their gradients, buffers and the optimizer's state.
NamedTensors ProfiledSteps::named_tensors() const {
  NamedTensors named = model_.named_parameters();
  for (const auto& [name, parameter] : model_.named_parameters()) {
    const Tensor place = autograd::gradient_place(parameter);
    named.emplace_back(name + ".grad", place.defined() ? place : autograd::grad(parameter));
  }
  for (const auto& buffer : model_.named_buffers()) named.push_back(buffer);
  for (const auto& [name, tensor] : optimizer_.state_dict()) named.emplace_back("optimizer." + name, tensor);
  return named;
}

void ProfiledSteps::begin() {
  begun_at_ = trainer_.steps_done();
  clocks_.push_back(comm::compare_clocks(group_));
  start_timeline(device_);
}

void ProfiledSteps::end() {
  timeline_ = stop_timeline();
  steps_ = trainer_.steps_done() - *begun_at_;
  clocks_.push_back(comm::compare_clocks(group_));
}

void ProfiledSteps::look() {
  const std::int64_t done = trainer_.steps_done();
  if (!begun_at_ && done + 1 >= window_->first && done + 1 <= window_->last) begin();
  if (timeline_is_recorded()) name_storages(named_tensors());  // behind a step, its gradients are among them
  if (begun_at_ && !timeline_ && done >= window_->last) end();
}

train::TrainObserver ProfiledSteps::with(const train::TrainObserver& observer) {
  train::TrainObserver result = observer;
  if (!window_) return result;
  look();
  result.progress = [this, observer](const train::Progress& progress) {
    look();
    if (observer.progress) observer.progress(progress);
  };
  return result;
}

void ProfiledSteps::note_none() const {
  train::print_to_stderr(settings_.profile
                             ? fmt::format("note: --profile {}: the run took none of these steps", to_string(*window_))
                             : fmt::format("note: --trace {}: the run did not come to step {}; --profile names others",
                                           settings_.trace, window_->first));
}

void ProfiledSteps::write_profile(const std::string& trace, const std::string& ranks, bool measures_machine,
                                  std::vector<std::string>& problems) const {
  const bool has_limits = measures_machine || device_.type != DeviceType::cpu;
  const train::MachineLimits limits = has_limits ? limits_of(device_) : train::MachineLimits();
  const std::string note =
      has_limits ? "" : "no shares: the machine's limits are measured where no signal ends the run\n";
  const std::string table = train::op_table(*timeline_, steps_, limits) + note + ranks;
  const fs::path folder = settings_.run_dir;
  if (!settings_.run_dir.empty()) {
    write_trace((folder / "trace.json").string(), trace, problems);
    write(folder / "profile.txt", table, problems);
    write(folder / "profile.json", train::profile_json(*timeline_, steps_, limits), problems);
  }
  const std::string file = settings_.trace.empty() ? (folder / "trace.json").string() : settings_.trace;
  fmt::print("\nprofile of {} on rank 0; {} shows it in https://ui.perfetto.dev\n{}\n", count_of_steps(steps_), file,
             table);
}

void ProfiledSteps::finish(bool measures_machine, std::vector<std::string>& problems) {
  if (!window_) return;
  if (begun_at_ && !timeline_) end();
  if (steps_ == 0) {
    if (group_.rank() == 0) note_none();
    return;
  }
  const std::string trace = train::trace_of(*timeline_, group_, clocks_);
  const bool has_table = settings_.profile.has_value();
  const std::string ranks = has_table && group_.size() > 1 ? "\n" + train::rank_table(*timeline_, steps_, group_) : "";
  if (group_.rank() != 0) return;
  const comm::LongWork writing;  // and measuring the machine
  const std::size_t problems_before = problems.size();
  if (!settings_.trace.empty()) write_trace(settings_.trace, trace, problems);
  if (has_table) {
    write_profile(trace, ranks, measures_machine, problems);
  } else if (problems.size() == problems_before) {
    fmt::print("\ntrace of {}: {} shows it in https://ui.perfetto.dev, {} is a picture of one\n",
               count_of_steps(steps_), settings_.trace, step_picture_file(settings_.trace));
  }
  std::fflush(stdout);
}

}  // namespace tandem::apps
