// The kinds of faults that the simulator tells apart.
#pragma once

namespace tandem::simulator {

enum class FaultKind {
  race,           // two threads or two streams touch memory, one of them writes, nothing orders them
  barrier,        // a barrier that not all threads reach, or that they reach in different places
  deadlock,       // nobody can go on
  out_of_bounds,  // outside of every allocation, or freed
  host_pointer,   // memory of the host, or of another thread's stack
  uninitialised,  // read of bytes that nobody wrote
  misaligned,     // a wide access at an address that is no multiple of its size
  mask,           // a warp operation whose mask is wrong for its lanes
  async_copy,     // cp.async used wrongly
  limit,          // more threads, blocks or shared memory than the device has
};

}  // namespace tandem::simulator
