// Op cases: batch normalisation in training and in evaluation, plain and with an activation.
#include "tandem/autograd/functions/batch_norm.h"
#include "tandem/autograd/functions/ghost_batch_norm.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tests/op_cases/op_case.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace tandem;
using namespace tandem::test;
using kernels::Activation;
using kernels::BatchNormOptions;

namespace {

/// Running statistics that are neither 0 nor 1, the same for each call.
struct Running {
  Tensor mean, var;
  Running(std::int64_t channels, DType dtype, Device device) {
    std::vector<double> means, vars;
    for (std::int64_t c = 0; c < channels; ++c) {
      means.push_back(0.25 * static_cast<double>(c % 5) - 0.5);
      vars.push_back(0.5 + 0.25 * static_cast<double>(c % 7));
    }
    mean = Tensor::empty({channels}, {.dtype = dtype});
    var = Tensor::empty({channels}, {.dtype = dtype});
    dispatch_floating(dtype, "running", [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::size_t c = 0; c < means.size(); ++c) {
        Out(mean).data<T>()[c] = T(static_cast<compute_t<T>>(means[c]));
        Out(var).data<T>()[c] = T(static_cast<compute_t<T>>(vars[c]));
      }
    });
    mean = mean.to(device);
    var = var.to(device);
  }
};

/// The f64 reference; without weight and bias, for x alone.
Tensor reference_of(const std::vector<Tensor>& in, const BatchNormOptions& options) {
  const Tensor weight = in.size() > 1 ? in[1] : Tensor(), bias = in.size() > 1 ? in[2] : Tensor();
  const Running running(in[0].size(1), DType::f64, Device{});
  const Tensor y = empty_like(in[0]), mean = Tensor::empty({in[0].size(1)}, {.dtype = DType::f64}),
               inverse = empty_like(mean);
  if (in[0].numel() == 0) return y;
  if (options.training) {
    kernels::reference::batch_norm_forward_train(in[0], weight, bias, Out(running.mean), Out(running.var), options,
                                                 Out(y), Out(mean), Out(inverse));
  } else {
    kernels::reference::batch_norm_forward_eval(in[0], weight, bias, running.mean, running.var, options, Out(y),
                                                Out(mean), Out(inverse));
  }
  return y;
}

/// What the rounding errors of y are relative to: with statistics known to a few roundings of the largest |x| of the
/// channel, (1 + |xhat|) * max|x - shift| / std * |weight| + |bias|. That is more than what the activation is of.
Tensor magnitude_of(const std::vector<Tensor>& in, const BatchNormOptions& options) {
  const Tensor& x = in[0];
  BatchNormOptions plain = options;
  plain.activation = Activation::none;
  const Tensor xhat = reference_of({x}, plain), size = empty_like(x);
  const std::int64_t channels = x.size(1), pixels = x.numel() == 0 ? 0 : x.numel() / channels / x.size(0);
  const std::vector<double> values = x.to_vector<double>(), normalised = xhat.to_vector<double>();
  std::vector<double> result(values.size());
  for (std::int64_t c = 0; c < channels; ++c) {
    double largest = 1.0, low = values.empty() ? 0.0 : values[static_cast<std::size_t>(c * pixels)], high = low;
    double low_hat = 0.0, high_hat = 0.0;
    const auto visit = [&](const auto& body) {
      for (std::int64_t n = 0; n < x.size(0); ++n) {
        for (std::int64_t p = 0; p < pixels; ++p) body(static_cast<std::size_t>((n * channels + c) * pixels + p));
      }
    };
    visit([&](std::size_t i) {
      largest = std::max(largest, std::abs(values[i]));
      if (values[i] <= low) low = values[i], low_hat = normalised[i];
      if (values[i] >= high) high = values[i], high_hat = normalised[i];
    });
    // 1 / std is the slope of xhat over x.
    const double slope = high > low ? (high_hat - low_hat) / (high - low) : 1.0 / std::sqrt(options.eps);
    const auto channel = static_cast<std::size_t>(c);
    const double weight = in.size() > 1 ? std::abs(in[1].to_vector<double>()[channel]) : 1.0;
    const double bias = in.size() > 1 ? std::abs(in[2].to_vector<double>()[channel]) : 0.0;
    visit([&](std::size_t i) { result[i] = (1.0 + std::abs(normalised[i])) * 2.0 * largest * slope * weight + bias; });
  }
  return Tensor::from(result, x.shape());
}

/// Of images: in two parts where there are two or more images with more than one value each, else in one.
std::int64_t ghost_part(const Shape& shape) {
  const std::int64_t pixels = shape[2] * shape[3];
  return shape[0] % 2 == 0 && shape[0] / 2 * pixels > 1 ? shape[0] / 2 : std::max<std::int64_t>(1, shape[0]);
}

/// What `of_part` is of each part of x, which comes first, and of the tensors behind it.
Tensor over_parts(const std::vector<Tensor>& in, const std::function<Tensor(const std::vector<Tensor>&)>& of_part) {
  const std::int64_t part = ghost_part(in[0].shape());
  std::vector<double> values;
  for (std::int64_t i = 0; i < in[0].size(0) / part; ++i) {
    std::vector<Tensor> own = in;
    own[0] = in[0].narrow(0, i * part, part);
    for (const double value : of_part(own).to_vector<double>()) values.push_back(value);
  }
  return Tensor::from(values, in[0].shape());
}

OpCase ghost_case() {
  const BatchNormOptions options{.training = true, .activation = Activation::none};
  const auto calls = [options](const Shape& nchw) {
    std::vector<OpCall> result;
    if (nchw[0] * nchw[2] * nchw[3] == 1) return result;
    for (const bool affine : {true, false}) {
      OpCall call;
      call.variant = affine ? "" : "no weight and bias";
      call.inputs = {{.shape = nchw}};
      if (affine) call.inputs.insert(call.inputs.end(), {{.shape = {nchw[1]}}, {.shape = {nchw[1]}}});
      call.function = [=](const std::vector<Tensor>& in) {
        const Running running(in[0].size(1), in[0].dtype(), in[0].device());
        return autograd::ghost_batch_norm(in[0], affine ? in[1] : Tensor(), affine ? in[2] : Tensor(), running.mean,
                                          running.var, ghost_part(in[0].shape()), options);
      };
      call.reference = [=](const std::vector<Tensor>& in) {
        return over_parts(in, [&](const std::vector<Tensor>& own) { return reference_of(own, options); });
      };
      call.magnitude = [=](const std::vector<Tensor>& in) {
        return over_parts(in, [&](const std::vector<Tensor>& own) { return magnitude_of(own, options); });
      };
      call.terms = static_cast<double>(nchw[0] * nchw[2] * nchw[3]) + 8.0;
      result.push_back(call);
    }
    return result;
  };
  const Tensor x = Tensor::zeros({6, 3, 4, 4}), three = Tensor::full({3}, 1.0), four = Tensor::full({4}, 1.0);
  const auto refuse = [=](const Tensor& of, const Tensor& weight, std::int64_t part, bool training) {
    return [=] { autograd::ghost_batch_norm(of, weight, three, three, three, part, {.training = training}); };
  };
  return {
      .name = "ghost_batch_norm",
      .calls = calls,
      .bad_inputs = {{"a part that does not divide", refuse(x, three, 4, true), "a batch of 6 cannot be cut"},
                     {"no part", refuse(x, three, 0, true), "cannot be cut into parts of 0"},
                     {"a negative part", refuse(x, three, -2, true), "cannot be cut into parts of -2"},
                     {"evaluation", refuse(x, three, 2, false), "is for training"},
                     {"one value", refuse(Tensor::zeros({4, 3}), three, 1, true), "more than one value per channel"},
                     {"weight", refuse(x, four, 2, true), "batch_norm: weight"},
                     {"rank", refuse(Tensor::zeros({2, 3, 4}), three, 1, true), "needs images [N, C, H, W]"}},
      .exact_on_integers = false};
}

OpCase case_of(const std::string& name, const BatchNormOptions& options) {
  const auto calls = [options](const Shape& nchw) {
    std::vector<OpCall> result;
    const std::int64_t values = nchw[0] * nchw[2] * nchw[3];
    if (options.training && values == 1) return result;
    std::vector<Shape> shapes{nchw};
    if (nchw[0] >= 2 && nchw[2] * nchw[3] == 1) shapes.push_back({nchw[0], nchw[1]});
    for (const Shape& shape : shapes) {
      for (const bool affine : {true, false}) {
        OpCall call;
        call.variant = fmt::format("rank {}{}", shape.rank(), affine ? "" : ", no weight and bias");
        call.inputs = {{.shape = shape}};
        if (affine) call.inputs.insert(call.inputs.end(), {{.shape = {nchw[1]}}, {.shape = {nchw[1]}}});
        call.function = [=](const std::vector<Tensor>& in) {
          const Running running(in[0].size(1), in[0].dtype(), in[0].device());
          return autograd::batch_norm(in[0], affine ? in[1] : Tensor(), affine ? in[2] : Tensor(), running.mean,
                                      running.var, options);
        };
        call.reference = [=](const std::vector<Tensor>& in) { return reference_of(in, options); };
        call.magnitude = [=](const std::vector<Tensor>& in) { return magnitude_of(in, options); };
        call.terms = static_cast<double>(values) + 8.0;
        // GELU and SiLU have slopes of at most 1.13, and 8 roundings of their own (activation_cases.cpp).
        const bool smooth = options.activation == Activation::gelu || options.activation == Activation::silu;
        if (smooth) call.terms = 1.13 * call.terms + 8.0;
        result.push_back(call);
      }
    }
    return result;
  };
  const auto refuse = [options](const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                                double eps) {
    BatchNormOptions changed = options;
    changed.eps = eps;
    return [=] { autograd::batch_norm(x, weight, bias, mean, mean, changed); };
  };
  const Tensor x = Tensor::zeros({2, 3, 4, 4}), three = Tensor::full({3}, 1.0), four = Tensor::full({4}, 1.0);
  return {
      .name = name,
      .calls = calls,
      .bad_inputs = {{"weight", refuse(x, four, three, three, 1e-5), "weight of an input f32[2, 3, 4, 4] must have"},
                     {"bias", refuse(x, three, four, three, 1e-5), "batch_norm: bias"},
                     {"running mean", refuse(x, three, three, four, 1e-5), "batch_norm: running mean"},
                     {"running variance", [=] { autograd::batch_norm(x, three, three, three, four, options); },
                      "batch_norm: running variance"},
                     {"rank", refuse(Tensor::zeros({2, 3, 4}), three, three, three, 1e-5), "needs images [N, C, H, W]"},
                     {"integers", refuse(Tensor::zeros({2, 3}, {.dtype = DType::i64}), three, three, three, 1e-5),
                      "floating dtype"},
                     {"eps", refuse(x, three, three, three, -1.0), "eps must not be negative"}},
      .exact_on_integers = false};
}

const RegisterOp train_case(case_of("batch_norm", {.training = true}));
const RegisterOp train_relu_case(case_of("batch_norm with relu", {.training = true, .activation = Activation::relu}));
const RegisterOp train_gelu_case(case_of("batch_norm with gelu", {.training = true, .activation = Activation::gelu}));
const RegisterOp train_silu_case(case_of("batch_norm with silu", {.training = true, .activation = Activation::silu}));
const RegisterOp train_ghost_case(ghost_case());
const RegisterOp eval_case(case_of("batch_norm in evaluation", {.training = false}));
const RegisterOp eval_relu_case(case_of("batch_norm in evaluation with relu",
                                        {.training = false, .activation = Activation::relu}));
const RegisterOp eval_gelu_case(case_of("batch_norm in evaluation with gelu",
                                        {.training = false, .activation = Activation::gelu}));

}  // namespace
