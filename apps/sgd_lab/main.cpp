// sgd_lab: a lesson on synchronous SGD.
#include "apps/arguments/program.h"
#include "apps/sgd_lab/command_line.h"
#include "apps/sgd_lab/page.h"
#include "apps/sgd_lab/pictures.h"
#include "apps/sgd_lab/text.h"
#include "tandem/comm/launch/launch.h"
#include "tandem/core/environment.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"
#include "tandem/train/terminal.h"
#include "tandem/train/wrapped_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace {

using namespace tandem;

int run(int argc, char** argv) {
  const auto options = sgd_lab::read_command_line(argc, argv);
  if (!options) return 0;
  const comm::Launch launch = comm::detect_launch(environment_variable);
  if (launch.size > 1 && launch.rank > 0) return 0;  // rank 0 tells why, undisturbed, and fails
  require(launch.size <= 1,
          "started by {} as {} processes, and sgd_lab is one, whose ranks are threads: start it alone, with --ranks {}",
          launch.launcher, launch.size, std::clamp(launch.size, 2, 8));
  set_num_threads(1);                      // each rank is a thread already
  std::optional<layers::AtomicFile> file;  // one that cannot be written is told before any work
  if (!options->html_file.empty()) file.emplace(options->html_file);
  std::optional<sgd_lab::PictureFiles> pictures;
  if (!options->picture_folder.empty()) pictures.emplace(options->picture_folder, *options);
  const sgd_lab::Lesson lesson = sgd_lab::make_lesson(*options);
  fmt::print("{}", train::wrapped(sgd_lab::lesson_text(lesson), train::line_columns(stdout)));
  if (file) {
    const bool has_sliders = options->shows(sgd_lab::Chapter::speed_up);
    const std::string page =
        sgd_lab::lesson_page(lesson, has_sliders ? sgd_lab::make_speed_grid() : sgd_lab::SpeedGrid{});
    file->write(page.data(), static_cast<std::int64_t>(page.size()));
    file->commit();
    fmt::print("\npage  {}\n", options->html_file);
  }
  if (pictures) {
    pictures->write(lesson);
    fmt::print("\npictures  {}: {}\n", options->picture_folder, fmt::join(pictures->names(), " "));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run(argc, argv); });
}
