// Optimizers by name.
#include "tandem/optim/by_name.h"

#include "tests/optim/optimizer_support.h"
#include "tests/support/error_of.h"

#include "tandem/kernels/optimizer/norm.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/muon.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"

#include <fmt/ranges.h>

#include <set>

using namespace tandem;
using namespace tandem::optim;
using namespace tandem::test;

namespace {

/// The parameters after two steps.
std::vector<std::vector<float>> after_steps(Optimizer& optimizer) {
  for (std::uint32_t step = 0; step < 2; ++step) {
    for (const Tensor& parameter : optimizer.parameters()) set_gradient(parameter, step);
    optimizer.step();
  }
  std::vector<std::vector<float>> values;
  for (const Tensor& parameter : optimizer.parameters()) values.push_back(parameter.to_vector<float>());
  return values;
}

std::vector<std::vector<float>> by_name(const OptimizerOptions& options) {
  return after_steps(*make_optimizer(make_parameters(DType::f32), options));
}

template <typename Made, typename Options>
std::vector<std::vector<float>> by_class(const Options& options) {
  Made optimizer(make_parameters(DType::f32), options);
  return after_steps(optimizer);
}

}  // namespace

TEST_CASE("each name makes its optimizer, with the defaults of the table") {
  CHECK(by_name({.name = "sgd"}) ==
        by_class<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}));
  CHECK(by_name({.name = "adam"}) == by_class<Adam>(AdamOptions{.lr = 0.001}));
  CHECK(by_name({.name = "adamw"}) == by_class<AdamW>(AdamWOptions{.lr = 0.001, .weight_decay = 0.01}));
  CHECK(by_name({.name = "rmsprop"}) == by_class<RMSprop>(RMSpropOptions{.lr = 0.001}));
  CHECK(by_name({.name = "muon"}) == by_class<Muon>(MuonOptions{.newton_schulz = {.eps = 5e-11}}));
}

// The published 1e-7 would halve the first of these steps' matrices.
TEST_CASE("Muon by name takes mean gradients of a norm of 1e-7 for as large as any others") {
  std::vector<std::vector<double>> after;
  for (const double size : {0x1p-27, 1.0}) {
    const std::vector<Tensor> parameters = make_parameters(DType::f32);
    const auto muon = make_optimizer(parameters, {.name = "muon", .lr = 1.0});
    set_gradient(parameters[0], 1);
    kernels::scale_all(std::vector<Out>{Out(autograd::grad(parameters[0]))}, size);
    muon->step();
    after.push_back(parameters[0].to_vector<double>());
  }
  double squares = 0.0;
  for (std::size_t i = 0; i < after[0].size(); ++i)
    squares += (after[0][i] - after[1][i]) * (after[0][i] - after[1][i]);
  CHECK(std::sqrt(squares) < 0.02);  // of a step of norm 1 to 2; a slope of 3.4445^3, times 5e-11 / 1.4e-7
}

TEST_CASE("each row of the table has the defaults that with_defaults fills in, and makes an optimizer that moves") {
  std::set<std::string_view> names;
  for (const OptimizerEntry& entry : optimizers()) {
    INFO(entry.name);
    CHECK(names.insert(entry.name).second);
    const OptimizerOptions filled = with_defaults({.name = std::string(entry.name)});
    CHECK(*filled.lr == entry.lr);
    CHECK(*filled.weight_decay == entry.weight_decay);
    CHECK(filled.momentum == entry.momentum);
    const auto moved = by_name({.name = std::string(entry.name)});
    CHECK(moved == by_name(filled));
    CHECK(moved != by_name({.name = std::string(entry.name), .lr = 0.0}));
    CHECK(moved != by_name({.name = std::string(entry.name), .weight_decay = entry.weight_decay + 0.5}));
    CHECK_FALSE(error_of([&] { by_name({.name = std::string(entry.name), .lr = -1.0}); }) == "no error");
  }
}

TEST_CASE("what is given stands in place of the default") {
  CHECK(by_name({.name = "sgd", .lr = 0.3, .momentum = 0.5, .weight_decay = 0.0, .nesterov = false}) ==
        by_class<SGD>(SGDOptions{.lr = 0.3, .momentum = 0.5}));
  CHECK(by_name({.name = "rmsprop", .momentum = 0.5}) ==
        by_class<RMSprop>(RMSpropOptions{.lr = 0.001, .momentum = 0.5}));
  CHECK(by_name({.name = "muon",
                 .lr = 0.5,
                 .momentum = 0.25,
                 .weight_decay = 0.125,
                 .nesterov = false,
                 .aux_lr = 0.75,
                 .normalize_filters = false}) == by_class<Muon>(MuonOptions{.lr = 0.5,
                                                                            .momentum = 0.25,
                                                                            .nesterov = false,
                                                                            .weight_decay = 0.125,
                                                                            .normalize = false,
                                                                            .newton_schulz = {.eps = 5e-11},
                                                                            .aux_lr = 0.75,
                                                                            .aux_weight_decay = 0.125,
                                                                            .aux_nesterov = false}));
  const OptimizerOptions plain = with_defaults({.name = "sgd", .momentum = 0.0});
  CHECK_FALSE(*plain.nesterov);
  const OptimizerOptions adam = with_defaults({.name = "adam"});
  CHECK_FALSE(adam.momentum.has_value());
  CHECK_FALSE(*adam.nesterov);
  CHECK_FALSE(adam.aux_lr.has_value());
  CHECK_FALSE(adam.normalize_filters.has_value());
}

TEST_CASE("an unknown optimizer is refused with the nearest") {
  CHECK(error_of([] { make_optimizer({}, {.name = "sdg"}); }) ==
        fmt::format("unknown optimizer 'sdg': did you mean sgd? (choices: {})", fmt::join(optimizer_names(), ", ")));
  CHECK_THAT(error_of([] { find_optimizer("gradient"); }), ContainsText("unknown optimizer 'gradient' (choices: sgd"));
}

TEST_CASE("options that an optimizer takes none of are refused") {
  CHECK(error_of([] { with_defaults({.name = "adam", .momentum = 0.5}); }) ==
        "option momentum: adam takes none; choose from sgd, rmsprop, muon");
  CHECK(error_of([] { with_defaults({.name = "rmsprop", .nesterov = true}); }) ==
        "option nesterov: rmsprop has none; choose from sgd, muon");
  CHECK(error_of([] { with_defaults({.name = "sgd", .aux_lr = 0.5}); }) ==
        "option aux_lr: sgd has no auxiliary optimizer; choose from muon");
  CHECK(error_of([] { with_defaults({.name = "sgd", .normalize_filters = true}); }) ==
        "option normalize_filters: sgd normalizes none; choose from muon");
  CHECK(error_of([] { with_defaults({.name = "sgd", .normalize_filters = false}); }) == "no error");
  CHECK(error_of([] { with_defaults({.name = "adam", .nesterov = false}); }) == "no error");
}
