// A program that has initialised MPI itself, for calls of one thread at a time, and asks for a progress thread.
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"

#include <mpi.h>

using namespace tandem;
using namespace tandem::comm;

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  const int code = run_program([](MpiEnvironment& environment) {
    const auto polled = make_process_group({.backend = "mpi", .progress = "auto"}, environment);
    const Tensor ones = Tensor::full({4}, 1.0);
    polled->all_reduce(Out(ones));
    require(polled->progress() == "poll", "a thread that MPI does not allow");
    make_process_group({.backend = "native", .progress = "thread"}, environment);
    return 0;
  });
  MPI_Finalize();
  return code;
}
