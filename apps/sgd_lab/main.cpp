// sgd_lab: a lesson on synchronous SGD.
#include "apps/arguments/program.h"
#include "apps/sgd_lab/command_line.h"
#include "apps/sgd_lab/page.h"
#include "apps/sgd_lab/text.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"

#include <fmt/core.h>

#include <optional>

namespace {

using namespace tandem;

int run(int argc, char** argv) {
  const auto options = sgd_lab::read_command_line(argc, argv);
  if (!options) return 0;
  set_num_threads(1);                      // each rank is a thread already
  std::optional<layers::AtomicFile> file;  // one that cannot be written is told before any work
  if (!options->html_file.empty()) file.emplace(options->html_file);
  const sgd_lab::Lesson lesson = sgd_lab::make_lesson(*options);
  fmt::print("{}", sgd_lab::lesson_text(lesson));
  if (file) {
    const std::string page = sgd_lab::lesson_page(lesson, sgd_lab::make_speed_grid());
    file->write(page.data(), static_cast<std::int64_t>(page.size()));
    file->commit();
    fmt::print("\npage  {}\n", options->html_file);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run(argc, argv); });
}
