// Negative log likelihood on a GPU: a thread per row forward, and per element of the gradient backward.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/any_floats.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/loss/nll_loss_implementations.h"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;

/// Labels of all rows, the matrix that they choose from, and what they count.
struct Rows {
  const std::int64_t* labels;
  std::int64_t label_stride, rows, classes, row_stride, class_stride;
  device::AnyFloats of_classes;
  bool has_ignored;
  std::int64_t ignored;

  Rows(const Tensor& label_tensor, const Tensor& matrix, const LabelWeights& weights)
      : labels(label_tensor.data<std::int64_t>()),
        label_stride(label_tensor.stride(0)),
        rows(matrix.size(0)),
        classes(matrix.size(1)),
        row_stride(matrix.stride(0)),
        class_stride(matrix.stride(1)),
        of_classes(weights.of_classes),
        has_ignored(weights.ignore_index.has_value()),
        ignored(weights.ignore_index.value_or(0)) {}

  __device__ std::int64_t label(std::int64_t row) const { return labels[row * label_stride]; }
  __device__ bool ignores(std::int64_t label) const { return has_ignored && label == ignored; }
  __device__ bool has_class(std::int64_t label) const { return label >= 0 && label < classes; }
  /// NaN for a label outside of the classes.
  __device__ float weight(std::int64_t label) const {
    if (ignores(label)) return 0.0f;
    return has_class(label) ? static_cast<float>(of_classes.load(label, 1.0)) : NAN;
  }
};

template <typename T>
__global__ void nll_losses(Rows r, const T* log_probabilities, float* losses, std::int64_t loss_stride,
                           float* row_weights, std::int64_t weight_stride) {
  for (std::int64_t row = device::thread_in_grid(); row < r.rows; row += device::threads_in_grid()) {
    const std::int64_t label = r.label(row);
    const float weight = r.weight(label);
    const bool has_element = r.has_class(label) && !r.ignores(label);
    const float value =
        has_element ? -device::to_float(log_probabilities[row * r.row_stride + label * r.class_stride]) : 0.0f;
    losses[row * loss_stride] = weight * value;
    if (row_weights != nullptr) row_weights[row * weight_stride] = weight;
  }
}

template <typename T>
__global__ void nll_gradients(Rows r, device::AnyFloats grad_losses, T* grad) {
  const std::int64_t count = r.rows * r.classes;
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) {
    const std::int64_t row = i / r.classes, c = i - row * r.classes, label = r.label(row);
    const bool is_chosen = c == label && !r.ignores(label);
    float gradient = is_chosen ? -(r.weight(label) * static_cast<float>(grad_losses.load(row))) : 0.0f;
    if (!r.has_class(label) && !r.ignores(label)) gradient = NAN;
    grad[row * r.row_stride + c * r.class_stride] = device::from_float<T>(gradient);
  }
}

}  // namespace

void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses,
                      const LabelWeights& weights, const Out& row_weights) {
  if (losses.numel() == 0) return;
  device::dispatch(log_probabilities.dtype(), "nll_loss", [&]<typename T>(TypeTag<T>) {
    launch(nll_losses<T>, {device::blocks_for(losses.numel(), kThreadsPerBlock), kThreadsPerBlock},
           tandem::cuda::current_stream(losses), Rows(labels, log_probabilities, weights), log_probabilities.data<T>(),
           losses.data<float>(), losses.stride(0), row_weights.defined() ? row_weights.data<float>() : nullptr,
           row_weights.defined() ? row_weights.stride(0) : std::int64_t{0});
  });
}

void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad, const LabelWeights& weights) {
  if (grad.numel() == 0) return;
  device::dispatch(grad.dtype(), "nll_loss_backward", [&]<typename T>(TypeTag<T>) {
    launch(nll_gradients<T>, {device::blocks_for(grad.numel(), kThreadsPerBlock), kThreadsPerBlock},
           tandem::cuda::current_stream(grad), Rows(labels, grad, weights), device::AnyFloats(grad_losses),
           grad.data<T>());
  });
}

}  // namespace tandem::kernels::cuda
