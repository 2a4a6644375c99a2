// Every op of the table on a CUDA device, real or simulated, against the f64 reference on the CPU.
#include "tandem/autograd/variable.h"
#include "tandem/kernels/cast/cast.h"
#include "tests/op_cases/for_each_call.h"
#include "tests/op_cases/op_checks.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// Exact numbers as a dtype holds them.
Tensor rounded(const Tensor& exact, DType dtype) {
  const Tensor result = Tensor::empty(exact.shape(), {.dtype = dtype});
  kernels::cast(exact.contiguous(), Out(result));
  return result;
}

}  // namespace

TEST_CASE("on CUDA, integer inputs give exact outputs and gradients, rounded once", "[cuda]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    if (!op.exact_on_integers) return;
    for (const DType dtype : kGpuDTypes) {
      if (!runs_on_gpu(op, dtype)) continue;
      INFO("dtype " << name_of(dtype));
      const std::vector<Tensor> inputs = make_inputs(call, dtype, true, 1);
      const std::vector<Tensor> wide = f64_leaves(inputs), moved = leaves_on(kGpu, inputs);
      const Tensor output = call.function(moved), wide_output = call.function(wide);
      CHECK(output.device() == kGpu);
      CHECK(first_difference(output, rounded(call.reference(as_f64(inputs)), output.dtype())) == "");
      const Tensor grad_output = random_like(output, true, 7);
      const std::vector<Tensor> gradients = gradients_of(moved, output, grad_output.to(kGpu));
      const std::vector<Tensor> exact = gradients_of(wide, wide_output, as_f64({grad_output}).front());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        INFO("gradient of input " << i);
        if (gradients[i].defined())
          CHECK(first_difference(gradients[i], rounded(exact[i], gradients[i].dtype())) == "");
      }
    }
  });
}

TEST_CASE("on CUDA, random inputs stay within the derived bound", "[cuda]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    for (const DType dtype : kGpuDTypes) {
      if (!runs_on_gpu(op, dtype)) continue;
      INFO("dtype " << name_of(dtype));
      const std::vector<Tensor> inputs = make_inputs(call, dtype, false, 2);
      const std::vector<Tensor> wide = f64_leaves(inputs), moved = leaves_on(kGpu, inputs);
      const Tensor output = call.function(moved);
      CHECK(outside_forward_bound(call, output, as_f64(inputs)) == "");
      const Tensor grad_output = random_like(output, false, 9);
      const std::vector<Tensor> gradients = gradients_of(moved, output, grad_output.to(kGpu));
      const std::vector<Tensor> exact = gradients_of(wide, call.function(wide), as_f64({grad_output}).front());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!gradients[i].defined()) continue;
        INFO("gradient of input " << i);
        // The norm stands for the sizes of what is summed up.
        const double bound = gradient_bound(call, dtype, norm(exact[i].to_vector<double>()));
        CHECK(first_outside(gradients[i], exact[i], [=](std::size_t) { return bound; }) == "");
      }
    }
  });
}

TEST_CASE("on CUDA, inputs with gaps give what dense ones give", "[cuda]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    if (!runs_on_gpu(op, DType::f32)) return;
    const std::vector<Tensor> inputs = make_inputs(call, DType::f32, false, 3), moved = leaves_on(kGpu, inputs);
    std::vector<Tensor> views;
    for (const Tensor& input : moved) {
      views.push_back(with_gaps(input));
      autograd::set_requires_grad(views.back(), autograd::requires_grad(input));
    }
    const Tensor output = call.function(views);
    CHECK(outside_forward_bound(call, output, as_f64(inputs)) == "");
    const Tensor grad_output = random_like(output, false, 8).to(kGpu);
    const std::vector<Tensor> expected = gradients_of(moved, call.function(moved), grad_output);
    const std::vector<Tensor> gradients = gradients_of(views, output, with_gaps(grad_output));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i].defined()) continue;
      INFO("gradient of input " << i);
      const double slack = 8.0 * (call.terms + 2.0) * unit_roundoff(DType::f32) * norm(expected[i].to_vector<double>());
      CHECK(first_outside(gradients[i], expected[i].to(Device{}), [&](std::size_t) { return slack; }) == "");
    }
  });
}

TEST_CASE("on CUDA, the same inputs give the same bits", "[cuda]") {
  if (!has_gpu()) return;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    if (!runs_on_gpu(op, DType::f32)) return;
    const auto run = [&] {
      const std::vector<Tensor> moved = leaves_on(kGpu, make_inputs(call, DType::f32, false, 4));
      const Tensor output = call.function(moved);
      std::vector<Tensor> results = gradients_of(moved, output, random_like(output, false, 11).to(kGpu));
      results.push_back(output);
      return results;
    };
    const std::vector<Tensor> first = run(), second = run();
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i].defined()) CHECK(first_difference(first[i], second[i]) == "");
    }
  });
}
