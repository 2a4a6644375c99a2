// Muon against plain loops in double, its SGD against SGD, and what it must leave alone.
#include "tandem/optim/muon.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/matrix_support.h"
#include "tests/optim/optimizer_support.h"
#include "tests/support/error_of.h"

#include <array>
#include <limits>

using namespace tandem;
using namespace tandem::test;
using optim::Muon;
using optim::MuonOptions;

namespace {

Tensor normal_leaf(const Shape& shape, DType dtype, std::uint32_t step, Layout layout = Layout::row_major) {
  const RandomKey key{.seed = 8, .stream = RandomStream::test, .step = step};
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(0.3 * key.normal(static_cast<std::uint64_t>(i)));
  const Tensor tensor = autograd::cast(Tensor::from(values, shape), dtype);
  return autograd::set_requires_grad(tensor.contiguous(layout).clone());
}

/// Wide and tall filters, two of one shape, stored both ways, and a vector.
std::vector<Tensor> make_filters(DType dtype) {
  return {normal_leaf({3, 5, 3, 3}, dtype, 1, Layout::channels_last), normal_leaf({20, 2, 3, 3}, dtype, 2),
          normal_leaf({3, 5, 3, 3}, dtype, 3), normal_leaf({37}, dtype, 4), normal_leaf({3, 7}, dtype, 5)};
}

/// In parameters' order: of each one and step other numbers.
void set_gradients(const std::vector<Tensor>& parameters, std::uint32_t step, double factor = 1.0) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor values = normal_leaf(parameters[i].shape(), DType::f64, 1000 * step + static_cast<std::uint32_t>(i));
    std::vector<double> scaled = values.to_vector<double>();
    for (double& value : scaled) value *= factor;
    autograd::set_grad(parameters[i],
                       autograd::cast(Tensor::from(scaled, parameters[i].shape()), parameters[i].dtype()));
  }
}

/// Rows of the first dimension, in row-major order.
Matrix as_matrix(const Tensor& tensor) {
  return {tensor.size(0), tensor.numel() / tensor.size(0), tensor.to_vector<double>()};
}

/// One parameter's steps in double.
class PlainMuon {
 public:
  PlainMuon(const Tensor& parameter, MuonOptions options)
      : weight_(as_matrix(parameter)), buffer_(zeros(weight_.rows, weight_.columns)), options_(std::move(options)) {}

  void step(const Matrix& gradient, double lr) {
    ++steps_;
    const auto& every = options_.normalize_every;
    const double done = every.more == 0 ? 0.0 : static_cast<double>(steps_) / static_cast<double>(every.steps);
    const bool is_due =
        steps_ - last_ >= every.first + static_cast<std::int64_t>(static_cast<double>(every.more) * done);
    if (is_due) last_ = steps_;
    if (options_.normalize && is_due) {
      const double norm = norm_of(weight_.values);
      weight_ = combined(std::sqrt(static_cast<double>(weight_.rows)) / norm, weight_, 0.0, weight_);
    }
    buffer_ = combined(options_.momentum, buffer_, 1.0, gradient);
    const Matrix direction = options_.nesterov ? combined(1.0, gradient, options_.momentum, buffer_) : buffer_;
    const Matrix step = plain_newton_schulz(direction, options_.newton_schulz);
    weight_ = combined(1.0 - lr * options_.weight_decay, weight_, -lr, step);
  }
  const Matrix& weight() const { return weight_; }

 private:
  Matrix weight_, buffer_;
  MuonOptions options_;
  std::int64_t steps_ = 0, last_ = 0;  // and the last that was due
};

bool is_filter(const Tensor& parameter) { return parameter.rank() == 4; }

}  // namespace

TEST_CASE("Muon's defaults are those of the published program") {
  const MuonOptions options;
  CHECK(options.lr == 0.24);
  CHECK(options.momentum == 0.6);
  CHECK(options.nesterov);
  CHECK(options.weight_decay == 0.0);
  CHECK(options.normalize);
  CHECK(options.newton_schulz.steps == 3);
  CHECK(options.newton_schulz.coefficients == std::array{3.4445, -4.7750, 2.0315});
  CHECK(options.newton_schulz.eps == 1e-7);
  CHECK(options.aux_momentum == 0.85);
  CHECK(options.aux_nesterov);
}

TEST_CASE("Muon steps filters as plain loops do, in f64 and f32") {
  const DType dtype = GENERATE(DType::f64, DType::f32);
  MuonOptions options;
  options.lr = 0.2;
  options.normalize = GENERATE(true, false);
  SECTION("defaults") {}
  SECTION("without Nesterov's momentum, with weight decay") {
    options.nesterov = false;
    options.weight_decay = 0.1;
  }
  SECTION("without momentum") {
    options.momentum = 0.0;
    options.nesterov = false;
  }
  SECTION("norms restored every other step") { options.normalize_every.first = 2; }
  SECTION("norms restored ever more seldom, by other coefficients") {
    options.normalize_every = {.first = 1, .more = 3, .steps = 5};
    options.newton_schulz.coefficients = {3.4576, -4.7391, 2.0843};
  }
  SECTION("another iteration, and a large eps") {
    options.newton_schulz.steps = 2;
    options.newton_schulz.eps = 1.0;
  }
  const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  const std::vector<Tensor> parameters = make_filters(dtype);
  std::vector<PlainMuon> expected;
  for (const Tensor& parameter : parameters) expected.emplace_back(parameter, options);
  Muon muon(parameters, options);
  constexpr double kFactor = 0.3;
  for (std::uint32_t step = 1; step <= 5; ++step) {
    set_gradients(parameters, step);
    std::vector<Matrix> gradients;
    for (const Tensor& parameter : parameters)
      gradients.push_back(combined(kFactor, as_matrix(autograd::grad(parameter)), 0.0, as_matrix(parameter)));
    muon.scale_gradients(kFactor);
    muon.set_lr_factor(1.0 / step);
    const double lr = muon.lr();
    muon.step();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!is_filter(parameters[p])) continue;
      CAPTURE(name_of(dtype), p, step, options.normalize);
      expected[p].step(gradients[p], lr);
      const Matrix& weight = expected[p].weight();
      if (dtype == DType::f32 && weight.rows > 6) continue;  // the bound of f32 says little then
      // What goes into Newton-Schulz has been rounded some times in each step.
      const double each = options.lr * newton_schulz_bound(weight.rows, weight.columns, options.newton_schulz.steps,
                                                           unit, 8.0 * step * unit) +
                          16.0 * unit * (norm_of(weight.values) + 2.0);
      CHECK(norm_of(combined(1.0, as_matrix(parameters[p]), -1.0, weight).values) <= step * each);
    }
  }
}

TEST_CASE("an update of Muon has singular values near the learning rate") {
  const std::vector<Tensor> parameters{normal_leaf({8, 5, 3, 3}, DType::f32, 1, Layout::channels_last),
                                       normal_leaf({40, 1, 3, 3}, DType::f32, 2)};
  Muon muon(parameters, {.lr = 0.125, .normalize = false, .newton_schulz = {.steps = 5}});
  std::vector<Matrix> before;
  for (const Tensor& parameter : parameters) before.push_back(as_matrix(parameter));
  set_gradients(parameters, 1);
  muon.step();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<double> values = singular_values(combined(1.0, as_matrix(parameters[i]), -1.0, before[i]));
    CHECK(values.front() < 1.5 * 0.125);
    CHECK(values.back() > 0.5 * 0.125);
  }
}

TEST_CASE("what is no filter is stepped as by SGD, bit for bit, also in groups") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::vector<Tensor> all = make_filters(dtype), twins = make_filters(dtype);
  const std::vector<Tensor> others{twins[3], twins[4]};
  Muon muon(all, {.lr = 0.25, .aux_lr = 0.5, .aux_momentum = 0.75, .aux_weight_decay = 0.01});
  optim::SGD sgd(others, {.lr = 0.5, .momentum = 0.75, .weight_decay = 0.01, .nesterov = true});
  muon.add_group({.parameters = {all[3]}, .lr_factor = 4.0, .weight_decay = 0.25, .momentum = 0.5});
  sgd.add_group({.parameters = {twins[3]}, .lr_factor = 4.0, .weight_decay = 0.25, .momentum = 0.5});
  for (std::uint32_t step = 1; step <= 4; ++step) {
    set_gradients(all, step);
    for (const std::size_t i : {3U, 4U}) autograd::set_grad(twins[i], autograd::grad(all[i]));
    muon.scale_gradients(0.5);
    sgd.scale_gradients(0.5);
    muon.set_lr_factor(1.0 / step);
    sgd.set_lr_factor(1.0 / step);
    muon.step();
    sgd.step();
  }
  for (const std::size_t i : {3U, 4U}) CHECK(all[i].to_vector<float>() == twins[i].to_vector<float>());
  CHECK(muon.lr(0) == 0.25);  // 4 times a quarter of the rate of matrices
}

TEST_CASE("groups of filters have rate, momentum and weight decay of their own") {
  const std::vector<Tensor> all = make_filters(DType::f32), twins = make_filters(DType::f32);
  Muon muon(all, {.lr = 0.25}), twin(twins, {.lr = 0.5, .momentum = 0.25, .weight_decay = 0.125});
  muon.add_group({.parameters = {all[0], all[2]}, .lr_factor = 2.0, .weight_decay = 0.125, .momentum = 0.25});
  for (std::uint32_t step = 1; step <= 3; ++step) {
    set_gradients(all, step);
    set_gradients(twins, step);
    muon.step();
    twin.step();
  }
  for (const std::size_t i : {0U, 2U}) CHECK(all[i].to_vector<float>() == twins[i].to_vector<float>());
  CHECK(all[1].to_vector<float>() != twins[1].to_vector<float>());
}

TEST_CASE("a program may name the matrices: weights of linear layers, and no filters") {
  const std::vector<Tensor> parameters = make_filters(DType::f64);
  const MuonOptions options{
      .lr = 0.1, .matrices = {parameters[4]}, .aux_lr = 0.05, .aux_momentum = 0.0, .aux_nesterov = false};
  PlainMuon expected(parameters[4], options);
  const std::vector<double> filters = parameters[0].to_vector<double>();
  set_gradients(parameters, 1);
  const std::vector<double> gradient = autograd::grad(parameters[0]).to_vector<double>();
  expected.step(as_matrix(autograd::grad(parameters[4])), 0.1);
  Muon(parameters, options).step();
  CHECK(norm_of(combined(1.0, as_matrix(parameters[4]), -1.0, expected.weight()).values) <=
        0.1 * newton_schulz_bound(3, 7, 3, 0x1p-53, 8 * 0x1p-53) + 64 * 0x1p-53);
  const std::vector<double> after = parameters[0].to_vector<double>();
  for (std::size_t i = 0; i < filters.size(); ++i) CHECK(after[i] == Approx(filters[i] - 0.05 * gradient[i]));
}

TEST_CASE("loss scales and clipping change nothing: eps is added to the norm of what gradients count") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const double eps = GENERATE(1e-7, 0.5);
  const std::vector<Tensor> plain = make_filters(dtype), scaled = make_filters(dtype);
  const MuonOptions options{.newton_schulz = {.eps = eps}};
  Muon muon(plain, options), other(scaled, options);
  optim::GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 64.0});
  for (std::uint32_t step = 1; step <= 3; ++step) {
    set_gradients(plain, step, 64.0);  // far from the smallest halves
    set_gradients(scaled, step, 64.0 * 64.0);
    muon.step();
    CHECK(scaler.step(other));
    scaler.update();
  }
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(plain[i].to_vector<float>() == scaled[i].to_vector<float>());
}

TEST_CASE("half filters without a master are stepped in f32 and rounded once") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const std::vector<Tensor> with = make_filters(dtype), without = make_filters(dtype);
  Muon mastered(with, {}), plain(without, {.master_weights = false});
  set_gradients(with, 1);
  set_gradients(without, 1);
  mastered.step();
  plain.step();
  for (std::size_t i = 0; i < with.size(); ++i) CHECK(with[i].to_vector<float>() == without[i].to_vector<float>());
  CHECK_FALSE(plain.master(0).defined());
  set_gradients(without, 2);
  plain.step();
  for (const float value : without[0].to_vector<float>()) REQUIRE(std::isfinite(value));
}

TEST_CASE("Muon scales filters to the root of their number, and zeros and parameters without a gradient stay") {
  const std::vector<Tensor> parameters = make_filters(DType::f32);
  parameters[2].detach().zero();
  const std::vector<float> untouched = parameters[1].to_vector<float>();
  autograd::set_grad(parameters[0], Tensor::zeros(parameters[0].shape()));
  autograd::set_grad(parameters[2], Tensor::zeros(parameters[2].shape()));
  Muon muon(parameters, {});
  muon.step();
  CHECK(norm_of(parameters[0].to_vector<double>()) == Approx(std::sqrt(3.0)).epsilon(1e-6));
  CHECK(parameters[1].to_vector<float>() == untouched);
  CHECK(parameters[2].to_vector<float>() == std::vector<float>(3 * 5 * 9, 0.0f));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : muon.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"0.step", "0.momentum_buffer", "2.step", "2.momentum_buffer"});
}

TEST_CASE("Muon's state goes on bit for bit, with masters of both halves") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::vector<Tensor> whole = make_filters(dtype), parts = make_filters(dtype);
  Muon uninterrupted(whole, {});
  NamedTensors saved;
  {
    Muon first(parts, {});
    for (std::uint32_t step = 1; step <= 3; ++step) {
      set_gradients(parts, step);
      first.step();
    }
    for (const auto& [name, tensor] : first.state_dict()) saved.emplace_back(name, tensor.clone());
  }
  Muon second(parts, {});
  second.load_state_dict(saved);
  for (std::uint32_t step = 1; step <= 6; ++step) {
    set_gradients(whole, step);
    uninterrupted.step();
    if (step <= 3) continue;
    set_gradients(parts, step);
    second.step();
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(whole[i].to_vector<float>() == parts[i].to_vector<float>());
    if (dtype != DType::f32) CHECK(uninterrupted.master(i).to_vector<float>() == second.master(i).to_vector<float>());
  }
}

TEST_CASE("Muon at a rate of 0 moves nothing but the scale of filters") {
  const std::vector<Tensor> parameters = make_filters(DType::f32);
  const std::vector<float> vector = parameters[3].to_vector<float>(), filters = parameters[0].to_vector<float>();
  Muon muon(parameters, {.lr = 0.0, .normalize = false});
  set_gradients(parameters, 1);
  muon.step();
  CHECK(parameters[3].to_vector<float>() == vector);
  CHECK(parameters[0].to_vector<float>() == filters);
}

TEST_CASE("Muon refuses options and matrices that it has no use for, in one line") {
  const std::vector<Tensor> parameters = make_filters(DType::f32);
  const auto refused = [&](const MuonOptions& options) { return error_of([&] { Muon(parameters, options); }); };
  CHECK(refused({.lr = -0.1}) == "Muon: the learning rate must be a number >= 0, got -0.1");
  CHECK(refused({.momentum = -0.5}) == "Muon: momentum must be a number >= 0, got -0.5");
  CHECK(refused({.momentum = 0.0}) == "Muon: Nesterov momentum needs momentum > 0, got 0");
  CHECK(refused({.weight_decay = HUGE_VAL}) == "Muon: weight_decay must be a number >= 0, got inf");
  CHECK(refused({.newton_schulz = {.steps = 0}}) == "Muon: steps of Newton-Schulz must be 1 or more, got 0");
  CHECK(refused({.aux_lr = -1.0}) == "Muon: aux_lr must be a number >= 0, got -1");
  CHECK(refused({.aux_momentum = -1.0}) == "Muon: aux_momentum must be a number >= 0, got -1");
  CHECK(refused({.aux_momentum = 0.0}) == "Muon: aux_nesterov needs aux_momentum > 0, got 0");
  CHECK(refused({.aux_weight_decay = -1.0}) == "Muon: aux_weight_decay must be a number >= 0, got -1");
  CHECK(refused({.matrices = {parameters[4], Tensor::zeros({2, 2})}}) ==
        "Muon: matrix 1, f32[2, 2], is none of this optimizer's 5 parameters");
  CHECK(refused({.matrices = {Tensor()}}) ==
        "Muon: matrix 0, undefined tensor, is none of this optimizer's 5 parameters");
  CHECK(refused({.matrices = {parameters[3]}}) ==
        "Muon: matrix 0, f32[37], has fewer than two dimensions; leave it out, and SGD steps it");
  const Tensor turned = autograd::set_requires_grad(Tensor::zeros({3, 7}).transpose(0, 1));
  CHECK(error_of([&] { Muon({turned}, {.matrices = {turned}}); }) ==
        "Muon: the rows of parameter 0, f32[7, 3] with strides [1, 7], must lie one after another; give its "
        "contiguous()");
  CHECK(error_of([&] { Muon({turned}, {}); }) == "no error");
  Muon muon(parameters, {});
  CHECK(error_of([&] { muon.add_group({.parameters = {parameters[0]}, .momentum = -1.0}); }) ==
        "Muon: a group's momentum must be a number >= 0, got -1");
  CHECK(error_of([&] { muon.add_group({.parameters = {parameters[0]}, .weight_decay = -1.0}); }) ==
        "Muon: a group's weight_decay must be a number >= 0, got -1");
}
