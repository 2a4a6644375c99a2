// StateCopy: a copy of a run's tensors in memory that is kept for the next one.
#pragma once

#include "tandem/core/named_tensors.h"
#include "tandem/core/stream.h"

#include <vector>

namespace tandem::train {

/// Copies a state to the CPU, again and again: the copies stay, so that only the first take() pays for fresh memory,
/// where reserve() did not, and all cores share the work. Holds as much memory as the state takes. Example:
///     #include "tandem/core/tensor.h"
///     const Tensor weight = Tensor::full({2}, 1.0);
///     StateCopy copy;
///     copy.take({{"weight", weight}});
///     weight.fill(2.0);
///     const NamedTensors& taken = copy.tensors();
///     const float was = taken[0].second.to_vector<float>()[0];  // 1
class StateCopy {
 public:
  /// Copies `state`, in place of what was taken before: nobody may be reading that any more. Tensors on a GPU are
  /// copied in the order of the current stream, to pinned memory, and this returns without waiting for them. Throws
  /// Error for an undefined tensor, naming it, and where there is no memory.
  void take(const NamedTensors& state);

  /// Asks for the memory that take() of such a state needs, and lets the system provide it: fresh pages cost much more
  /// than the copy. Of the state no values are read, so that it may change meanwhile. What was taken before is lost.
  void reserve(const NamedTensors& state);

  /// Returns once what was taken is complete, also from another thread.
  void wait() const;

  /// In the order of the state, with its names, shapes, dtypes and, where they are dense, strides. After wait().
  const NamedTensors& tensors() const { return tensors_; }

 private:
  NamedTensors tensors_;
  std::vector<Event> copied_;  // of the devices
};

}  // namespace tandem::train
