// tandem_predict: classifies PNG and JPEG files with the weights of a run.
#include "predict.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/core/parse_device.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/stderr_line.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace {

using namespace tandem;

/// One object a line.
void print_json(const apps::FileResult& result) {
  nlohmann::ordered_json line = {{"file", result.file}};
  if (!result.error.empty()) {
    line["error"] = result.error;
  } else {
    line["classes"] = nlohmann::ordered_json::array();
    for (const auto& [name, probability] : result.prediction)
      line["classes"].push_back({{"class", name}, {"probability", probability}});
  }
  fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

/// `width`: columns of the file's name.
void print_line(const apps::FileResult& result, int width) {
  const int gap = std::max(width - train::display_width(result.file), 0);
  std::string line = result.file + std::string(static_cast<std::size_t>(gap), ' ');
  for (const auto& [name, probability] : result.prediction)
    line += fmt::format("  {} {:.1f} %", name, 100.0 * probability);
  fmt::print("{}\n", line);
}

train::TestTimeAugmentation parse_views(const std::string& text) {
  const auto names = train::test_time_augmentation_names();
  require(std::find(names.begin(), names.end(), text) != names.end(), "--tta: '{}' is none of {}", text,
          fmt::join(names, ", "));
  return train::parse_test_time_augmentation(text);
}

int run(int argc, char** argv) {
  std::string weights, device_name = "auto", views = "none";
  std::vector<std::string> files;
  std::int64_t top = 3;
  bool as_json = false;
  CLI::App app(
      "Classifies PNG and JPEG files with the weights that a training run left (final.safetensors). Files that cannot "
      "be read are told, the others classified: exit code 2");
  app.option_defaults()->always_capture_default();
  apps::expect_path(*app.add_option("--weights", weights, "File of weights (safetensors)")->required());
  app.add_option("images", files, "PNG or JPEG files")->required();
  apps::expect_whole_number(*app.add_option("--top", top, "How many classes to show, the likeliest first"), 1, 1000000);
  app.add_option(
      "--tta", views,
      "Test-time augmentation: the mean of what the network says of each image and its mirror image (flip), or "
      "of these and windows moved by a pixel (six, where the middle counts twice; six-equal); none: of the image "
      "alone");
  app.add_option("--device", device_name, "Where to compute: auto, cpu, cuda or cuda:N");
  app.add_flag("--json", as_json, "Print an object a line, for programs");
  if (!apps::parse_arguments(app, argc, argv)) return 0;
  const Device device = apps::naming_flags([&] { return parse_device(device_name); }, {"device", "--device"});
  const train::TestTimeAugmentation augmentation = parse_views(views);
  const apps::TrainedNetwork network = apps::load_network(weights, device);
  int width = 0;
  for (const std::string& file : files) width = std::max(width, train::display_width(file));
  width = std::min(width, 40);
  int code = 0;
  apps::predict(network, files, top, device, augmentation, [&](const apps::FileResult& result) {
    if (!result.error.empty()) {
      std::fflush(stdout);
      train::print_to_stderr(fmt::format("error: {}", result.error));
      code = 2;
    }
    if (as_json) print_json(result);
    if (!as_json && result.error.empty()) print_line(result, width);
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run(argc, argv); });
}
