// Optimizer kernels on the GPU with half parameters: their masters, gradients in f32, and the factor of gradients.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tests/kernels/cuda_compare.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// A parameter with all that goes with it, on the CPU and on the GPU.
struct Item {
  Tensor parameter, gradient, master, first, second;
};

struct Lists {
  std::vector<Item> here, there;
};

Tensor as(const Tensor& values, DType dtype) {
  const Tensor result = Tensor::empty(values.shape(), {.dtype = dtype});
  kernels::reference::cast(values, Out(result));
  return result;
}

/// Half parameters, small and of several chunks, aligned and not; some with f32 gradients, some without a master. One
/// f32 parameter goes with them.
Lists make_lists() {
  Lists lists;
  std::uint32_t seed = 1;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const std::int64_t size : {5, 8200}) {
      for (const Place place : {Place::dense, Place::unaligned}) {
        const bool half = dtype != DType::f32;
        const DType gradient_dtype = seed % 2 == 0 && half ? DType::f32 : dtype;
        const auto values = [&](DType type) { return values_of({size}, type, false, seed++); };
        const Tensor exact = values(DType::f32), second = values(DType::f32);
        for (std::int64_t i = 0; i < size; ++i) Out(second).data<float>()[i] = 1.0f + std::abs(second.data<float>()[i]);
        const bool with_master = half && size != 5;
        const Item here{as(exact, dtype), values(gradient_dtype), with_master ? exact : Tensor(), values(DType::f32),
                        second};
        const auto up = [&](const Tensor& tensor) { return tensor.defined() ? put(tensor, place) : tensor; };
        lists.there.push_back(
            {up(here.parameter), up(here.gradient), up(here.master), up(here.first), up(here.second)});
        lists.here.push_back(here);
      }
    }
  }
  return lists;
}

/// The GPU contracts other products and sums than the CPU: a few roundings in f32 of numbers up to `size`, and one of
/// the parameter. Where there is a master, the parameter is exactly that, rounded.
void check(const Lists& lists, double size) {
  for (std::size_t i = 0; i < lists.here.size(); ++i) {
    const Item &here = lists.here[i], &there = lists.there[i];
    INFO("item " << i << ", " << describe(here.parameter) << " with a gradient " << describe(here.gradient));
    const auto bound = [&](std::size_t) { return 0x1p-24 * size; };
    const DType dtype = here.parameter.dtype();
    const std::vector<double> values = here.parameter.to_vector<double>();
    CHECK(first_outside(there.parameter, here.parameter, [&](std::size_t k) {
            return 0x1p-24 * size +
                   (dtype != DType::f32 ? 2.0 * roundoff(dtype) * (std::abs(values[k]) + 0x1p-12) : 0.0);
          }) == "");
    CHECK(first_outside(there.first, here.first, bound) == "");
    CHECK(first_outside(there.second, here.second, bound) == "");
    if (!here.master.defined()) continue;
    CHECK(first_outside(there.master, here.master, bound) == "");
    const Tensor master = there.master.to(Device{}).contiguous();
    CHECK(there.parameter.to_vector<float>() == as(master, dtype).to_vector<float>());
  }
}

}  // namespace

TEST_CASE("optimizer steps on masters on the GPU agree with the CPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto run = [](const char* name, auto&& step) {
    INFO(name);
    const Lists lists = make_lists();
    step(lists.here);
    step(lists.there);
    check(lists, 200.0);
  };
  run("sgd", [](const std::vector<Item>& list) {
    std::vector<kernels::SgdItem> items;
    for (const Item& i : list) items.push_back({Out(i.parameter), i.gradient, Out(i.first), false, Out(i.master)});
    kernels::sgd_step(items, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .gradient_factor = 0.25});
  });
  run("adam", [](const std::vector<Item>& list) {
    std::vector<kernels::AdamItem> items;
    for (const Item& i : list)
      items.push_back({Out(i.parameter), i.gradient, Out(i.first), Out(i.second), {}, 2, Out(i.master)});
    kernels::adam_step(items, {.lr = 0.01, .weight_decay = 0.1, .gradient_factor = 0.25});
  });
  run("rmsprop", [](const std::vector<Item>& list) {
    std::vector<kernels::RmspropItem> items;
    for (const Item& i : list)
      items.push_back({Out(i.parameter), i.gradient, Out(i.second), Out(i.first), {}, Out(i.master)});
    kernels::rmsprop_step(items, {.lr = 0.01, .momentum = 0.9, .gradient_factor = 0.25});
  });
}
