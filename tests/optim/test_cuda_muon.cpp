// Muon and Newton-Schulz on a GPU against the CPU, and in bf16.
#include "tandem/autograd/variable.h"
#include "tandem/core/work_graph.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/muon.h"
#include "tests/optim/matrix_support.h"
#include "tests/optim/optimizer_support.h"
#include "tests/support/cuda_device.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

using namespace tandem;
using namespace tandem::test;
using optim::Muon;
using optim::MuonOptions;

namespace {

/// A wide and a tall filter bank, two of one shape, and a vector; of one dtype and device.
std::vector<Tensor> make_filters(DType dtype, Device device) {
  std::vector<Tensor> result;
  std::uint32_t number = 0;
  for (const Shape& shape : {Shape{3, 5, 3, 3}, Shape{12, 1, 2, 2}, Shape{3, 5, 3, 3}, Shape{37}}) {
    const RandomKey key{.seed = 8, .stream = RandomStream::test, .step = ++number};
    const Tensor tensor = Tensor::empty(shape, {.dtype = dtype});
    dispatch_floating(dtype, "make_filters", [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        Out(tensor).data<T>()[i] = T(static_cast<compute_t<T>>(key.normal(static_cast<std::uint64_t>(i))));
    });
    const Tensor stored = number == 1 ? tensor.contiguous(Layout::channels_last) : tensor;
    result.push_back(autograd::set_requires_grad(stored.to(device)));
  }
  return result;
}

Matrix as_matrix(const Tensor& tensor) {
  return {tensor.size(0), tensor.numel() / tensor.size(0), tensor.to_vector<double>()};
}

}  // namespace

TEST_CASE("Muon on a GPU takes the CPU's steps but for rounding", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::vector<Tensor> here = make_filters(dtype, {}), there = make_filters(dtype, kGpu);
  const MuonOptions options{
      .lr = 0.25, .weight_decay = 0.1, .newton_schulz = {.dtype = DType::f32}, .aux_weight_decay = 0.1};
  Muon expected(here, options), actual(there, options);
  constexpr std::uint32_t kSteps = 2;
  for (std::uint32_t step = 1; step <= kSteps; ++step) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      set_gradient(here[i], 10 * step + static_cast<std::uint32_t>(i));
      autograd::set_grad(there[i], autograd::grad(here[i]).to(kGpu));
    }
    expected.scale_gradients(0.5);
    actual.scale_gradients(0.5);
    expected.step();
    actual.step();
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    CAPTURE(name_of(dtype), i);
    const bool half = dtype != DType::f32;
    const Matrix a = as_matrix(half ? actual.master(i) : there[i]), e = as_matrix(half ? expected.master(i) : here[i]);
    // Both are within the bound of the exact steps.
    const double each = 0.25 * newton_schulz_bound(a.rows, a.columns, 3, 0x1p-24, 16 * 0x1p-24) +
                        16.0 * 0x1p-24 * (norm_of(e.values) + 10.0);
    CHECK(norm_of(combined(1.0, a, -1.0, e).values) <= 2.0 * kSteps * each);
    CHECK((a.values != as_matrix(make_filters(dtype, {})[i]).values));
  }
}

TEST_CASE("Muon of half filters on a GPU orthogonalises in bf16", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const std::vector<Tensor> parameters = make_filters(dtype, kGpu);
  const MuonOptions options{.lr = 0.25, .normalize = false, .newton_schulz = {.steps = 5}};
  Muon muon(parameters, options),
      single(make_filters(dtype, kGpu),
             {.lr = 0.25, .normalize = false, .newton_schulz = {.steps = 5, .dtype = DType::f32}});
  std::vector<Matrix> before;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    before.push_back(as_matrix(muon.master(i)));
    set_gradient(parameters[i], static_cast<std::uint32_t>(i));
    autograd::set_grad(single.parameters()[i], autograd::grad(parameters[i]).clone());
  }
  muon.step();
  single.step();
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(name_of(dtype), i);
    const Matrix change = combined(1.0, as_matrix(muon.master(i)), -1.0, before[i]);
    const std::vector<double> values = singular_values(change);
    CHECK(values.front() < 1.5 * 0.25);
    CHECK(values.back() > 0.5 * 0.25);
    CHECK((muon.master(i).to_vector<float>() != single.master(i).to_vector<float>()));
  }
}

namespace {

/// On a GPU, the third filter bank at a rate, a decay and a momentum of its own.
std::unique_ptr<Muon> make_grouped(DType dtype, bool normalize, bool masters) {
  const std::vector<Tensor> parameters = make_filters(dtype, kGpu);
  auto muon = std::make_unique<Muon>(
      parameters,
      MuonOptions{.lr = 0.25, .weight_decay = 0.125, .normalize = normalize, .aux_lr = 0.5, .master_weights = masters});
  muon->add_group({.parameters = {parameters[2]}, .lr_factor = 0.5, .weight_decay = 0.25, .momentum = 0.75});
  return muon;
}

/// Those of a step, in the memory of the step before.
void renew_gradients(const Muon& muon, std::uint32_t step) {
  for (std::size_t i = 0; i < muon.parameters().size(); ++i) {
    const Tensor& parameter = muon.parameters()[i];
    const Tensor kept = autograd::grad(parameter);
    set_gradient(parameter, 10 * step + static_cast<std::uint32_t>(i));
    if (!kept.defined()) continue;
    kept.copy_from(autograd::grad(parameter));
    autograd::set_grad(parameter, kept);
  }
}

}  // namespace

TEST_CASE("a recorded step of Muon takes later steps at their rates and factors, bit for bit", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const bool normalize = GENERATE(true, false), masters = GENERATE(true, false);
  CAPTURE(name_of(dtype), normalize, masters);
  const auto eager = make_grouped(dtype, normalize, masters), replayed = make_grouped(dtype, normalize, masters);
  std::unique_ptr<WorkGraph> graph;
  for (std::uint32_t step = 1; step <= 8; ++step) {
    for (Muon* const muon : {eager.get(), replayed.get()}) {
      renew_gradients(*muon, step);
      muon->set_lr_factor(step <= 3 ? 1.0 : 1.0 / step);
      if (step > 3) muon->scale_gradients(1.0 / (1.0 + step));
    }
    eager->step();
    if (step < 3) {
      replayed->step();
    } else if (step == 3) {
      graph = std::make_unique<WorkGraph>(kGpu, [&] { replayed->step(); });
    } else {
      replayed->prepare_replay();
    }
    if (graph != nullptr) graph->launch();
    REQUIRE(contents(*replayed) == contents(*eager));
  }
  CHECK(replayed->steps() == 8);
}

TEST_CASE("Muon skips on the GPU the steps that the host would have skipped, at changing rates", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const bool normalize = GENERATE(true, false), masters = GENERATE(true, false);
  CAPTURE(name_of(dtype), normalize, masters);
  const std::set<std::uint32_t> bad{1, 3, 4};
  const auto by_host = make_grouped(dtype, normalize, masters), by_gpu = make_grouped(dtype, normalize, masters);
  optim::GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 1.0});
  for (std::uint32_t step = 1; step <= 6; ++step) {
    for (Muon* const muon : {by_host.get(), by_gpu.get()}) {
      renew_gradients(*muon, step);
      // In a parameter of the other group than the filters that must not move.
      if (bad.contains(step)) autograd::grad(muon->parameters()[2]).fill(static_cast<double>(INFINITY));
      muon->set_lr_factor(1.0 / step);
    }
    if (bad.contains(step)) {
      by_host->skip_step();
    } else {
      by_host->step();
    }
    CHECK_FALSE(scaler.step(*by_gpu).is_known());
    scaler.update();
    if (step != 3) REQUIRE(contents(*by_gpu) == contents(*by_host));
  }
  CHECK(by_gpu->steps() == 3);
}

TEST_CASE("Muon refuses f64 on a GPU before anything has changed", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    std::vector<Tensor> parameters;
    for (const DType each : {DType::f32, dtype}) {
      parameters.push_back(
          autograd::set_requires_grad(Tensor::full({2, 2, 1, 1}, 1.0, {.dtype = each, .device = kGpu})));
      autograd::set_grad(parameters.back(), Tensor::full({2, 2, 1, 1}, 1.0, parameters.back().options()));
    }
    const std::optional<DType> products = dtype == DType::f64 ? std::nullopt : std::optional(DType::f64);
    Muon muon(parameters, {.newton_schulz = {.dtype = products}});
    muon.add_group({.parameters = {parameters[1]}});
    CHECK_THAT(error_of([&] { muon.step(); }), ContainsText("and not f64"));
    CHECK(muon.steps() == 0);
    CHECK(muon.state_dict().empty());
    CHECK(parameters[0].to_vector<double>() == std::vector<double>(4, 1.0));
  }
}

TEST_CASE("Muon makes a matrix that has a NaN one of NaNs, on any device", "[cuda][optimizer]") {
  for (const Device device : cpu_and_gpu()) {
    CAPTURE(name_of(device));
    const Tensor filter = autograd::set_requires_grad(Tensor::full({2, 2, 1, 1}, 1.0, {.device = device}));
    filter.detach().view({4}).narrow(0, 0, 1).fill(std::nan(""));
    autograd::set_grad(filter, Tensor::full({2, 2, 1, 1}, 1.0, {.device = device}));
    Muon muon({filter}, {.lr = 0.1});
    muon.step();
    const std::vector<float> values = filter.to_vector<float>();
    CHECK(std::ranges::all_of(values, [](float value) { return std::isnan(value); }));
  }
}
