// Keys of random layers.
#include "tandem/layers/random_state.h"

#include "tandem/core/work_graph.h"
#include "tandem/layers/random_draws.h"

#include <algorithm>

namespace tandem::layers {

namespace {

thread_local std::int64_t draws = 0;

}  // namespace

std::int64_t random_draws() { return draws; }

void RandomState::set_step(std::uint32_t step) {
  step_ = step;
  if (!WorkGraph::is_recording()) launched_step_ = step;
  std::fill(uses_.begin(), uses_.end(), 0u);
}

void RandomState::set_rank(std::uint32_t rank) {
  rank_ = rank;
  set_step(step_);
}

RandomKey RandomState::next_key(std::uint32_t layer) {
  ++draws;
  if (layer >= uses_.size()) uses_.resize(layer + 1);
  const std::uint32_t use = uses_[layer]++;
  // Rank, layer and use go through a Philox block into the seed: keys of different ones share nothing visible.
  const auto words = philox4x32({layer, rank_, static_cast<std::uint32_t>(RandomStream::dropout), 0x6c617972u + use},
                                {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  return {.seed = (std::uint64_t{words[1]} << 32) | words[0], .stream = RandomStream::dropout, .step = step_};
}

RandomDraw RandomState::next_draw(std::uint32_t layer, Device device) {
  RandomDraw draw{.key = next_key(layer)};
  if (!WorkGraph::can_record(device)) return draw;
  if (WorkGraph::is_recording()) {
    draw.step = step_on(device);
    draw.key.step = step_ - static_cast<std::uint32_t>(launched_step_);
  } else if (!copies_.has(device)) {
    step_on(device);  // for upload() to know it
  }
  return draw;
}

Tensor RandomState::step_on(Device device) { return copies_.on(device, bytes()); }

void RandomState::upload() { copies_.upload(bytes()); }

}  // namespace tandem::layers
