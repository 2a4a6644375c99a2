// Recording, and writing what was recorded.
#include "profiled_steps.h"

#include "apps/measure/bandwidth.h"
#include "apps/measure/peak.h"

#include "tandem/autograd/variable.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"
#include "tandem/train/profile/op_table.h"
#include "tandem/train/profile/profile_json.h"
#include "tandem/train/profile/rank_table.h"
#include "tandem/train/profile/trace.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>

namespace tandem::apps {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  layers::AtomicFile file(path.string());
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
}

/// What this rank's threads can do on the CPU, measured; of a GPU what its clocks and widths say.
train::MachineLimits limits_of(Device device) {
  if (device.type != DeviceType::cpu) {
    const NominalLimits nominal = nominal_limits(device);
    return {nominal.flops_per_second, nominal.bytes_per_second, nominal.flops_per_second > 0.0};
  }
  return {.flops_per_second = measure_peak_flops(num_threads()), .bytes_per_second = measure_bandwidth(num_threads())};
}

}  // namespace

ProfiledSteps::ProfiledSteps(const Settings& settings, const train::Trainer& trainer, const layers::Module& model,
                             const optim::Optimizer& optimizer, Device device)
    : settings_(settings), trainer_(trainer), model_(model), optimizer_(optimizer), device_(device) {}

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

void ProfiledSteps::look() {
  const train::StepWindow& window = *settings_.profile;
  const std::int64_t done = trainer_.steps_done();
  if (!begun_at_ && done + 1 >= window.first && done + 1 <= window.last) {
    begun_at_ = done;
    start_timeline(device_);
  }
  if (timeline_is_recorded()) name_storages(named_tensors());  // behind a step, its gradients are among them
  if (begun_at_ && !timeline_ && done >= window.last) {
    timeline_ = stop_timeline();
    steps_ = done - *begun_at_;
  }
}

train::TrainObserver ProfiledSteps::with(const train::TrainObserver& observer) {
  train::TrainObserver result = observer;
  if (!settings_.profile) return result;
  look();
  result.progress = [this, observer](const train::Progress& progress) {
    look();
    if (observer.progress) observer.progress(progress);
  };
  return result;
}

void ProfiledSteps::finish(comm::ProcessGroup& group, bool measures_machine, std::vector<std::string>& problems) {
  if (!settings_.profile) return;
  if (begun_at_ && !timeline_) {
    timeline_ = stop_timeline();
    steps_ = trainer_.steps_done() - *begun_at_;
  }
  if (steps_ == 0) {
    if (group.rank() == 0)
      train::print_to_stderr(
          fmt::format("note: --profile {}: the run took none of these steps", to_string(*settings_.profile)));
    return;
  }
  const std::string trace = train::trace_of(*timeline_, group);
  const std::string ranks = group.size() > 1 ? "\n" + train::rank_table(*timeline_, steps_, group) : "";
  if (group.rank() != 0) return;
  const bool has_limits = measures_machine || device_.type != DeviceType::cpu;
  const train::MachineLimits limits = has_limits ? limits_of(device_) : train::MachineLimits();
  const std::string note =
      has_limits ? "" : "no shares: the machine's limits are measured where no signal ends the run\n";
  const std::string table = train::op_table(*timeline_, steps_, limits) + note + ranks;
  const fs::path folder = settings_.run_dir;
  try {
    write(folder / "trace.json", trace);
    write(folder / "profile.txt", table);
    write(folder / "profile.json", train::profile_json(*timeline_, steps_, limits));
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
  fmt::print("\nprofile of {} step{} on rank 0; {} shows it in https://ui.perfetto.dev\n{}\n", steps_,
             steps_ == 1 ? "" : "s", (folder / "trace.json").string(), table);
  std::fflush(stdout);
}

}  // namespace tandem::apps
