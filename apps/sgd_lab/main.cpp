// sgd_lab: a lesson on synchronous SGD.
#include "apps/arguments/program.h"
#include "apps/sgd_lab/command_line.h"
#include "apps/sgd_lab/text.h"
#include "tandem/core/parallel.h"

#include <fmt/core.h>

namespace {

using namespace tandem;

int run(int argc, char** argv) {
  const auto options = sgd_lab::read_command_line(argc, argv);
  if (!options) return 0;
  set_num_threads(1);  // each rank is a thread already
  fmt::print("{}", sgd_lab::lesson_text(sgd_lab::make_lesson(*options)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run(argc, argv); });
}
