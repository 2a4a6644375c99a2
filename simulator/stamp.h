// When and by whom a byte of memory was last touched, in 64 bits.
//
//   serial : 27   the block (or the copy) it happened in; numbers grow, so they also say in which launch
//   barrier: 13   how many __syncthreads() the block had passed
//   epoch  : 12   how many warp synchronisations the lane had passed since the last of 4,094 of them
//   thread : 10
//   atomic :  1
//   valid  :  1
#pragma once

#include <cstdint>

namespace tandem::simulator {

class Stamp {
 public:
  static constexpr std::uint64_t kMaxSerial = 1u << 27;
  static constexpr unsigned kMaxBarrierEpoch = 1u << 13;
  static constexpr unsigned kUnfinishedEpoch = (1u << 12) - 1;  // after all others
  static constexpr unsigned kLastWarpEpoch = kUnfinishedEpoch - 1;

  // States of memory that no stamp can have, all of serial 0.
  static constexpr std::uint64_t kNotAllocated = 0;  // zero, so that fresh shadow means "nothing is here"
  static constexpr std::uint64_t kLongAgo = 1;       // written, and ordered before all that comes
  static constexpr std::uint64_t kUninitialised = 2;
  static constexpr std::uint64_t kBeingCopied = 3;  // an asynchronous copy is to fill it: nobody may touch it before
  static constexpr std::uint64_t kNever = 0;        // of reads

  static constexpr std::uint64_t kAtomicBit = 2;

  constexpr explicit Stamp(std::uint64_t bits) : bits_(bits) {}
  static constexpr Stamp make(std::uint64_t serial, unsigned barrier, unsigned epoch, unsigned thread, bool atomic) {
    return Stamp(serial << 37 | std::uint64_t{barrier} << 24 | std::uint64_t{epoch} << 12 | std::uint64_t{thread} << 2 |
                 (atomic ? 2u : 0u) | 1u);
  }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr std::uint64_t serial() const { return bits_ >> 37; }
  constexpr unsigned barrier() const { return static_cast<unsigned>(bits_ >> 24) & 0x1fffu; }
  constexpr unsigned epoch() const { return static_cast<unsigned>(bits_ >> 12) & 0xfffu; }
  constexpr unsigned thread() const { return static_cast<unsigned>(bits_ >> 2) & 0x3ffu; }
  /// The same time, of the first lane of the thread's warp.
  constexpr std::uint64_t of_warp() const { return bits_ & ~(std::uint64_t{31} << 2); }
  constexpr bool atomic() const { return (bits_ & 2u) != 0; }

 private:
  std::uint64_t bits_;
};

/// Stamps start from 1 again: everything that was touched so far counts as long ago.
void forget_order();

}  // namespace tandem::simulator
