// The tuner's file, before and behind a run.
#include "tuning.h"

#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/train/tuning_file.h"

#include <fmt/core.h>

namespace tandem::apps {

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

}  // namespace tandem::apps
