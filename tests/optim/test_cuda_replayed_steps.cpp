// Steps that a GPU repeats from a graph, at other rates, against steps by value.
#include "tandem/core/stream.h"
#include "tandem/core/work_graph.h"
#include "tandem/optim/optimizer.h"
#include "tests/optim/changing_steps.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a recording that could not be prepared takes back nothing of an older one", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const std::vector<Tensor> parameters = parameters_on(kGpu, DType::f32);
  const auto optimizer = make_changing(Rule::adam, parameters);
  for (const Tensor& parameter : parameters) set_gradient(parameter, 1);
  optimizer->step();
  optimizer->step();
  optimizer->prepare_recording();
  const WorkGraph graph(kGpu, [&] { optimizer->step(); });
  graph.launch();
  optimizer->step();
  CHECK(optimizer->steps() == 4);
  {
    const StreamScope elsewhere(Stream{kGpu});
    CHECK_THAT(error_of([&] { optimizer->prepare_recording(); }), ContainsText("on another stream"));
  }
  optimizer->abandon_recording();
  CHECK(optimizer->steps() == 4);
  optimizer->abandon_launch();
  CHECK(optimizer->steps() == 4);
}

TEST_CASE("a recording that was given up can be made again at once", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : kRules) {
    CAPTURE(static_cast<int>(rule));
    const std::vector<Tensor> parameters = parameters_on(kGpu, DType::f32), expected = parameters_on(kGpu, DType::f32);
    const auto optimizer = make_changing(rule, parameters), eager = make_changing(rule, expected);
    for (const Tensor& parameter : parameters) set_gradient(parameter, 1);
    for (const Tensor& parameter : expected) set_gradient(parameter, 1);
    for (int step = 0; step < 2; ++step) optimizer->step();
    for (int step = 0; step < 3; ++step) eager->step();
    optimizer->prepare_recording();
    CHECK_THAT(error_of([&] {
                 WorkGraph(kGpu, [&] {
                   optimizer->step();
                   fail("given up");
                 });
               }),
               ContainsText("given up"));
    optimizer->abandon_recording();
    CHECK(optimizer->steps() == 2);
    optimizer->prepare_recording();
    const WorkGraph graph(kGpu, [&] { optimizer->step(); });
    graph.launch();
    CHECK(optimizer->steps() == 3);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      CHECK(parameters[i].to_vector<float>() == expected[i].to_vector<float>());
  }
}

TEST_CASE("a step that is recorded once is repeated at other rates and counts on", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  std::vector<Rule> rules(kRules.begin(), kRules.end());
  rules.push_back(Rule::muon);
  for (const Rule rule : rules) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      CAPTURE(static_cast<int>(rule), name_of(dtype));
      const std::vector<Tensor> replayed = parameters_on(kGpu, dtype), eager = parameters_on(kGpu, dtype);
      const auto by_graph = make_changing(rule, replayed), by_step = make_changing(rule, eager);
      for (const Tensor& parameter : replayed) set_gradient(parameter, 1);
      std::unique_ptr<WorkGraph> graph;
      std::vector<Tensor> used_once;
      for (std::uint32_t step = 1; step <= 12; ++step) {
        for (const Tensor& parameter : eager) set_gradient(parameter, step);
        for (std::size_t i = 0; i < eager.size(); ++i) autograd::grad(replayed[i]).copy_from(autograd::grad(eager[i]));
        for (optim::Optimizer* const optimizer : {by_graph.get(), by_step.get()})
          optimizer->set_lr_factor(step < 4 ? 1.0 : lr_factor_at(step));
        if (step == 7) {  // which nobody wants
          by_step->skip_step();
          by_graph->skip_step();
          continue;
        }
        by_step->step();
        if (step == 9) {  // with gradients elsewhere for once: the graph's tables must stay as they are
          const std::vector<Tensor> usual = optim::gradients_of(replayed);
          for (const Tensor& gradient : usual) used_once.push_back(gradient.clone());
          for (std::size_t i = 0; i < replayed.size(); ++i) autograd::set_grad(replayed[i], used_once[i]);
          by_graph->step();
          for (std::size_t i = 0; i < replayed.size(); ++i) autograd::set_grad(replayed[i], usual[i]);
          REQUIRE(contents(*by_graph) == contents(*by_step));
          continue;
        }
        if (step < 3) {
          by_graph->step();
        } else if (step == 3) {
          graph = std::make_unique<WorkGraph>(kGpu, [&] { by_graph->step(); });
        } else {
          by_graph->prepare_replay();
        }
        if (graph != nullptr) graph->launch();
        REQUIRE(contents(*by_graph) == contents(*by_step));
      }
      CHECK(by_graph->steps() == 11);
    }
  }
}
