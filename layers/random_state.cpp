// Keys of random layers.
#include "layers/random_state.h"

namespace tandem::layers {

RandomKey RandomState::key(std::uint32_t layer) const {
  // Rank and layer go through a Philox block into the seed: keys of different layers or ranks share nothing visible.
  const auto words = philox4x32({layer, rank_, static_cast<std::uint32_t>(RandomStream::dropout), 0x6c617972u},
                                {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  return {.seed = (std::uint64_t{words[1]} << 32) | words[0], .stream = RandomStream::dropout, .step = step_};
}

}  // namespace tandem::layers
