// Optimizer kernels on the GPU against the CPU's in f64; norms, scaling and the search for numbers that are not finite.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/optimizer/lookahead.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Nothing, one element, odd sizes, an image weight, several chunks of 4096 elements; of all three dtypes, aligned and
/// not, so that one launch meets them all.
struct Kind {
  Shape shape;
  DType dtype;
  Place place;
};
const std::vector<Kind> kKinds{
    {{3}, DType::f32, Place::dense},    {{0}, DType::f32, Place::dense},       {{8, 5, 3, 3}, DType::f16, Place::dense},
    {{}, DType::bf16, Place::dense},    {{9001}, DType::f32, Place::dense},    {{4097}, DType::bf16, Place::dense},
    {{4096}, DType::f16, Place::dense}, {{131}, DType::f16, Place::unaligned}, {{70}, DType::f32, Place::unaligned}};

/// A list of tensors on the GPU, and the same in f64 on the CPU.
struct List {
  std::vector<Tensor> here, there;
};

/// `state`: f32, whatever the parameter's dtype; `positive`: at least 1.
List list_of(std::uint32_t seed, bool state = false, bool positive = false) {
  List list;
  for (const Kind& kind : kKinds) {
    const Tensor values = values_of(kind.shape, state ? DType::f32 : kind.dtype, false, seed++);
    if (positive) {
      for (std::int64_t i = 0; i < values.numel(); ++i)
        Out(values).data<float>()[i] = 1.0f + std::abs(values.data<float>()[i]);
    }
    list.here.push_back(wide(values));
    list.there.push_back(put(values, kind.place));
  }
  return list;
}

/// Values up to 6, factors up to 1: a few roundings in f32, scaled by `size`, and one to the dtype of each.
void check_lists(const char* what, const List& list, double size) {
  for (std::size_t i = 0; i < list.here.size(); ++i) {
    INFO(what << " of tensor " << i << ", " << describe(list.there[i]));
    const DType dtype = list.there[i].dtype();
    const std::vector<double> values = list.here[i].to_vector<double>();
    CHECK(first_outside(list.there[i], list.here[i], [&](std::size_t k) {
            return 0x1p-24 * size + (dtype == DType::f32 ? 0.0 : roundoff(dtype) * (std::abs(values[k]) + 0x1p-20));
          }) == "");
  }
}

}  // namespace

TEST_CASE("sgd on the GPU agrees with f64 on the CPU, in one launch for all dtypes", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const kernels::SgdOptions& options :
       {kernels::SgdOptions{.lr = 0.1}, kernels::SgdOptions{.lr = 0.1, .weight_decay = 0.01},
        kernels::SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.01},
        kernels::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}}) {
    const List parameters = list_of(1), gradients = list_of(21), buffers = list_of(41, true);
    const bool momentum = options.momentum != 0.0;
    std::vector<kernels::SgdItem> here, there;
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      const bool first = i % 2 == 0;
      if (first) buffers.there[i].fill(std::nan(""));  // holds nothing yet, and must not be read
      here.push_back({Out(parameters.here[i]), gradients.here[i], momentum ? Out(buffers.here[i]) : Out(), first});
      there.push_back({Out(parameters.there[i]), gradients.there[i], momentum ? Out(buffers.there[i]) : Out(), first});
    }
    kernels::sgd_step(here, options);
    kernels::sgd_step(there, options);
    check_lists("parameter", parameters, 40.0);
    if (momentum) check_lists("buffer", buffers, 40.0);
  }
}

TEST_CASE("adam on the GPU agrees with f64 on the CPU, in one launch for all dtypes", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const bool amsgrad : {false, true}) {
    for (const bool decoupled : {false, true}) {
      const List parameters = list_of(1), gradients = list_of(21), first = list_of(41, true),
                 second = list_of(61, true, true), largest = list_of(81, true, true);
      std::vector<kernels::AdamItem> here, there;
      for (std::size_t i = 0; i < kKinds.size(); ++i) {
        const auto step = static_cast<std::int64_t>(i) + 1;
        const bool keeps = amsgrad && i % 3 != 1;  // some items do, some do not
        here.push_back({Out(parameters.here[i]), gradients.here[i], Out(first.here[i]), Out(second.here[i]),
                        keeps ? Out(largest.here[i]) : Out(), step});
        there.push_back({Out(parameters.there[i]), gradients.there[i], Out(first.there[i]), Out(second.there[i]),
                         keeps ? Out(largest.there[i]) : Out(), step});
      }
      const kernels::AdamOptions options{.lr = 0.01, .weight_decay = 0.1, .decoupled_weight_decay = decoupled};
      kernels::adam_step(here, options);
      kernels::adam_step(there, options);
      // A few roundings of the parameter, and of a quotient of at most 6 times lr / (1 - 0.9) = 0.1.
      check_lists("parameter", parameters, 4.0 * 6.0 + 8.0 * 6.0 * 0.1);
      check_lists("exp_avg", first, 40.0);
      check_lists("exp_avg_sq", second, 200.0);
      if (amsgrad) check_lists("max_exp_avg_sq", largest, 200.0);
    }
  }
}

TEST_CASE("rmsprop on the GPU agrees with f64 on the CPU, in one launch for all dtypes", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.9}) {
      const List parameters = list_of(1), gradients = list_of(21), squares = list_of(41, true, true),
                 buffers = list_of(61, true), means = list_of(81, true);
      // The variance square_avg - mean^2 must be positive, and not small; square_avg is at least 1.
      if (centered) {
        kernels::scale_all(outs_of(means.here), 0.0625);
        kernels::scale_all(outs_of(means.there), 0.0625);
      }
      std::vector<kernels::RmspropItem> here, there;
      for (std::size_t i = 0; i < kKinds.size(); ++i) {
        const bool with_mean = centered && i % 3 != 1, with_buffer = momentum != 0.0;
        here.push_back({Out(parameters.here[i]), gradients.here[i], Out(squares.here[i]),
                        with_buffer ? Out(buffers.here[i]) : Out(), with_mean ? Out(means.here[i]) : Out()});
        there.push_back({Out(parameters.there[i]), gradients.there[i], Out(squares.there[i]),
                         with_buffer ? Out(buffers.there[i]) : Out(), with_mean ? Out(means.there[i]) : Out()});
      }
      const kernels::RmspropOptions options{.lr = 0.01, .weight_decay = 0.1, .momentum = momentum};
      kernels::rmsprop_step(here, options);
      kernels::rmsprop_step(there, options);
      check_lists("parameter", parameters, 60.0);
      check_lists("square_avg", squares, 200.0);
      check_lists("buffer", buffers, 200.0);
      check_lists("grad_avg", means, 40.0);
    }
  }
}

TEST_CASE("optimizer steps on the GPU: lists of many tensors, of nothing, and one step repeated", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  kernels::sgd_step({}, {});
  const Tensor none = put(Tensor::empty({0}));
  const kernels::SgdItem nothing{Out(none), none, {}, true};
  kernels::sgd_step({&nothing, 1}, {});
  // More tensors than a block has threads, so that finding a chunk takes more than one look.
  std::vector<kernels::SgdItem> items;
  for (int i = 0; i < 300; ++i)
    items.push_back({Out(put(Tensor::full({2}, i))), put(Tensor::full({2}, 1.0)), {}, false});
  kernels::sgd_step(items, {.lr = 0.5});
  for (int i : {0, 1, 255, 256, 299})
    CHECK(items[static_cast<std::size_t>(i)].parameter.tensor().to_vector<double>() == std::vector<double>(2, i - 0.5));

  const auto run = [] {
    const List parameters = list_of(1), gradients = list_of(21), first = list_of(41, true),
               second = list_of(61, true, true);
    std::vector<kernels::AdamItem> there;
    for (std::size_t i = 0; i < kKinds.size(); ++i)
      there.push_back({Out(parameters.there[i]), gradients.there[i], Out(first.there[i]), Out(second.there[i]), {}, 3});
    kernels::adam_step(there, {});
    return std::pair(parameters.there[4], kernels::squared_norm(parameters.there));
  };
  const auto once = run(), twice = run();
  CHECK(same_values(once.first, twice.first));
  CHECK(once.second == twice.second);
}

TEST_CASE("lookahead on the GPU agrees with f64 on the CPU, in one launch for all dtypes", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const bool masters : {false, true}) {
    const List weights = list_of(1), slow = list_of(41, true), wide = list_of(61, true);
    std::vector<kernels::LookaheadItem> here, there;
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      const bool has_master = masters && is_half(kKinds[i].dtype);
      const Tensor& counts = has_master ? wide.here[i] : weights.here[i];
      here.push_back({Out(slow.here[i]), Out(counts)});
      there.push_back({Out(slow.there[i]), Out(weights.there[i]), has_master ? Out(wide.there[i]) : Out()});
    }
    kernels::lookahead_step(here, 0.75);
    kernels::lookahead_step(there, 0.75);
    check_lists("slow", slow, 4.0 * 6.0);
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      INFO("weight " << i);
      const Tensor rounded = empty_like(weights.there[i]);
      kernels::cast(there[i].slow, Out(rounded));
      CHECK(same_values(weights.there[i], rounded));
      if (there[i].master.defined()) CHECK(same_values(there[i].master, there[i].slow));
    }
  }
}

TEST_CASE("optimizer kernels change nothing where they are told to skip", "[cuda][optimizer]") {
  const bool gpu = GENERATE(false, true);
  if (gpu && !has_gpu()) return;
  const Device device = gpu ? kGpu : Device{};
  const auto skip_of = [&](double value) { return Tensor::full({}, value, {.dtype = DType::i32, .device = device}); };
  const auto tensor_of = [&](double value) { return Tensor::full({5000}, value, {.device = device}); };
  const auto values_after = [&](const Tensor& skip) {
    const std::vector<Tensor> w{tensor_of(1.0), tensor_of(2.0), tensor_of(3.0), tensor_of(4.0)},
        state{tensor_of(0.5), tensor_of(0.25), tensor_of(0.125), tensor_of(2.0)};
    const Tensor gradient = tensor_of(1.0), other = tensor_of(0.75);
    kernels::sgd_step(std::vector<kernels::SgdItem>{{Out(w[0]), gradient, Out(state[0])}},
                      {.lr = 0.5, .momentum = 0.5, .skip = skip});
    kernels::adam_step(std::vector<kernels::AdamItem>{{Out(w[1]), gradient, Out(state[1]), Out(other), {}, 1}},
                       {.skip = skip});
    kernels::rmsprop_step(std::vector<kernels::RmspropItem>{{Out(w[2]), gradient, Out(state[2]), {}, {}}},
                          {.skip = skip});
    kernels::lookahead_step(std::vector<kernels::LookaheadItem>{{Out(state[3]), Out(w[3])}}, 0.5, skip);
    std::vector<float> values;
    for (const std::vector<Tensor>* const list : {&w, &state}) {
      for (const Tensor& tensor : *list) {
        const std::vector<float> all = tensor.to_vector<float>();
        CHECK(std::count(all.begin(), all.end(), all[0]) == 5000);
        values.push_back(all[0]);
      }
    }
    return values;
  };
  const std::vector<float> unchanged{1.0f, 2.0f, 3.0f, 4.0f, 0.5f, 0.25f, 0.125f, 2.0f};
  const std::vector<float> taken = values_after({});
  CHECK(values_after(skip_of(1.0)) == unchanged);
  CHECK(values_after(skip_of(0.0)) == taken);
  for (std::size_t i = 0; i < taken.size(); ++i) CHECK(taken[i] != unchanged[i]);
  CHECK_THAT(error_of([&] { values_after(Tensor::zeros({1}, {.dtype = DType::i32, .device = device})); }),
             ContainsText("sgd_step: whether to skip must be one i32 of rank 0 on " + name_of(device)));
  if (gpu)
    CHECK_THAT(error_of([&] { values_after(Tensor::zeros({}, {.dtype = DType::i32})); }), ContainsText("on cuda"));
}

TEST_CASE("squared_norm and scale_all on the GPU agree with the CPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const List list = list_of(1);
  const double expected = kernels::squared_norm(list.here), sum = kernels::squared_norm(list.there);
  CHECK(std::abs(sum - expected) <= 20000 * 0x1p-53 * expected);
  kernels::scale_all(outs_of(list.here), 0.3);
  kernels::scale_all(outs_of(list.there), 0.3);
  check_lists("scaled", list, 2.0 * 2.0);
  // Whole numbers: exact in any order. Squares beyond f32, too.
  const std::vector<Tensor> whole{put(Tensor::full({5000}, 3.0)), put(Tensor::full({3}, -2.0, {.dtype = DType::f16})),
                                  put(Tensor::full({1}, 1e30))};
  const double large = static_cast<double>(1e30f);
  CHECK(kernels::squared_norm(std::span(whole).first(2)) == 45012.0);
  CHECK(kernels::squared_norm(whole) == large * large);
  kernels::scale_all(outs_of(whole), 0.5);
  CHECK(kernels::squared_norm(std::span(whole).first(2)) == 45012.0 / 4.0);
  const std::vector<Tensor> empty{put(Tensor::empty({0}))};
  CHECK(kernels::squared_norm(empty) == 0.0);
  kernels::scale_all(outs_of(empty), 2.0);
}

TEST_CASE("all_finite finds a single infinity or NaN, wherever it is", "[cuda][optimizer]") {
  const bool gpu = GENERATE(false, true);
  if (gpu && !has_gpu()) return;
  const Device device = gpu ? kGpu : Device{};
  std::vector<Tensor> list;
  for (const Kind& kind : kKinds)
    list.push_back(gpu ? put(values_of(kind.shape, kind.dtype, false, 1), kind.place)
                       : values_of(kind.shape, kind.dtype, false, 1));
  if (!gpu) list.push_back(Tensor::full({70000}, 1e300, {.dtype = DType::f64}));
  CHECK(kernels::all_finite({}));
  CHECK(kernels::all_finite(std::span(list).subspan(1, 1)));
  CHECK(kernels::all_finite(list));
  for (const Tensor& tensor : list) {
    if (tensor.numel() == 0) continue;
    const Tensor flat = tensor.rank() == 4 ? tensor : tensor.view({1, -1, 1, 1});
    for (const double bad : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY), std::nan("")}) {
      INFO(describe(tensor) << " on " << name_of(device) << " with " << bad);
      const Tensor last = flat.narrow(0, flat.size(0) - 1, 1)
                              .narrow(1, flat.size(1) - 1, 1)
                              .narrow(2, flat.size(2) - 1, 1)
                              .narrow(3, flat.size(3) - 1, 1);
      const double before = last.item();
      last.fill(bad);
      CHECK_FALSE(kernels::all_finite(list));
      last.fill(before);
    }
    // The largest finite number is one.
    const double largest = tensor.dtype() == DType::f16 ? 65504.0 : 3.38e38;
    flat.narrow(1, 0, 1).fill(-largest);
    CHECK(kernels::all_finite(list));
  }
}

TEST_CASE("optimizer kernels on the GPU refuse f64, gaps and mixed devices", "[cuda][optimizer]") {
  CHECK_THAT(error_of([] { kernels::all_finite(std::vector<Tensor>{Tensor::zeros({4}).narrow(0, 0, 2, 2)}); }),
             ContainsText("all_finite: needs dense floating tensors"));
  CHECK_THAT(error_of([] { kernels::all_finite(std::vector<Tensor>{Tensor::zeros({4}, {.dtype = DType::i32})}); }),
             ContainsText("all_finite: needs dense floating tensors"));
  if (!has_gpu()) return;
  const Tensor wide_one = Tensor::zeros({4}, {.dtype = DType::f64, .device = kGpu}), here = Tensor::zeros({4}),
               there = put(here);
  const auto all = [](const Tensor& a, const Tensor& b, const Tensor& state) {
    const std::vector<kernels::SgdItem> sgd{{Out(a), a, {}, true}, {Out(b), b, {}, true}};
    const std::vector<kernels::AdamItem> adam{{Out(a), a, Out(a), Out(a), {}, 1},
                                              {Out(b), b, Out(state), Out(state), {}, 1}};
    const std::vector<kernels::RmspropItem> rmsprop{{Out(a), a, Out(a), {}, {}}, {Out(b), b, Out(state), {}, {}}};
    const std::vector<Tensor> list{a, b};
    return std::vector<std::string>{error_of([&] { kernels::sgd_step(sgd, {}); }),
                                    error_of([&] { kernels::adam_step(adam, {}); }),
                                    error_of([&] { kernels::rmsprop_step(rmsprop, {}); }),
                                    error_of([&] { kernels::squared_norm(list); }),
                                    error_of([&] { kernels::scale_all(outs_of(list), 2.0); }),
                                    error_of([&] { kernels::all_finite(list); })};
  };
  for (const std::string& text : all(there, wide_one, wide_one))
    CHECK_THAT(text, ContainsText("CUDA kernels take f32, f16 and bf16, got f64"));
  for (const std::string& text : all(there, here, here)) CHECK_THAT(text, ContainsText("move one of them"));
  for (const std::string& text : all(here, there, there)) CHECK_THAT(text, ContainsText("move one of them"));
}
