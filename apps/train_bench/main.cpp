// train_bench: times whole training steps of a network on one batch.
#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "apps/measure/kernel_counts.h"
#include "apps/measure/peak.h"
#include "apps/measure/quantile.h"
#include "apps/train_bench/bench_model.h"
#include "tandem/core/memory.h"
#include "tandem/core/parallel.h"
#include "tandem/core/profiler.h"
#include "tandem/core/suggest.h"
#include "tandem/kernels/implementations.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/by_name.h"
#include "tandem/train/process_info.h"
#include "tandem/train/recorded_work.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>
#include <limits>

namespace tandem::apps {

namespace {

using nlohmann::json;

struct Timing {
  std::vector<double> seconds;
  double loss = 0.0;
  std::int64_t graph_launches = 0;  // of these steps
};

Timing time_steps(BenchModel& model, int steps) {
  Timing timing;
  const std::int64_t launches_before = model.graph_launches();
  for (int i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    timing.loss = model.step();
    timing.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  timing.graph_launches = model.graph_launches() - launches_before;
  return timing;
}

json memory_report(Device device) {
  const MemoryStats stats = memory_stats(device);
  json report{{"total", stats.peak_total}};
  for (int i = 0; i < kMemoryTagCount; ++i) {
    report[std::string(name_of(static_cast<MemoryTag>(i)))] = stats.peak[static_cast<std::size_t>(i)];
  }
  return report;
}

void run_once(BenchModel& model, const BenchSettings& settings) {
  time_steps(model, settings.warmup);
  const Timing timing = time_steps(model, settings.steps);
  const double seconds = median(timing.seconds);
  const auto flops = static_cast<double>(model.flops_per_step());
  const json report{{"model", settings.model.name},
                    {"batch_size", model.batch_size()},
                    {"device", name_of(model.device())},
                    {"threads", num_threads()},
                    {"optimizer", settings.optimizer.name},
                    {"precision", settings.precision},
                    {"cuda_graph", train::name_of(settings.cuda_graph)},
                    {"graph_launches", timing.graph_launches},
                    {"parameters", model.parameter_count()},
                    {"seconds", timing.seconds},
                    {"median_seconds", seconds},
                    {"images_per_second", static_cast<double>(model.batch_size()) / seconds},
                    {"gflops", flops / seconds * 1e-9},
                    {"loss", timing.loss},
                    {"peak_tensor_bytes", memory_report(model.device())}};
  fmt::print("{}\n", report.dump());
}

/// Where the time of a step goes: one line per layer and per node of the backward walk.
void run_profile(BenchModel& model, const BenchSettings& settings) {
  time_steps(model, settings.warmup);
  start_profile();
  const double seconds = median(time_steps(model, settings.steps).seconds);
  const std::vector<ProfileEntry> entries = stop_profile();
  fmt::print("{:>9} {:>9} {:>7}  {}\n", "ms/step", "% of step", "calls", "own time of");
  double covered = 0.0;
  for (const ProfileEntry& entry : entries) {
    const double share = entry.self_seconds / settings.steps;
    covered += share;
    fmt::print("{:9.3f} {:9.1f} {:7}  {}\n", share * 1e3, 100.0 * share / seconds, entry.count / settings.steps,
               entry.name);
  }
  fmt::print("{:9.3f} {:9.1f} {:7}  median step ({:.3f} ms on average in ranges)\n", seconds * 1e3, 100.0, 1,
             covered * 1e3);
}

/// What the kernels of one step move, after the warm-up.
void run_count(BenchModel& model, const BenchSettings& settings) {
  const std::string obstacle = counting_obstacle(model.device());
  require(obstacle.empty(), "--count: {}", obstacle);
  time_steps(model, settings.warmup);
  KernelCounts total;
  fmt::print("{:>8} {:>12} {:>12}  {}\n", "launches", "KB read", "KB written", "kernel");
  const auto print = [](const KernelCounts& counts) {
    fmt::print("{:8} {:12.1f} {:12.1f}  {}\n", counts.launches, 1e-3 * static_cast<double>(counts.bytes_read),
               1e-3 * static_cast<double>(counts.bytes_written), counts.kernel);
  };
  for (const KernelCounts& counts : count_kernels([&] { model.step(); })) {
    print(counts);
    total.launches += counts.launches;
    total.bytes_read += counts.bytes_read;
    total.bytes_written += counts.bytes_written;
  }
  total.kernel = "in all";
  print(total);
}

/// Requests on stdin, one a line: "step N" answers the times of N steps, "quit" ends. Lets a script take turns between
/// this process and another without either running while the other is timed.
void serve(BenchModel& model, std::int64_t start_bytes) {
  fmt::print("{}\n", json{{"start_bytes", start_bytes}, {"flops_per_step", model.flops_per_step()}}.dump());
  std::fflush(stdout);
  for (std::string verb; std::cin >> verb && verb != "quit";) {
    int steps = 0;
    require(verb == "step" && (std::cin >> steps) && steps >= 0, "request '{}': only 'step N' and 'quit' are known",
            verb);
    const Timing timing = time_steps(model, steps);
    fmt::print(
        "{}\n",
        json{{"seconds", timing.seconds}, {"loss", timing.loss}, {"graph_launches", timing.graph_launches}}.dump());
    std::fflush(stdout);
  }
}

void check_one_way(const BenchSettings& settings) {
  std::vector<std::string_view> ways;
  for (const auto& [name, asked] : {std::pair{"--profile", settings.profile}, std::pair{"--count", settings.count},
                                    std::pair{"--serve", settings.serve}, std::pair{"--peak", settings.peak}})
    if (asked) ways.emplace_back(name);
  require(ways.size() < 2, "{} exclude each other: give one", fmt::join(ways, " and "));
  require(!settings.profile || settings.cuda_graph == train::CudaGraph::off,
          "--profile tells what the host starts in a step, and with --cuda-graph that is one launch: leave one out");
}

int run(int argc, char** argv) {
  BenchSettings settings;
  CLI::App app("Times whole training steps (zero_grad, forward, loss, backward, optimizer) on one batch");
  app.option_defaults()->always_capture_default();
  const auto number = [&](const char* name, auto& value, std::int64_t least, const char* help,
                          std::int64_t most = std::numeric_limits<std::int32_t>::max()) {
    expect_whole_number(*app.add_option(name, value, help), least, most);
  };
  app.add_option("--model", settings.model.name, one_of(layers::model_names()));
  number("--layers", settings.model.layers, 0, "Convolutions of mnist_cnn (0: its default)", 1000);
  expect_finite_number(
      *app.add_option("--width", settings.model.width, "Factor of the channels of the airbench networks"));
  number("--in-channels", settings.model.in_channels, 1, "Channels of the images", 1 << 20);
  number("--image-size", settings.model.image_size, 1, "Height and width, pixels", 1 << 16);
  number("--batch-size", settings.batch_size, 1, "Images per step");
  app.add_option("--optimizer", settings.optimizer.name, one_of(optim::optimizer_names()));
  expect_finite_number(*app.add_option("--lr", *settings.optimizer.lr, "Learning rate"));
  app.add_option("--precision", settings.precision, "fp32, 3xtf32, tf32, fp16 or bf16");
  app.add_option_function<std::string>(
         "--conv-impl", [&](const std::string& name) { settings.model.conv_impl = kernels::parse_conv_impl(name); },
         fmt::format("{}", fmt::join(kernels::conv_impl_names(), ", ")))
      ->default_str("auto");
  app.add_option_function<std::string>(
         "--gemm-impl", [&](const std::string& name) { settings.model.gemm_impl = kernels::parse_gemm_impl(name); },
         fmt::format("{}", fmt::join(kernels::gemm_impl_names(), ", ")))
      ->default_str("auto");
  app.add_option("--device", settings.device, "cpu, cuda, cuda:N or auto");
  app.add_option_function<std::string>(
         "--cuda-graph", [&](const std::string& name) { settings.cuda_graph = train::parse_cuda_graph(name); },
         "Have the GPU given each step as one CUDA graph, behind the first few: auto, on or off")
      ->default_str("off");
  number("--threads", settings.threads, 0, "Threads (0: all cores)", 4096);
  number("--steps", settings.steps, 1, "Steps to time");
  number("--warmup", settings.warmup, 0, "Steps before");
  const auto path = [&](const char* name, std::string& value, const char* help) {
    expect_path(*app.add_option(name, value, help));
  };
  path("--batch", settings.batch_file, "Safetensors file with images and labels (default: random ones)");
  path("--load-weights", settings.weights_file, "Safetensors file with the first weights (default: drawn)");
  app.add_flag("--profile", settings.profile, "Print where the time of a step goes");
  app.add_flag("--count", settings.count, "On a simulated GPU: print what each kernel of a step moves");
  app.add_flag("--serve", settings.serve, "Time steps on request: 'step N' and 'quit' on stdin");
  app.add_flag("--peak", settings.peak, "Print the machine's peak f32 GFLOP/s, and do nothing else");
  if (!parse_arguments(app, argc, argv)) return 0;
  check_one_way(settings);
  if (settings.threads > 0) set_num_threads(settings.threads);
  if (settings.peak) {
    fmt::print("{}\n",
               json{{"threads", num_threads()}, {"peak_gflops", measure_peak_flops(num_threads()) * 1e-9}}.dump());
    return 0;
  }
  const std::int64_t start_bytes = train::peak_memory_bytes();
  BenchModel model(settings);
  if (settings.serve) {
    serve(model, start_bytes);
  } else if (settings.count) {
    run_count(model, settings);
  } else if (settings.profile) {
    run_profile(model, settings);
  } else {
    run_once(model, settings);
  }
  return 0;
}

}  // namespace

}  // namespace tandem::apps

int main(int argc, char** argv) {
  return tandem::apps::run_program([&] { return tandem::apps::run(argc, argv); });
}
