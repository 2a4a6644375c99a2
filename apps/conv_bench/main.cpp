// conv_bench: times convolution with bias and ReLU, forward and backward, by several implementations in turn.
#include "apps/arguments/program.h"
#include "apps/conv_bench/command_line.h"
#include "apps/conv_bench/program.h"
#include "apps/conv_bench/serve.h"

#include <csignal>

int main(int argc, char** argv) {
  using namespace tandem::conv_bench;
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the system's limit is a full disk: an error to report
  return tandem::apps::run_program([&] {
    const std::optional<BenchSettings> settings = parse_command_line(argc, argv);
    if (!settings) return 0;
    if (!settings->serve) return run_program(*settings, stdout, stderr);
    serve(*settings);
    return 0;
  });
}
