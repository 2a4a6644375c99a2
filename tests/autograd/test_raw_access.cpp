// Raw views, copies and writes of tensors that are on the tape: refused while recording, and only then.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/gradcheck.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <array>
#include <thread>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

Tensor leaf(const Shape& shape, double value = 2.0) {
  return set_requires_grad(Tensor::full(shape, value, {.dtype = DType::f64}));
}

struct RawCall {
  std::string name, remedy;
  std::function<Tensor(const Tensor&)> call;
};

/// All that Tensor makes of another tensor's elements. Each takes f64[1, 2, 3].
const std::vector<RawCall>& raw_calls() {
  static const std::vector<RawCall> calls = {
      {"view", "reshape", [](const Tensor& x) { return x.view({6}); }},
      {"permute", "permute", [](const Tensor& x) { return x.permute(std::array{2, 0, 1}); }},
      {"transpose", "transpose", [](const Tensor& x) { return x.transpose(0, 1); }},
      {"narrow", "narrow", [](const Tensor& x) { return x.narrow(2, 0, 2); }},
      {"select", "select", [](const Tensor& x) { return x.select(1, 0); }},
      {"squeeze", "squeeze", [](const Tensor& x) { return x.squeeze(0); }},
      {"unsqueeze", "unsqueeze", [](const Tensor& x) { return x.unsqueeze(0); }},
      {"expand", "expand", [](const Tensor& x) { return x.expand({4, 2, 3}); }},
      {"as_strided", "reshape, permute or narrow", [](const Tensor& x) { return x.as_strided({2}, {1}, 0); }},
      {"contiguous", "contiguous", [](const Tensor& x) { return x.contiguous(); }},
      {"clone", "clone", [](const Tensor& x) { return x.clone(); }},
      {"to", "to", [](const Tensor& x) { return x.to(Device{}); }},
      {"copy_from", "clone in place of the copy",
       [](const Tensor& x) {
         const Tensor copy = empty_like(x);
         copy.copy_from(x);
         return copy;
       }},
      {"copy_from_async", "clone in place of the copy",
       [](const Tensor& x) {
         const Tensor copy = empty_like(x);
         copy.copy_from_async(x);
         return copy;
       }},
  };
  return calls;
}

struct RawWrite {
  std::string name;
  std::function<void(const Tensor&)> call;
};

const std::vector<RawWrite>& raw_writes() {
  static const std::vector<RawWrite> writes = {
      {"fill", [](const Tensor& x) { x.fill(1.0); }},
      {"fill", [](const Tensor& x) { x.zero(); }},
      {"copy_from", [](const Tensor& x) { x.copy_from(Tensor::zeros(x.shape(), x.options())); }},
      {"copy_from", [](const Tensor& x) { x.copy_from_async(Tensor::zeros(x.shape(), x.options())); }},
      {"Out", [](const Tensor& x) { kernels::scale(x, 2.0, Out(x)); }},
      {"Out", [](const Tensor& x) { kernels::relu_forward(x.detach(), Out(x)); }},
      {"Out", [](const Tensor& x) { kernels::cast(Tensor::zeros(x.shape()), Out(x)); }},
      {"Out", [](const Tensor& x) { kernels::scale_all(std::array{Out(x)}, 2.0); }},
  };
  return writes;
}

}  // namespace

TEST_CASE("writing into what a recorded operation made is refused, and nothing is written") {
  const Tensor x = leaf({3}), y = scale(x, 3.0);
  for (const RawWrite& write : raw_writes()) {
    INFO(write.name);
    const std::uint64_t version = y.storage()->version();
    CHECK(
        error_of([&] { write.call(y); }) ==
        write.name +
            ": f64[3], made by the recorded operation 'scale', would get wrong gradients if it were changed in place: "
            "write into detach().clone() and use that");
    CHECK(y.to_vector<double>() == std::vector<double>{6.0, 6.0, 6.0});
    CHECK(y.storage()->version() == version);
  }
  backward(sum(mul(y, y)));
  CHECK(grad(x).to_vector<double>() == std::vector<double>{36.0, 36.0, 36.0});
}

TEST_CASE("writing into a leaf that wants a gradient is refused but under NoGrad") {
  const Tensor w = leaf({3});
  for (const RawWrite& write : raw_writes()) {
    INFO(write.name);
    CHECK_THAT(error_of([&] { write.call(w); }),
               ContainsText(write.name + ": f64[3], a leaf that requires a gradient, would get wrong gradients"));
    CHECK(w.to_vector<double>() == std::vector<double>{2.0, 2.0, 2.0});
    const NoGrad no_grad;
    CHECK(error_of([&] { write.call(w); }) == "no error");
    w.fill(2.0);
  }
  set_requires_grad(w, false);
  for (const RawWrite& write : raw_writes()) CHECK(error_of([&] { write.call(w); }) == "no error");
}

TEST_CASE("a kernel with one output on the tape writes none of its outputs") {
  const Tensor x = Tensor::from<float>({1.0F, 2.0F, 3.0F, 4.0F}, {4, 1}), y = zeros_like(x);
  const Tensor variance = Tensor::full({1}, 1.0), saved = Tensor::zeros({1});
  const Tensor mean = set_requires_grad(Tensor::zeros({1}));
  CHECK_THAT(error_of([&] {
               kernels::batch_norm_forward_train(x, {}, {}, Out(mean), Out(variance), {}, Out(y), Out(saved),
                                                 Out(saved.clone()));
             }),
             ContainsText("Out: f32[1], a leaf that requires a gradient,"));
  CHECK(y.to_vector<float>() == std::vector<float>(4, 0.0F));
  CHECK(saved.item() == 0.0);
  CHECK(variance.item() == 1.0);
}

TEST_CASE("the remedies of a refused write give right gradients") {
  const Tensor x = leaf({1});
  const Tensor y = scale(x, 3.0);
  const Tensor other = y.detach().clone();  // the tape ends here
  other.fill(1.0);
  CHECK_FALSE(requires_grad(mul(other, other)));
  backward(sum(mul(y, y)));  // which has kept its value
  CHECK(grad(x).item() == 36.0);

  const Tensor w = leaf({1});
  {
    const NoGrad no_grad;
    w.fill(5.0);
  }
  backward(sum(mul(w, w)));
  CHECK(grad(w).item() == 10.0);
}

TEST_CASE("a view taken under NoGrad is part of the tape once that is over") {
  const Tensor x = leaf({3}), y = scale(x, 3.0);
  const auto views_of = [](const Tensor& tensor) {
    const NoGrad no_grad;
    const Tensor view = tensor.view({3, 1});
    return std::vector<Tensor>{view, view.select(1, 0), tensor.narrow(0, 1, 2)};
  };
  const std::vector<Tensor> views = views_of(y), views_of_leaf = views_of(x);
  for (const RawWrite& write : raw_writes()) {
    INFO(write.name);
    for (const Tensor& view : views) {
      CHECK(error_of([&] { write.call(view); }) ==
            write.name + ": " + describe(view) +
                ", a view taken under NoGrad of a tensor made by the recorded operation 'scale', would get wrong "
                "gradients if it were changed in place: write into detach().clone() and use that");
    }
    CHECK_THAT(
        error_of([&] { write.call(views_of_leaf[1]); }),
        ContainsText("a view taken under NoGrad of a leaf that requires a gradient, would get wrong gradients if it "
                     "were changed in place: write under autograd::NoGrad"));
    CHECK_THAT(error_of([&] { write.call(views[0].transpose(0, 1)); }), ContainsText("a view taken under NoGrad"));
  }
  CHECK(y.to_vector<double>() == std::vector<double>{6.0, 6.0, 6.0});
  CHECK(x.to_vector<double>() == std::vector<double>{2.0, 2.0, 2.0});
  CHECK_FALSE(requires_grad(mul(views[1], views[1])));
  backward(sum(mul(y, y)));
  CHECK(grad(x).to_vector<double>() == std::vector<double>{36.0, 36.0, 36.0});

  const NoGrad no_grad;
  for (const RawWrite& write : raw_writes()) CHECK(error_of([&] { write.call(views_of_leaf[0]); }) == "no error");
}

TEST_CASE("what a view under NoGrad was taken of may leave the tape") {
  Tensor x = leaf({3});
  const Tensor view = unrecorded([&] { return x.view({3, 1}); });
  CHECK_THAT(error_of([&] { view.fill(1.0); }), ContainsText("a view taken under NoGrad"));
  CHECK(error_of([&] { view.detach().fill(1.0); }) == "no error");  // which says that it means to
  set_requires_grad(x, false);
  CHECK(error_of([&] { view.fill(1.0); }) == "no error");
  set_requires_grad(x, true);
  CHECK_THAT(error_of([&] { view.fill(1.0); }), ContainsText("a view taken under NoGrad"));
  x = Tensor();
  CHECK(error_of([&] { view.fill(1.0); }) == "no error");
}

TEST_CASE("a write that is allowed, but into what is saved, is noticed by backward") {
  const auto refused = ContainsText("was changed in place after it was saved");
  const Tensor x = leaf({2}), y = scale(x, 3.0);
  const Tensor direct = mul(y, y);
  {
    const NoGrad no_grad;
    y.fill(1.0);
  }
  CHECK_THAT(error_of([&] { backward(sum(direct)); }), refused);

  const Tensor by_view = mul(y, y);
  y.detach().narrow(0, 1, 1).fill(1.0);
  CHECK_THAT(error_of([&] { backward(sum(by_view)); }), refused);

  const Tensor result = relu(x);  // keeps its own output
  result.detach().zero();
  CHECK_THAT(error_of([&] { backward(sum(result)); }), refused);

  const Tensor by_kernel = mul(y, y);
  kernels::scale(y.detach(), 2.0, Out(y.detach()));
  CHECK_THAT(error_of([&] { backward(sum(by_kernel)); }), refused);

  const Tensor through_recorded_view = mul(x, x);
  {
    const NoGrad no_grad;
    autograd::narrow(x, 0, 0, 1).fill(1.0);
  }
  CHECK_THAT(error_of([&] { backward(sum(through_recorded_view)); }), refused);
}

TEST_CASE("raw views and copies of what is on the tape are refused, naming what records them") {
  const Tensor x = leaf({1, 2, 3}), y = scale(x, 3.0);
  for (const RawCall& raw : raw_calls()) {
    INFO(raw.name);
    CHECK(error_of([&] { raw.call(y); }) ==
          raw.name +
              ": f64[1, 2, 3], made by the recorded operation 'scale', would lose its gradient: call autograd::" +
              raw.remedy + " to record it, or detach() first");
    CHECK_THAT(error_of([&] { raw.call(x); }),
               ContainsText(raw.name + ": f64[1, 2, 3], a leaf that requires a gradient, would lose its gradient"));
    CHECK_FALSE(requires_grad(raw.call(y.detach())));
    CHECK_FALSE(requires_grad(raw.call(Tensor::zeros({1, 2, 3}))));
    const NoGrad no_grad;
    CHECK_FALSE(raw.call(y).is_same(x));
    CHECK(error_of([&] { raw.call(x); }) == "no error");
  }
}

TEST_CASE("a permuted and copied tensor keeps its gradient") {
  const Tensor x = leaf({2, 3});
  const Tensor y = autograd::permute(scale(x, 3.0), {1, 0});
  CHECK_THAT(
      error_of([&] { y.contiguous(); }),
      ContainsText("made by the recorded operation 'permute', would lose its gradient: call autograd::contiguous"));
  backward(sum(autograd::contiguous(y)));
  CHECK(grad(x).to_vector<double>() == std::vector<double>(6, 3.0));
}

TEST_CASE("values on the tape can be read") {
  const Tensor x = leaf({1}), y = scale(x, 3.0);
  CHECK(y.to_vector<double>() == std::vector<double>{6.0});
  CHECK(autograd::permute(leaf({1, 3}), {1, 0}).to_vector<float>().size() == 3);
  CHECK(y.item() == 6.0);
  CHECK(x.item() == 2.0);
  CHECK(describe(y) == "f64[1]");
  CHECK(empty_like(y).numel() == 1);
  CHECK(zeros_like(y).item() == 0.0);
  CHECK(y.is_dense());
  CHECK_FALSE(requires_grad(y.detach()));
}

TEST_CASE("raw views are free within a backward function, and in hooks") {
  const Tensor x = leaf({2, 3});
  on_gradient_ready(x, [&x](const Tensor& gradient) {
    CHECK(x.view({6}).numel() == 6);
    x.fill(0.0);
    return gradient;
  });
  const Tensor y = record("probe", {x}, unrecorded([&] { return x.clone(); }), [x](const BackwardContext& context) {
    return std::vector<Tensor>{
        x.transpose(0, 1).transpose(0, 1).contiguous().is_same(x) ? Tensor() : context.grad_output().clone()};
  });
  backward(sum(y));
  CHECK(grad(x).to_vector<double>() == std::vector<double>(6, 1.0));
  CHECK(x.to_vector<double>() == std::vector<double>(6, 0.0));
}

TEST_CASE("each thread records, and refuses, for itself") {
  const Tensor x = leaf({3});
  std::string there, there_under_no_grad;
  const NoGrad no_grad;  // of this thread
  std::thread([&] {
    there = error_of([&] { x.fill(1.0); });
    const NoGrad of_that_thread;
    there_under_no_grad = error_of([&] { x.narrow(0, 0, 1); });
  }).join();
  CHECK_THAT(there, ContainsText("fill: f64[3], a leaf"));
  CHECK(there_under_no_grad == "no error");
  CHECK(error_of([&] { x.fill(1.0); }) == "no error");
}

TEST_CASE("unrecorded() switches recording back on, after an error too") {
  const Tensor x = leaf({3});
  CHECK(unrecorded([&] { return x.view({3, 1}); }).rank() == 2);
  CHECK(grad_enabled());
  CHECK_THAT(error_of([&] { unrecorded([&] { return x.view({4}); }); }), ContainsText("view: f64[3] has 3 elements"));
  CHECK(grad_enabled());
}

// Worker threads know nothing of the NoGrad of the thread that gave them their parts.
TEST_CASE("large copies of what is on the tape are shared out over threads") {
  const Tensor x = set_requires_grad(Tensor::full({64, 4096}, 2.0));
  const Tensor y = autograd::contiguous(autograd::transpose(x, 0, 1));
  CHECK(y.to_vector<float>() == std::vector<float>(64 * 4096, 2.0F));
  const NoGrad no_grad;
  x.copy_from(Tensor::full({64, 4096}, 3.0));
  CHECK(x.to_vector<float>() == std::vector<float>(64 * 4096, 3.0F));
}

TEST_CASE("to() keeps the gradient from device to device", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor x = set_requires_grad(Tensor::from<float>({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}));
  CHECK(autograd::to(x, Device{}).is_same(x));
  const Tensor there = autograd::to(x, kGpu);
  CHECK(there.device() == kGpu);
  const Tensor y = scale(there, 3.0);
  CHECK_THAT(error_of([&] { y.to(Device{}); }), ContainsText("call autograd::to"));
  const Tensor back = autograd::to(y, Device{});
  CHECK(back.to_vector<float>() == std::vector<float>{3.0F, 6.0F, 9.0F, 12.0F, 15.0F, 18.0F});
  backward(sum(mul(back, back)));
  CHECK(grad(x).device() == Device{});
  CHECK(grad(x).to_vector<float>() == std::vector<float>{18.0F, 36.0F, 54.0F, 72.0F, 90.0F, 108.0F});
}
