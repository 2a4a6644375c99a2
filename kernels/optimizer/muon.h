// What a step of Muon does before and behind its matrix products, over many matrices.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/optimizer/step_factors.h"

#include <span>

namespace tandem::kernels {

struct MuonOptions {
  double lr = 0.24;
  double momentum = 0.6;
  double weight_decay = 0.0;
  bool nesterov = true;
  bool normalize = true;  // parameters are scaled to the norm of the root of their first size, unless `control` says no
  double eps = 1e-7;      // added to the norm of a matrix
  double gradient_factor = 1.0;
  Tensor skip{};  // i32, rank 0, on the device of the items: where it is not 0, no item changes; undefined: it is 0
  /// f64[kStepFactors] on the device of the items, a StepFactors: in place of lr, momentum, weight_decay and
  /// gradient_factor where it is defined; where its `keep` is 0, this step does not normalize. Whether there are
  /// momentum buffers is still up to `momentum`.
  Tensor control{};
  /// A LossScaleState on the device of the items (kernels/optimizer/loss_scale.h), times whose inverse gradient_factor
  /// counts; undefined: 1.
  Tensor loss_scale{};
};

/// A parameter with rows, its gradient, and its momentum buffer (of optimizer_state_dtype; undefined with momentum 0),
/// all dense and of equal strides. Half parameters may have an f32 gradient, and an f32 master.
struct MuonItem {
  Out parameter;
  Tensor gradient;
  Out momentum_buffer;
  bool is_first_step = false;  // the buffer holds nothing yet: it starts as the gradient itself
  Out master{};
  /// Dense, of any floating dtype: as many elements as the parameter has, in the order in which its memory has them.
  Out matrix{};
};

/// The matrices that a step is made of, and the momentum buffers in place:
///   g = gradient_factor * gradient
///   buffer = momentum * buffer + g
///   u = nesterov ? g + momentum * buffer : buffer
///   matrix = u / (|u| + eps), |u| the root of the sum of squares
/// Where skip is not 0, the matrices become zeros. Returns what muon_step() needs to know of the parameters, for the
/// same items. f64, f32, f16, bf16, computed in optimizer_state_dtype and, norms, in f64. All items on one device; on a
/// GPU two kernels for up to 24 of them, not in f64, and nobody waits.
Tensor muon_matrices(std::span<const MuonItem> items, const MuonOptions& options);

/// The parameters in place, by what has become of the matrices:
///   parameter *= root of its first size / |parameter|   (normalize)
///   parameter -= lr * (matrix + weight_decay * parameter)
/// Where there is a master, it is what is updated, and the parameter becomes its rounded copy in the same pass; a half
/// parameter without one is stepped in f32 and rounded. On a GPU one kernel for up to 24 items.
void muon_step(std::span<const MuonItem> items, const MuonOptions& options, const Tensor& squares);

}  // namespace tandem::kernels
