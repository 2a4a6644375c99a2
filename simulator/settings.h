// How the simulator runs: order of threads and streams, what it writes down, and what it lets fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::simulator {

/// In which order threads of a block, and blocks of a grid, take their turns. A thread runs as far as it can alone.
enum class Order : std::uint8_t { forward, reverse, random };

/// When work on a stream is done: at once, or as late as synchronisation allows and in random order between streams.
enum class Streams : std::uint8_t { eager, deferred };

/// What memory and events of another process are, once they are open: those of a GPU, or what drivers and containers
/// have made of them.
enum class Ipc : std::uint8_t {
  on,
  off,        ///< they cannot be opened
  foreign,    ///< other memory
  unordered,  ///< events for which nobody waits
  stuck,      ///< events that nobody ever passes
};

struct Settings {
  Order order = Order::forward;
  Streams streams = Streams::eager;
  std::uint64_t seed = 1;                           // of random orders
  int devices = 1;                                  // how many GPUs there are
  int multiprocessors = 132;                        // of each GPU
  std::size_t memory_bytes = std::size_t{8} << 30;  // of each GPU
  Ipc ipc = Ipc::on;                                // of what this process opens
  bool lint = false;                                // count sectors and wavefronts of memory requests
  std::string coverage_file;                        // gets the kernels that ran and their blocks; empty: none
  std::string lint_file;                            // gets the lint table at exit; empty: none
};

/// The settings in force; changes hold from the next launch on. They start from the environment:
///   TANDEM_SIMULATOR_ORDER            forward | reverse | random[:SEED]
///   TANDEM_SIMULATOR_STREAMS          eager | deferred
///   TANDEM_SIMULATOR_DEVICES          number of GPUs; 0 for none
///   TANDEM_SIMULATOR_MULTIPROCESSORS  of each GPU
///   TANDEM_SIMULATOR_MEMORY           bytes of each GPU
///   TANDEM_SIMULATOR_IPC              on | off | foreign | unordered | stuck: memory and events of other processes
///   TANDEM_SIMULATOR_COVERAGE         file to add kernels and the sizes of their blocks to
///   TANDEM_SIMULATOR_LINT             file to write the lint table to
/// A value that is none of these throws std::runtime_error.
Settings& settings();

/// Lets `times` tries of this thread to take device memory fail, the first of them the `nth` from now on (1: the next
/// one); 0 or less: none. Tries of other threads, as of those that load batches, do not count. A graph that has memory
/// takes it at its upload, or at a launch, where it has none or has some for another stream: that is one try. Who tries
/// again meets the next one: of Tandem, an allocation fails with 4 of them, one that is captured with 1, a graph's
/// upload or launch with 2.
void fail_allocation(std::int64_t nth, std::int64_t times = 1);
/// The same of page-locked memory of the host, for which Tandem tries once.
void fail_host_allocation(std::int64_t nth, std::int64_t times = 1);
/// The same of instantiations of graphs, which then find no memory.
void fail_instantiation(std::int64_t nth, std::int64_t times = 1);

}  // namespace tandem::simulator
