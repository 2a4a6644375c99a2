// What was compiled, and what it is used on.
#include "checks.h"

#include "tandem/comm/backends/nccl/nccl_file.h"
#include "tandem/comm/backends/nccl/nccl_start.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/config.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/memory.h"
#include "tandem/data/encode_png.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/implementations.h"
#include "tandem/kernels/instruction_set.h"
#include "tandem/train/plot/png.h"
#include "tandem/train/process_info.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace tandem::apps::doctor {
namespace {

namespace fs = std::filesystem;

/// The widest vector instructions of the processor, in the words of kernels::instruction_set().
std::string_view processor_vectors() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return "AVX-512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2";
#endif
  return "baseline";
}

/// `missing`: empty where the library is there.
Finding library(std::string subject, std::string_view missing, std::string_view use, std::string_view remedy) {
  if (missing.empty()) return {State::ok, std::move(subject), fmt::format("in this build: {}", use)};
  return {State::note, std::move(subject), fmt::format("not in this build: no {}", use),
          fmt::format("{}, and build again", remedy)};
}

/// One that programs look for when they run. `problem`: empty where it was found.
Finding found_library(std::string subject, const std::string& problem, const std::string& found) {
  if (problem.empty()) return {State::ok, std::move(subject), found};
  return {State::note, std::move(subject), problem,
          "training works without it; docs/libraries.md tells where it is looked for"};
}

/// NCCL's version and file, or why there is none.
[[maybe_unused]] Finding find_nccl() {
  const std::string_view missing = comm::missing_nccl();
  if (!missing.empty()) return found_library("NCCL", std::string(missing), "");
  try {
    const LibraryRequest request = comm::nccl_library();
    const LibraryFile file(request, library_files(request, environment_variable));
    return found_library("NCCL", "", fmt::format("{}, {}", version_text(file.version()), file.path()));
  } catch (const Error& error) {
    return found_library("NCCL", error.what(), "");
  }
}

std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<Finding> check_build() {
  std::string text;
  for (const auto& [name, version] : train::build_versions()) {
    if (name == "tandem" || name == "compiler") text += fmt::format("{} {}, ", name, version);
  }
  const std::string_view built = kernels::instruction_set(), here = processor_vectors();
  text += fmt::format("kernels for {}", built);
  const bool could_do_more = here != "baseline" && built != here && built != "AVX-512";
  if (!could_do_more) return {{State::ok, "build", text}};
  return {{State::note, "build", fmt::format("{}, and this processor has {}", text, here),
           "build on this machine with -DTANDEM_NATIVE=ON (the default): the kernels use its vectors then"}};
}

std::vector<Finding> check_libraries() {
  std::vector<Finding> findings{
      library("oneDNN", kernels::missing_onednn(), "second source of fast convolutions", "install libdnnl-dev"),
      library("MPI", comm::missing_mpi(), "training on several ranks", "install libopenmpi-dev and openmpi-bin"),
      library("libpng", data::can_encode_png() ? "" : "missing", "reading and writing PNG files", "install libpng-dev"),
      library("libjpeg", TANDEM_HAS_JPEG ? "" : "missing", "reading JPEG files", "install libjpeg-dev"),
      library("cairo", train::plot::has_png_pictures() ? "" : "missing", "curves as PNG files (SVG needs none)",
              "install libcairo2-dev")};
  if constexpr (kHasCuda) {
    findings.push_back(find_nccl());
    const auto& cudnn = kernels::find_cudnn();
    findings.push_back(found_library("cuDNN", cudnn.problem, cudnn.library ? cudnn.library->version() : ""));
  }
  return findings;
}

std::vector<Finding> check_gpus() {
  std::vector<Finding> findings;
  for (const DeviceDescription& device : list_devices()) {
    if (device.device.type == DeviceType::cpu) continue;
    findings.push_back({State::ok, name_of(device.device),
                        fmt::format("{}, {}, {}, {}", device.name, device.capability,
                                    format_memory(device.memory_bytes), cuda_versions())});
  }
  if (!findings.empty()) return findings;
  const std::string reason = cuda_unavailable_reason(), driver = driver_version();
  if (driver.empty()) {
    if constexpr (kHasCuda)
      return {
          {State::note, "GPU", reason, "training computes on the CPU; on a machine with a GPU, install its driver"}};
    return {{State::ok, "GPU", "none, and this build needs none: it computes on the CPU"}};
  }
  if constexpr (kHasCuda)
    return {{State::fault, "GPU", fmt::format("{} ({})", reason, driver),
             "nvidia-smi must list a GPU; in a container, start it with the GPUs (--gpus all)"}};
  return {{State::note, "GPU", fmt::format("a driver is there ({}), but {}", driver, reason),
           "to compute on the GPU, install the CUDA toolkit and build with --preset cuda"}};
}

}  // namespace tandem::apps::doctor
