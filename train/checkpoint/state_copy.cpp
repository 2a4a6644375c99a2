// Copying many tensors at once.
#include "tandem/train/checkpoint/state_copy.h"

#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/tensor.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace tandem::train {
namespace {

/// Whether a copy of `source` can be put into the memory of `copy`, strides and all.
bool fits(const Tensor& copy, const Tensor& source) {
  const bool wants_pinned = source.device() != Device{};
  return copy.defined() && copy.shape() == source.shape() && copy.dtype() == source.dtype() &&
         copy.storage()->is_pinned() == wants_pinned && (!source.is_dense() || copy.strides() == source.strides());
}

/// Host memory for a copy of `source`.
Tensor memory_for(const Tensor& source) {
  const Tensor flat = Tensor::empty(source.shape(), {.dtype = source.dtype(), .pinned = source.device() != Device{}});
  return source.is_dense() && source.numel() > 0 ? flat.as_strided(source.shape(), source.strides(), 0) : flat;
}

/// Bytes in a row that go from one place to another.
struct Piece {
  std::byte* to;
  const std::byte* from;
  std::int64_t bytes, before;  // the latter: of all pieces in front of it
};

/// Shares the bytes of all pieces out over the cores: single tensors are too small, or too few.
void copy_pieces(const std::vector<Piece>& pieces) {
  if (pieces.empty()) return;
  constexpr std::int64_t kGrain = 1 << 18;
  parallel_for(pieces.back().before + pieces.back().bytes, kGrain, [&](std::int64_t begin, std::int64_t end) {
    auto piece = std::ranges::upper_bound(pieces, begin, {}, &Piece::before) - 1;
    for (; piece != pieces.end() && piece->before < end; ++piece) {
      const std::int64_t first = std::max(begin - piece->before, std::int64_t{0});
      const std::int64_t last = std::min(end - piece->before, piece->bytes);
      std::memcpy(piece->to + first, piece->from + first, static_cast<std::size_t>(last - first));
    }
  });
}

}  // namespace

void StateCopy::take(const NamedTensors& state) {
  const MemoryTagScope tag(MemoryTag::workspace);
  copied_.clear();
  tensors_.resize(state.size());
  std::vector<Piece> pieces;
  std::vector<Device> devices;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    require(tensor.defined(), "checkpoints: tensor {} is undefined", name);
    const Tensor source = tensor.detach();
    tensors_[i].first = name;
    Tensor& copy = tensors_[i].second;
    if (!fits(copy, source)) copy = memory_for(source);
    const std::int64_t bytes = source.numel() * size_of(source.dtype());
    if (source.device() != Device{}) {
      copy.copy_from_async(source);
      if (std::ranges::find(devices, source.device()) == devices.end()) devices.push_back(source.device());
    } else if (!source.is_dense()) {
      copy.copy_from(source);
    } else if (bytes > 0) {
      pieces.push_back({static_cast<std::byte*>(Out(copy).raw_data()), static_cast<const std::byte*>(source.raw_data()),
                        bytes, pieces.empty() ? 0 : pieces.back().before + pieces.back().bytes});
    }
  }
  for (const Device device : devices) copied_.emplace_back().record(current_stream(device));
  copy_pieces(pieces);
}

void StateCopy::reserve(const NamedTensors& state) {
  const MemoryTagScope tag(MemoryTag::workspace);
  copied_.clear();
  tensors_.resize(state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    Tensor& copy = tensors_[i].second;
    if (!tensor.defined() || fits(copy, tensor)) continue;
    copy = memory_for(tensor);
    std::memset(Out(copy).raw_data(), 0, static_cast<std::size_t>(copy.numel() * size_of(copy.dtype())));
  }
}

void StateCopy::wait() const {
  for (const Event& event : copied_) event.synchronize();
}

}  // namespace tandem::train
