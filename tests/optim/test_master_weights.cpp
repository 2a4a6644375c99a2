// f32 masters of half parameters: the steps are those of an f32 optimizer, whatever the half copies can show of them.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/variable.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/every_optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// The same values as f32 leaves.
std::vector<Tensor> widened(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> result;
  for (const Tensor& parameter : parameters) {
    result.push_back(autograd::set_requires_grad(autograd::cast(parameter.detach(), DType::f32)));
  }
  return result;
}

/// Steps of what `make` makes on half parameters with masters, and on f32 ones, with the same gradients; half or f32
/// ones.
template <typename Make>
void check_masters_step_as_f32_by(Make&& make) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const bool wide_gradients : {false, true}) {
      const std::vector<Tensor> half = make_parameters(dtype), wide = widened(half);
      const std::unique_ptr<optim::Optimizer> mixed = make(half), full = make(wide);
      for (std::uint32_t step = 1; step <= 6; ++step) {
        for (std::size_t i = 0; i < half.size(); ++i) {
          set_gradient(half[i], step);
          const Tensor gradient = autograd::cast(autograd::grad(half[i]), DType::f32);
          autograd::set_grad(wide[i], gradient);
          if (wide_gradients) autograd::set_grad(half[i], gradient.clone());
        }
        mixed->scale_gradients(0.3);
        full->scale_gradients(0.3);
        mixed->step();
        full->step();
        for (std::size_t i = 0; i < half.size(); ++i) {
          INFO(name_of(dtype) << ", parameter " << i << ", step " << step);
          CHECK(mixed->master(i).strides() == half[i].strides());
          REQUIRE(mixed->master(i).to_vector<float>() == wide[i].to_vector<float>());
          const Tensor rounded = autograd::cast(mixed->master(i), dtype);
          REQUIRE(half[i].to_vector<float>() == rounded.to_vector<float>());
        }
      }
    }
  }
}

template <typename Optimizer, typename Options>
void check_masters_step_as_f32(const Options& options) {
  check_masters_step_as_f32_by(
      [&](const std::vector<Tensor>& parameters) { return std::make_unique<Optimizer>(parameters, options); });
}

}  // namespace

TEST_CASE("steps on masters are those of the f32 optimizer, bit for bit, and the parameters their rounded copies") {
  check_masters_step_as_f32<optim::SGD>(optim::SGDOptions{.lr = 0.1, .weight_decay = 0.01});
  check_masters_step_as_f32<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  check_masters_step_as_f32<optim::Adam>(optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true});
  check_masters_step_as_f32<optim::AdamW>(optim::AdamWOptions{});
  check_masters_step_as_f32<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.9, .centered = true});
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    INFO(entry.name);
    check_masters_step_as_f32_by([&](const std::vector<Tensor>& parameters) { return make(entry, parameters); });
  }
}

TEST_CASE("weights stop moving without masters") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  // Less than half of what a half number near 1 can move by: 2^-11 and 2^-8, downwards half as much.
  const double small = dtype == DType::f16 ? 0x1p-14 : 0x1p-11;
  const auto after = [&](bool masters) {
    const std::vector<Tensor> parameter{autograd::set_requires_grad(Tensor::full({4}, 1.0, {.dtype = dtype}))};
    optim::SGD sgd(parameter, {.lr = small, .master_weights = masters});
    for (int step = 0; step < 1000; ++step) {
      autograd::set_grad(parameter[0], Tensor::full({4}, 1.0, {.dtype = dtype}));
      sgd.step();
    }
    return parameter[0].to_vector<double>().front();
  };
  CHECK(after(false) == 1.0);
  const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  CHECK(std::abs(after(true) - (1.0 - 1000 * small)) <= unit);
}

TEST_CASE("masters are optimizer memory, in the state, and resume bit for bit") {
  const auto run = [](optim::Optimizer& optimizer, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t step = first; step <= last; ++step) {
      for (const Tensor& parameter : optimizer.parameters()) set_gradient(parameter, step);
      optimizer.step();
    }
  };
  const std::vector<Tensor> whole = make_parameters(DType::f16), parts = make_parameters(DType::f16);
  const std::int64_t elements = parts[0].numel() + parts[1].numel();
  const std::int64_t before = memory_stats().current_of(MemoryTag::optimizer);
  const optim::AdamOptions options{.lr = 1e-3};
  optim::Adam uninterrupted(whole, options);
  CHECK(memory_stats().current_of(MemoryTag::optimizer) - before == 4 * elements);
  run(uninterrupted, 1, 6);
  NamedTensors saved;
  {
    optim::Adam first(parts, options);
    run(first, 1, 3);
    for (const auto& [name, tensor] : first.state_dict()) saved.emplace_back(name, tensor.clone());
  }
  CHECK(saved[0].first == "0.master");
  CHECK(saved[0].second.dtype() == DType::f32);
  for (const Tensor& parameter : parts) parameter.detach().fill(7.0);  // comes back from the master
  optim::Adam second(parts, options);
  second.load_state_dict(saved);
  run(second, 4, 6);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(uninterrupted.master(i).to_vector<float>() == second.master(i).to_vector<float>());
    CHECK(whole[i].to_vector<float>() == parts[i].to_vector<float>());
  }
  saved.erase(saved.begin());
  CHECK_THAT(error_of([&] { second.load_state_dict(saved); }),
             ContainsText("Adam: the state needs '0.master' as f32[3, 5, 3, 3], got undefined tensor"));
}

TEST_CASE("a value set goes into the parameter rounded, and into the master with all its digits") {
  const std::vector<Tensor> parameters = make_parameters(DType::bf16);
  optim::SGD sgd(parameters, {});
  const float exact = 1.2345678f;
  sgd.set_value(1, Tensor::full({37}, static_cast<double>(exact)));
  CHECK(sgd.master(1).to_vector<float>() == std::vector<float>(37, exact));
  CHECK(parameters[1].to_vector<float>() == std::vector<float>(37, static_cast<float>(BFloat16(exact))));
  CHECK_THAT(error_of([&] { sgd.set_value(2, Tensor::zeros({37})); }),
             ContainsText("SGD: there is no parameter 2: it has 2, counted from 0"));
  CHECK_THAT(error_of([&] { sgd.master(2); }), ContainsText("there is no parameter 2"));
  CHECK_THAT(error_of([&] { sgd.set_value(1, Tensor::zeros({36})); }),
             ContainsText("SGD: parameter 1 is bf16[37], and cannot be set to f32[36]"));
  optim::SGD plain(make_parameters(DType::f32), {}), without(parameters, {.master_weights = false});
  CHECK_FALSE(plain.master(0).defined());
  CHECK_FALSE(without.master(0).defined());
  CHECK(without.state_dict().empty());
}
