// Saving and loading optimizer state, and what optimizers refuse.
#include "tandem/optim/adam.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/every_optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

namespace {

NamedTensors copy_of(const NamedTensors& state) {
  NamedTensors result;
  for (const auto& [name, tensor] : state) result.emplace_back(name, tensor.clone());
  return result;
}

/// Of what `make` makes.
template <typename Make>
void check_resumes_by(Make&& make) {
  const std::vector<Tensor> whole = make_parameters(DType::f32), parts = make_parameters(DType::f32);
  const std::unique_ptr<optim::Optimizer> uninterrupted = make(whole), first = make(parts);
  run_steps(*uninterrupted, 1, 6);
  run_steps(*first, 1, 3);
  const NamedTensors saved = copy_of(first->state_dict());
  const std::unique_ptr<optim::Optimizer> second = make(parts);
  second->load_state_dict(saved);
  CHECK(second->steps() == 3);
  run_steps(*second, 4, 6);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(whole[i].to_vector<float>() == parts[i].to_vector<float>());
}

template <typename Optimizer, typename Options>
void check_resumes(const Options& options) {
  check_resumes_by(
      [&](const std::vector<Tensor>& parameters) { return std::make_unique<Optimizer>(parameters, options); });
}

}  // namespace

TEST_CASE("training resumed from a saved state takes the same steps, bit for bit") {
  check_resumes<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  check_resumes<optim::Adam>(optim::AdamOptions{.lr = 0.1, .amsgrad = true});
  check_resumes<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.9, .centered = true});
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    INFO(entry.name);
    check_resumes_by([&](const std::vector<Tensor>& parameters) { return make(entry, parameters); });
  }
}

TEST_CASE("state has PyTorch's names and counts as optimizer memory") {
  const std::vector<Tensor> parameters = make_parameters(DType::bf16);
  const std::int64_t before = memory_stats().current_of(MemoryTag::optimizer);
  optim::Adam adam(parameters, {});
  run_steps(adam, 1, 1);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : adam.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"0.master", "0.step", "0.exp_avg", "0.exp_avg_sq", "1.master", "1.step",
                                          "1.exp_avg", "1.exp_avg_sq"});
  CHECK(adam.state_dict()[2].second.dtype() == DType::f32);
  const std::int64_t elements = parameters[0].numel() + parameters[1].numel();
  CHECK(memory_stats().current_of(MemoryTag::optimizer) - before == 3 * 4 * elements);
}

TEST_CASE("a state that does not fit is refused and changes nothing") {
  optim::Adam adam(make_parameters(DType::f32), {});
  run_steps(adam, 1, 2);
  const NamedTensors good = copy_of(adam.state_dict());
  const auto refused = [&](NamedTensors state) { return error_of([&] { adam.load_state_dict(state); }); };
  NamedTensors bad = good;
  bad[1].second = Tensor::zeros({2});
  CHECK_THAT(refused(bad), ContainsText("Adam: the state needs '0.exp_avg' as f32[3, 5, 3, 3], got f32[2]"));
  bad = good;
  bad.pop_back();
  CHECK_THAT(refused(bad), ContainsText("'1.exp_avg_sq' as f32[37], got undefined tensor"));
  bad = good;
  bad.emplace_back("2.exp_avg", Tensor::zeros({1}));
  CHECK_THAT(refused(bad), ContainsText("1 of the 7 entries in the state belong to none of the 2 parameters"));
  bad = good;
  bad[0].second = Tensor::zeros({}, {.dtype = DType::i64});
  CHECK_THAT(refused(bad), ContainsText("parameter 0 has no valid step count"));
  CHECK(adam.steps() == 2);
}

TEST_CASE("options and parameters out of range are refused in one line") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  const auto sgd = [&](const optim::SGDOptions& options) { return error_of([&] { optim::SGD(parameters, options); }); };
  CHECK_THAT(sgd({.lr = -0.1}), ContainsText("SGD: the learning rate must be a number >= 0, got -0.1"));
  CHECK_THAT(sgd({.momentum = -1.0}), ContainsText("SGD: momentum must be a number >= 0"));
  CHECK_THAT(sgd({.weight_decay = NAN}), ContainsText("SGD: weight_decay must be a number >= 0"));
  CHECK_THAT(sgd({.nesterov = true}), ContainsText("Nesterov momentum needs momentum > 0 and dampening 0"));
  const auto adam = [&](double beta1, double eps) {
    return error_of([&] { optim::AdamW(parameters, {.beta1 = beta1, .eps = eps}); });
  };
  CHECK_THAT(adam(1.0, 1e-8), ContainsText("AdamW: beta1 must lie in [0, 1), got 1"));
  CHECK_THAT(adam(0.9, -1.0), ContainsText("AdamW: eps must be a number >= 0"));
  CHECK_THAT(error_of([&] { optim::RMSprop(parameters, {.alpha = 1.5}); }), ContainsText("RMSprop: alpha"));
  CHECK_THAT(error_of([&] { optim::SGD({}, {}); }),
             ContainsText("SGD: got no parameters; a module's are those") && ContainsText("register_module()"));
  CHECK_THAT(error_of([&] { optim::SGD({parameters[0], parameters[0]}, {}); }), ContainsText("is given twice"));
  CHECK_THAT(error_of([&] { optim::SGD({Tensor::zeros({2}, {.dtype = DType::i64})}, {}); }),
             ContainsText("parameter 0 must be a dense floating leaf, got i64[2]"));
  optim::SGD good(parameters, {});
  CHECK_THROWS_AS(good.set_lr(std::nan("")), Error);
}
