#include "apps/sgd_lab/command_line.h"

#include "apps/arguments/arguments.h"
#include "tandem/core/error.h"

#include <CLI/CLI.hpp>

namespace tandem::sgd_lab {

std::optional<LabOptions> read_command_line(int argc, const char* const* argv) {
  LabOptions options;
  std::int64_t ranks = options.ranks, steps = options.steps, seed = static_cast<std::int64_t>(options.seed);
  std::string broken = "all", chapter = "all";
  CLI::App app(
      "Teaches synchronous SGD: trains a small network on drawn shapes by ranks that are threads, shows one step in "
      "detail, where the time goes, what more ranks and larger batches do, and what breaks when a part is left out");
  app.option_defaults()->always_capture_default();
  const auto number = [&](const char* name, std::int64_t& value, std::int64_t least, std::int64_t most,
                          const char* help) {
    apps::expect_whole_number(*app.add_option(name, value, help), least, most);
  };
  number("--ranks", ranks, 2, 8, "How many replicas train together");
  number("--steps", steps, 1, 1000, "Steps of each run; of those by larger batches so many at most");
  number("--seed", seed, 0, 1000000, "Of examples, their order, and initial weights");
  app.add_option(
      "--chapter", chapter,
      "What to show: step (one step in detail), ring (an all-reduce on small numbers), time (the exchange of "
      "gradients behind the backward pass and beside it), speed-up (what more ranks gain), batch-size "
      "(larger batches), broken (what breaks when a part is left out), or all");
  app.add_option("--break", broken,
                 "The part that is left out of a second run: sync-init, sync-grad, sampler, order, or all, one after "
                 "the other");
  app.add_option("--network", options.network,
                 "The network that time and speed-up are of, as words: alpha is the latency of a message, beta the "
                 "bandwidth");
  apps::expect_path(*app.add_option("--html", options.html_file, "Also write the lesson, with pictures, as this page"));
  apps::expect_path(*app.add_option("--pictures", options.picture_folder,
                                    "Also write the pictures of the lesson as SVG files into this folder"));
  if (!apps::parse_arguments(app, argc, argv)) return std::nullopt;
  options.ranks = static_cast<int>(ranks);
  options.steps = static_cast<int>(steps);
  options.seed = static_cast<std::uint64_t>(seed);
  options.chapters = chapters_by_name(chapter);
  options.broken = parts_by_name(broken);
  require(options.shows(Chapter::broken) || app.count("--break") == 0,
          "--break: is of chapter broken, which --chapter leaves out");
  require(options.shows(Chapter::time) || options.shows(Chapter::speed_up) || app.count("--network") == 0,
          "--network: is of chapters time and speed-up, which --chapter leaves out");
  check_network(options.network);
  return options;
}

}  // namespace tandem::sgd_lab
