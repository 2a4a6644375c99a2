// cifar_train: trains a network on small images, on one process or on N ranks started by mpirun or srun.
#include "run.h"

#include "apps/arguments/program.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/launch/threads.h"

#include <csignal>

int main(int argc, char** argv) {
  const tandem::apps::Clock::time_point start = tandem::apps::Clock::now();
  tandem::apps::hold_standard_streams();
  tandem::comm::undo_default_binding();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the system's limit is a full disk: an error to report
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away (| head) is output that cannot be written, like any other
  tandem::apps::ConfigReader configs;
  return tandem::apps::run_ranks_program(
      [&](tandem::comm::MpiEnvironment& environment) {
        return tandem::apps::run(argc, argv, environment, start, configs);
      },
      tandem::apps::interface_asked_for(argc, argv, configs));
}
