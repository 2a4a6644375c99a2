// tandem_predict: classifies PNG and JPEG files with the weights of a run.
#include "predict.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/core/parse_device.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace {

using namespace tandem;

/// One object a line.
void print_json(const std::string& file, const apps::Prediction& prediction) {
  nlohmann::ordered_json line = {{"file", file}, {"classes", nlohmann::ordered_json::array()}};
  for (const auto& [name, probability] : prediction)
    line["classes"].push_back({{"class", name}, {"probability", probability}});
  fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_line(const std::string& file, std::size_t width, const apps::Prediction& prediction) {
  std::string line = fmt::format("{:<{}}", file, width);
  for (const auto& [name, probability] : prediction) line += fmt::format("  {} {:.1f} %", name, 100.0 * probability);
  fmt::print("{}\n", line);
}

int run(int argc, char** argv) {
  std::string weights, device_name = "auto";
  std::vector<std::string> files;
  std::int64_t top = 3;
  bool as_json = false;
  CLI::App app("Classifies PNG and JPEG files with the weights that a run of cifar_train left (final.safetensors)");
  app.option_defaults()->always_capture_default();
  apps::expect_path(*app.add_option("--weights", weights, "File of weights (safetensors)")->required());
  app.add_option("images", files, "PNG or JPEG files")->required();
  apps::expect_whole_number(*app.add_option("--top", top, "How many classes to show, the likeliest first"), 1, 1000000);
  app.add_option("--device", device_name, "Where to compute: auto, cpu, cuda or cuda:N");
  app.add_flag("--json", as_json, "Print an object a line, for programs");
  if (!apps::parse_arguments(app, argc, argv)) return 0;
  const Device device = apps::naming_flags([&] { return parse_device(device_name); }, {"device", "--device"});
  const apps::TrainedNetwork network = apps::load_network(weights, device);
  const std::vector<apps::Prediction> predictions = apps::predict(network, files, top, device);
  std::size_t width = 0;
  for (const std::string& file : files) width = std::max(width, file.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    as_json ? print_json(files[i], predictions[i])
            : print_line(files[i], std::min<std::size_t>(width, 40), predictions[i]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run(argc, argv); });
}
