// Options, and what they mean.
#include "apps/conv_bench/command_line.h"

#include "apps/arguments/arguments.h"
#include "apps/conv_bench/count.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/core/parse_device.h"
#include "tandem/core/suggest.h"
#include "tandem/kernels/implementations.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

namespace tandem::conv_bench {

namespace {

/// Options as they are written.
struct Texts {
  std::vector<std::string> layers, shapes, passes{"fwd", "dgrad", "wgrad", "bwd", "both"}, precisions{"fp32"}, impls,
      caches{"hot", "cold"};
  std::vector<std::int64_t> batches{128};
  std::string device = "cpu";
  int threads = 0;
  bool no_input_gradient = false;
  double peak_flops = 0.0, peak_bandwidth = 0.0;
};

/// What runs on the CPU first, then what needs something else.
std::string impl_help() {
  std::string text = "Implementations (default: ours and the libraries there are): ";
  std::vector<std::pair<std::string, std::string>> groups{{"", ""}};  // an obstacle, and who meets it
  for (const Contestant& contestant : contestants()) {
    const std::string obstacle = contestant.obstacle(Device{});
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == obstacle; });
    if (group == groups.end()) group = groups.insert(groups.end(), {obstacle, ""});
    group->second +=
        fmt::format("{}{} ({})", group->second.empty() ? "" : ", ", contestant.name, contestant.description);
  }
  for (const auto& [obstacle, names] : groups)
    text += obstacle.empty() ? names : fmt::format("; {}: {}", obstacle, names);
  return text;
}

void add_options(CLI::App& app, Texts& texts, BenchSettings& settings) {
  app.option_defaults()->always_capture_default();
  using apps::expect_finite_number, apps::expect_whole_number;
  const auto list = [&](const char* name, auto& values, const std::string& help) {
    return app.add_option(name, values, help)->delimiter(',');
  };
  list("--layers", texts.layers,
       fmt::format("Networks whose convolutions are timed: {}", fmt::join(net_names(), ", ")));
  app.add_option("--shape", texts.shapes, "One convolution: N,C,H,W,K,R,S,stride,pad; may be repeated");
  app.add_flag("--no-input-gradient", texts.no_input_gradient, "--shape is a first layer: nobody wants grad_x");
  expect_whole_number(*list("--batch", texts.batches, "Batch sizes of --layers"), 1, 1 << 20);
  list("--passes", texts.passes, "fwd, dgrad (grad_x), wgrad (grad_w and bias), bwd (these two), both (fwd and bwd)");
  list("--precision", texts.precisions, "What the tensors hold: fp32, fp16 and bf16");
  list("--impl", texts.impls, impl_help());
  list("--cache", texts.caches, "hot: as the run before has left them; cold: full of something else");
  app.add_option("--device", texts.device, "cpu, cuda, cuda:N or auto");
  const auto number = [&](const char* name, int& value, int least, int most, const char* help) {
    expect_whole_number(*app.add_option(name, value, help), least, most);
  };
  number("--threads", texts.threads, 0, 4096, "Threads (0: all cores)");
  number("--groups", settings.protocol.groups, 1, 1000, "Measured groups of runs");
  number("--launches", settings.protocol.launches, 0, 100000, "Runs in a group (0: by itself)");
  number("--warmup", settings.protocol.warmup, 0, 1000, "Runs before the first group");
  const auto ceiling = [&](const char* name, double& value, const char* help) {
    expect_finite_number(*app.add_option(name, value, help));
  };
  ceiling("--peak-flops", texts.peak_flops, "The machine's operations per second, for the floor (0: measured)");
  ceiling("--peak-bandwidth", texts.peak_bandwidth, "Its bytes of memory per second (0: measured)");
  apps::expect_path(*app.add_option("--json", settings.json_file, "Write the results to this file"));
  apps::expect_path(*app.add_option("--svg", settings.svg_file, "Draw bars and a roofline to this file"));
  app.add_flag("--count", settings.count,
               "Count launches and bytes instead of timing; on simulated GPUs, preset simulated");
  app.add_flag(
      "--autotune", settings.autotune,
      "First measure who is the fastest for 'ours', and of cuDNN every plan, and take those; prints the times");
  app.add_flag("--serve", settings.serve, "Time on request: 'time CASE PASS IMPL RUNS' and 'quit' on stdin");
}

/// Each value once.
template <typename Value, typename Parse>
std::vector<Value> parse_all(const std::vector<std::string>& texts, Parse&& parse) {
  std::vector<Value> values;
  for (const std::string& text : texts) {
    const Value value = parse(text);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

DType parse_stored_precision(const std::string& text) {
  constexpr std::array kStored{autograd::Precision::fp32, autograd::Precision::fp16, autograd::Precision::bf16};
  std::vector<std::string_view> names;
  for (const autograd::Precision precision : kStored) {
    names.push_back(name_of(precision));
    if (names.back() == text) return storage_dtype(precision);
  }
  require(text != "tf32" && text != "3xtf32", "--precision '{0}': tensors are stored in fp32 for that: give --impl {0}",
          text);
  const std::string nearest = nearest_name(text, names);
  fail("--precision '{}': unknown precision{}; choose from {}", text,
       nearest.empty() ? nearest : fmt::format(", did you mean '{}'?", nearest), fmt::join(names, ", "));
}

std::vector<TimedLayer> layers_from(const Texts& texts) {
  std::vector<TimedLayer> layers;
  for (const std::string& net : texts.layers)
    for (BenchLayer& layer : layers_of(net)) layers.push_back({std::move(layer), texts.batches});
  for (const std::string& shape : texts.shapes) {
    GivenShape given = parse_shape(shape);
    given.layer.is_first = texts.no_input_gradient;
    layers.push_back({std::move(given.layer), {given.batch}});
  }
  require(!layers.empty(), "nothing to time: give --layers ({}) or --shape N,C,H,W,K,R,S,stride,pad",
          fmt::join(net_names(), ", "));
  require(!texts.no_input_gradient || !texts.shapes.empty(), "--no-input-gradient is about a --shape");
  return layers;
}

/// Those that were asked for and run here; notes about the others go to `missing`. Throws Error if nobody is left.
std::vector<Contestant> contestants_from(const std::vector<std::string>& names, Device device,
                                         std::vector<std::string>& missing) {
  if (names.empty()) return usual_contestants(device);
  std::vector<Contestant> present;
  for (const std::string& name : parse_all<std::string>(names, [](const std::string& text) { return text; })) {
    const Contestant& contestant = find_contestant(name, device);
    const std::string obstacle = contestant.obstacle(device);
    if (obstacle.empty())
      present.push_back(contestant);
    else
      missing.push_back(fmt::format("{}: {}", name, obstacle));
  }
  require(!present.empty(), "--impl {}; on {} there are {}", fmt::join(missing, "; "), name_of(device),
          fmt::join(contestant_names(device), ", "));
  return present;
}

Ceilings ceilings_from(const Texts& texts, Device device) {
  Ceilings ceilings;
  const bool given = texts.peak_flops > 0.0 && texts.peak_bandwidth > 0.0;
  if (device.type == DeviceType::cuda) {
    for (const DeviceDescription& known : list_devices())
      if (known.device == device) ceilings = known_ceilings(known.name);
  } else if (!given) {
    ceilings = measured_ceilings();
  }
  if (texts.peak_flops > 0.0) ceilings.flops_f32 = ceilings.flops_half = texts.peak_flops;
  if (texts.peak_bandwidth > 0.0) ceilings.bandwidth = texts.peak_bandwidth;
  if (given) ceilings.source = "given";
  return ceilings;
}

/// What the program does, and leaves behind, must go together.
void check_output(const BenchSettings& settings) {
  if (settings.count) {
    require(settings.svg_file.empty(), "--count draws no --svg");
    require(!settings.autotune, "--count: nothing is measured; leave --autotune out");
  }
  if (settings.serve) {
    require(!settings.count, "--serve and --count exclude each other: give one");
    require(!settings.autotune, "--serve times the usual choices; leave --autotune out");
    require(settings.json_file.empty() && settings.svg_file.empty(), "--serve answers on stdout; leave {} out",
            settings.json_file.empty() ? "--svg" : "--json");
  }
  require(settings.json_file.empty() || settings.json_file != settings.svg_file,
          "--json and --svg are both {}: name two files", settings.json_file);
}

}  // namespace

std::optional<BenchSettings> parse_command_line(int argc, const char* const* argv) {
  Texts texts;
  BenchSettings settings;
  CLI::App app("Times convolution with bias and ReLU, forward and backward, by several implementations in turn");
  add_options(app, texts, settings);
  if (!apps::parse_arguments(app, argc, argv)) return {};
  settings.layers = layers_from(texts);
  settings.passes = parse_all<Pass>(texts.passes, parse_pass);
  settings.dtypes = parse_all<DType>(texts.precisions, parse_stored_precision);
  settings.caches = parse_all<Cache>(texts.caches, parse_cache);
  try {
    settings.device = parse_device(texts.device);
  } catch (const Error& error) {
    const std::string_view what = error.what();
    fail("{}{}", what.starts_with("device") ? "--" : "--device: ", what);
  }
  if (settings.count) {
    const std::string obstacle = counting_obstacle(settings.device);
    require(obstacle.empty(), "--count: {}", obstacle);
  }
  check_output(settings);
  settings.contestants = contestants_from(texts.impls, settings.device, settings.missing);
  if (texts.threads > 0) set_num_threads(texts.threads);
  if (!settings.serve && !settings.count) settings.ceilings = ceilings_from(texts, settings.device);
  return settings;
}

}  // namespace tandem::conv_bench
