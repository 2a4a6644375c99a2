// Gradients that stay where they are from step to step.
#pragma once

#include "tandem/core/tensor.h"

#include <cstddef>
#include <vector>

namespace tandem::optim {

/// In which dtype gradients of half parameters are kept: in their own, or in f32, as sums of several backward passes
/// need it.
enum class HalfGradients : std::uint8_t { as_parameters, in_f32 };

/// One block of memory for the gradients of parameters, in which each has its place while this lives: the first
/// backward pass behind a zero_grad() writes there, and later ones add to it. A training step that is recorded in a
/// WorkGraph then reads and writes the same gradients in each launch, and none of them is the graph's. Example:
///     #include "tandem/autograd/functions/arithmetic.h"
///     #include "tandem/optim/sgd.h"
///     const Tensor weight = autograd::set_requires_grad(Tensor::full({}, 3.0));
///     SGD sgd({weight}, {.lr = 0.1});
///     const GradientPlaces places(sgd.parameters());
///     autograd::backward(autograd::mul(weight, weight));
///     const void* const first = autograd::grad(weight).raw_data();
///     sgd.zero_grad();
///     autograd::backward(autograd::mul(weight, weight));
///     const bool stays = autograd::grad(weight).raw_data() == first;  // true
///     const double gradient = places.place(0).item();                 // 6
class GradientPlaces {
 public:
  /// Of parameters on one device. Throws Error for none, for several devices, for one that is given twice, undefined or
  /// no floating leaf, and for one whose gradients have a place already, as those of DistributedDataParallel on several
  /// ranks have: those places stay, too.
  explicit GradientPlaces(std::vector<Tensor> parameters, HalfGradients half = HalfGradients::as_parameters);
  /// Gradients that are there keep the memory; later ones get memory of their own.
  ~GradientPlaces();
  GradientPlaces(const GradientPlaces&) = delete;
  GradientPlaces& operator=(const GradientPlaces&) = delete;

  /// Where the gradient of the `index`-th parameter is, if it has one, in that parameter's strides where these are
  /// dense. Holds 0 before the first backward pass. Throws Error where there are not so many.
  Tensor place(std::size_t index) const;

  /// Throws Error that names the first parameter whose gradient is elsewhere: someone has given it by set_grad(), say,
  /// or it is half and was added to. For what depends on places, such as recorded work.
  void check() const;

 private:
  std::vector<Tensor> parameters_;
  std::vector<Tensor> places_;
};

}  // namespace tandem::optim
