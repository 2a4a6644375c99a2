// mbarrier: barriers in shared memory that count arrivals and the bytes of copies, phase by phase. (PTX ISA,
// "mbarrier")
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>

namespace tandem::simulator {

/// A phase ends when `arrivals` threads have come and all bytes that were announced are there. `barrier` is 8 bytes of
/// shared memory; other threads may use it after a barrier.
void init_mbarrier(std::uint64_t* barrier, unsigned arrivals, std::source_location where);
void arrive_at_mbarrier(std::uint64_t* barrier, std::source_location where);
/// The same, and announces that copies will bring so many bytes in this phase.
void arrive_and_expect(std::uint64_t* barrier, std::uint32_t bytes, std::source_location where);
/// Waits for the end of the phase of this parity: 0 for the first one, 1 for the one before it, which counts as ended.
void wait_at_mbarrier(std::uint64_t* barrier, unsigned parity, std::source_location where);

/// A copy that has been started: `land` brings its `bytes`. It is called as late as somebody waits.
struct Arrival {
  std::uint32_t bytes = 0;
  std::function<void()> land;
};
void bring_to_mbarrier(std::uint64_t* barrier, Arrival arrival, std::source_location where);

// Called by the engine.
void clear_mbarriers();
/// What threads did before they arrived counts as known to all.
void forget_clocks_of_mbarriers();
void check_mbarriers_at_end();

}  // namespace tandem::simulator
