// Checks shared by the optimizer kernels.
#include "tandem/kernels/optimizer/tensor_list.h"

#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/loss_scale.h"

namespace tandem::kernels {

void require_alike(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& model, DType dtype) {
  if (!model.is_dense()) fail("{}: the parameter {} is not dense", op, describe(model));
  bool alike = tensor.defined() && tensor.shape() == model.shape() && tensor.dtype() == dtype &&
               tensor.device() == model.device();
  for (int dim = 0; alike && dim < model.rank(); ++dim) {
    alike = model.size(dim) == 1 || model.numel() == 0 || tensor.stride(dim) == model.stride(dim);
  }
  if (alike) return;
  fail("{}: {} of parameter {} must be {} of its shape and strides {}, got {}", op, what, describe(model),
       name_of(dtype), to_string(model.strides()), describe(tensor));
}

void check_update(std::string_view op, const UpdateTensors& item) {
  const DType dtype = item.parameter.dtype();
  const bool half = dtype != optimizer_state_dtype(dtype);
  const bool wide_gradient = half && item.gradient.defined() && item.gradient.dtype() == DType::f32;
  require_alike(op, "the gradient", item.gradient, item.parameter, wide_gradient ? DType::f32 : dtype);
  check_master(op, item.parameter, item.master);
}

void check_master(std::string_view op, const Tensor& parameter, const Tensor& master) {
  if (!master.defined()) return;
  require(is_half(parameter.dtype()), "{}: only f16 and bf16 parameters have a master, {} is its own", op,
          describe(parameter));
  require_alike(op, "the master", master, parameter, DType::f32);
}

void check_skip(std::string_view op, const Tensor& skip, Device device) {
  if (!skip.defined()) return;
  require(skip.dtype() == DType::i32 && skip.rank() == 0 && skip.device() == device,
          "{}: whether to skip must be one i32 of rank 0 on {}, got {}", op, name_of(device), describe(skip));
}

void check_control(std::string_view op, const Tensor& control, Device device) {
  if (!control.defined()) return;
  require(control.dtype() == DType::f64 && control.shape() == Shape{kStepFactors} && control.is_dense() &&
              control.device() == device,
          "{}: the factors of a step must be a dense f64[{}] on {}, got {}", op, kStepFactors, name_of(device),
          describe(control));
}

StepFactors factors_on_cpu(const Tensor& control, const StepFactors& given, const Tensor& loss_scale) {
  StepFactors factors = given;
  if (control.defined()) {
    const double* const f = control.data<double>();
    factors = {.lr = f[0], .momentum = f[1], .weight_decay = f[2], .gradient_factor = f[3], .keep = f[4]};
  }
  if (loss_scale.defined()) factors.gradient_factor *= read_loss_scale(loss_scale).inverse;
  return factors;
}

std::vector<std::int64_t> dense_sizes(std::string_view op, std::span<const Tensor> tensors) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& tensor : tensors) {
    if (!is_floating(tensor.dtype()) || !tensor.is_dense()) {
      fail("{}: needs dense floating tensors, got {} with strides {}", op, describe(tensor),
           to_string(tensor.strides()));
    }
    require_one_device(op, tensors.front(), tensor);
    sizes.push_back(tensor.numel());
  }
  return sizes;
}

}  // namespace tandem::kernels
