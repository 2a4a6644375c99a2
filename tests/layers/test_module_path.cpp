// Whose ranges are: the dotted names of modules in timelines of forward and backward passes.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/timeline.h"
#include "tandem/layers/layers.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <utility>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// features = [Linear, ReLU, [Linear]], classifier = [Linear].
class Net final : public Module {
 public:
  Net() {
    Initializer initializer(1);
    auto inner = std::make_unique<Sequential>();
    inner->add<Linear>({.in = 4, .out = 3}, initializer);
    features_.add<Linear>({.in = 2, .out = 4}, initializer);
    features_.add<Tanh>();
    features_.add("block", std::move(inner));
    classifier_.add<Linear>({.in = 3, .out = 1}, initializer);
    register_module("features", features_);
    register_module("classifier", classifier_);
  }
  Tensor forward(const Tensor& x) override { return classifier_(features_(x)); }

 private:
  Sequential features_, classifier_;
};

class Broken final : public Module {
 public:
  Tensor forward(const Tensor& /*input*/) override { fail("it is broken"); }
};

/// Of ranges whose name begins so, in their order.
std::vector<std::string> modules_of(const Timeline& timeline, std::string_view begin) {
  std::vector<std::string> result;
  for (const TimelineEvent& event : timeline.events)
    if (event.name.starts_with(begin)) result.push_back(event.module);
  return result;
}

}  // namespace

TEST_CASE("ranges of forward and backward passes tell the module by its dotted name") {
  Net net;
  start_timeline();
  const Tensor loss = autograd::sum(net(Tensor::full({5, 2}, 0.5)));
  autograd::backward(loss);
  const Timeline timeline = stop_timeline();
  CHECK(modules_of(timeline, "forward Linear") ==
        std::vector<std::string>{"features.0", "features.block.0", "classifier.0"});
  CHECK(modules_of(timeline, "forward Tanh") == std::vector<std::string>{"features.1"});
  CHECK(modules_of(timeline, "backward linear") ==
        std::vector<std::string>{"classifier.0", "features.block.0", "features.0"});
  CHECK(modules_of(timeline, "backward sum") == std::vector<std::string>{""});
  CHECK(detail::module_path().empty());
}

TEST_CASE("where a layer fails nothing of its name is left behind") {
  Sequential net;
  net.add<Broken>();
  start_timeline();
  CHECK_THAT(error_of([&] { net(Tensor::zeros({1})); }), ContainsText("layer 0: it is broken"));
  CHECK(detail::module_path().empty());
  stop_timeline();
}

TEST_CASE("while nobody listens modules leave no names") {
  std::string path = "none yet";
  Sequential net;
  net.add<ReLU>();
  net.named_modules().back().second->register_forward_hook(
      [&](Module&, const Tensor&, const Tensor&) { path = detail::module_path(); });
  net(Tensor::zeros({1}));
  CHECK(path.empty());
}
