// Profiler ranges round what dispatchers enqueue on the GPU.
#include "tandem/core/profiler.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/reduce/sum.h"
#include "tests/kernels/cuda_compare.h"

#include <functional>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Names of the ranges that began within `work`.
std::vector<std::string> ranges_of(const std::function<void()>& work) {
  start_profile();
  work();
  std::vector<std::string> names;
  for (const ProfileEntry& entry : stop_profile()) names.push_back(entry.name);
  return names;
}

struct Op {
  std::string name;
  std::function<void()> run;
};

/// One op of each way in which dispatchers are written.
std::vector<Op> ops_on(Device device) {
  const auto ones = [&](const Shape& shape, DType dtype = DType::f32) {
    return Tensor::full(shape, 1.0, {.dtype = dtype, .layout = Layout::channels_last, .device = device});
  };
  const Tensor x = ones({2, 4, 4, 4}), half = ones({2, 4, 4, 4}, DType::f16), w = ones({4, 4, 1, 1}),
               y = ones({2, 4, 2, 2});
  const Tensor channels = ones({4}), statistics = ones({4}), matrix = ones({4, 4}), scalar = ones({});
  const Tensor labels = ones({4}, DType::i64), indices = ones({2, 4, 2, 2}, DType::u8);
  const Tensor mask = Tensor::full(kernels::conv_mask_shape(x.shape()), 255.0, {.dtype = DType::u8, .device = device});
  return {{"relu_forward", [=] { kernels::relu_forward(x, Out(x)); }},
          {"cast", [=] { kernels::cast(x, Out(half)); }},
          {"conv2d_forward", [=] { kernels::conv2d_forward(x, w, channels, {}, Out(empty_like(x))); }},
          {"conv_bias_relu_backward",
           [=] {
             kernels::conv_bias_relu_backward(
                 kernels::Conv2dOptions{}, {.x = x, .w = w, .mask = mask, .grad_y = x},
                 {.x = Out(empty_like(x)), .w = Out(empty_like(w)), .bias = Out(empty_like(channels))});
           }},
          {"linear_forward", [=] { kernels::linear_forward(matrix, matrix, channels, true, Out(empty_like(matrix))); }},
          {"softmax_cross_entropy_forward",
           [=] { kernels::softmax_cross_entropy_forward(matrix, labels, 0.0, Out(scalar), {}); }},
          {"batch_norm_forward_train",
           [=] {
             kernels::batch_norm_forward_train(x, channels, channels, {}, {}, {}, Out(empty_like(x)), Out(statistics),
                                               Out(empty_like(statistics)));
           }},
          {"squared_norm", [=] { kernels::squared_norm(std::vector{x}); }},
          {"sgd_step", [=] { kernels::sgd_step(std::vector{kernels::SgdItem{Out(x), x, Out()}}, {}); }},
          {"max_pool2d_forward", [=] { kernels::max_pool2d_forward(x, {}, Out(y), Out(indices)); }},
          {"sum", [=] { kernels::sum(x, Out(scalar)); }}};
}

}  // namespace

TEST_CASE("each op on the GPU is one profiler range of its name; on the CPU there is none", "[cuda]") {
  if (!has_gpu()) return;
  for (const Op& op : ops_on(kGpu)) CHECK(ranges_of(op.run) == std::vector{op.name});
  for (const Op& op : ops_on(Device{})) {
    INFO(op.name);
    CHECK(ranges_of(op.run).empty());
  }
}

TEST_CASE("the range of an op that throws ends with it", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor wide = Tensor::zeros({3}, {.dtype = DType::f64, .device = kGpu});  // kernels do not take f64
  start_profile();
  {
    const ProfileRange outer("outer");
    CHECK_FALSE(error_of([&] { kernels::relu_forward(wide, Out(wide)); }).empty());
    const ProfileRange after("after");
  }
  const auto entries = stop_profile();
  CHECK(entries.size() == 3);
  for (const ProfileEntry& entry : entries) CHECK(entry.count == 1);
}
