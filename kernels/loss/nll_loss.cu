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

/// Labels of all rows, and the matrix that they choose from.
struct Rows {
  const std::int64_t* labels;
  std::int64_t label_stride, rows, classes, row_stride, class_stride;

  Rows(const Tensor& label_tensor, const Tensor& matrix)
      : labels(label_tensor.data<std::int64_t>()),
        label_stride(label_tensor.stride(0)),
        rows(matrix.size(0)),
        classes(matrix.size(1)),
        row_stride(matrix.stride(0)),
        class_stride(matrix.stride(1)) {}

  /// -1 where it is outside of the classes.
  __device__ std::int64_t label(std::int64_t row) const {
    const std::int64_t label = labels[row * label_stride];
    return label < 0 || label >= classes ? -1 : label;
  }
};

template <typename T>
__global__ void nll_losses(Rows r, const T* log_probabilities, float* losses, std::int64_t loss_stride) {
  for (std::int64_t row = device::thread_in_grid(); row < r.rows; row += device::threads_in_grid()) {
    const std::int64_t label = r.label(row);
    losses[row * loss_stride] =
        label < 0 ? NAN : -device::to_float(log_probabilities[row * r.row_stride + label * r.class_stride]);
  }
}

template <typename T>
__global__ void nll_gradients(Rows r, device::AnyFloats grad_losses, T* grad) {
  const std::int64_t count = r.rows * r.classes;
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) {
    const std::int64_t row = i / r.classes, c = i - row * r.classes, label = r.label(row);
    float gradient = c == label ? -static_cast<float>(grad_losses.load(row)) : 0.0f;
    if (label < 0) gradient = NAN;
    grad[row * r.row_stride + c * r.class_stride] = device::from_float<T>(gradient);
  }
}

}  // namespace

void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses) {
  if (losses.numel() == 0) return;
  device::dispatch(log_probabilities.dtype(), "nll_loss", [&]<typename T>(TypeTag<T>) {
    launch(nll_losses<T>, {device::blocks_for(losses.numel(), kThreadsPerBlock), kThreadsPerBlock},
           tandem::cuda::current_stream(losses), Rows(labels, log_probabilities), log_probabilities.data<T>(),
           losses.data<float>(), losses.stride(0));
  });
}

void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad) {
  if (grad.numel() == 0) return;
  device::dispatch(grad.dtype(), "nll_loss_backward", [&]<typename T>(TypeTag<T>) {
    launch(nll_gradients<T>, {device::blocks_for(grad.numel(), kThreadsPerBlock), kThreadsPerBlock},
           tandem::cuda::current_stream(grad), Rows(labels, grad), device::AnyFloats(grad_losses), grad.data<T>());
  });
}

}  // namespace tandem::kernels::cuda
