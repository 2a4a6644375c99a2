#include "apps/pictures/measure.h"

#include "tandem/autograd/functions.h"
#include "tandem/autograd/node.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/report/json_fields.h"
#include "tandem/train/report/read_step.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <map>
#include <set>

namespace tandem::pictures {

namespace {

constexpr std::int64_t kBatch = 64, kExamples = 2048, kSteps = 120, kLast = 10;

/// A small network in training on drawn shapes.
struct Training {
  std::unique_ptr<layers::Module> network = layers::make_model({.name = "small_cnn", .seed = 1});
  data::ImageDataset examples = data::make_synthetic({.count = kExamples, .seed = 1});

  /// The loss of a step's batch. No example comes up twice in an epoch.
  Tensor loss(std::int64_t step) const {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < kBatch; ++i) indices.push_back((step * kBatch + i) % kExamples);
    const std::vector<Tensor> batch = examples.get_batch(indices, 0, {});
    return autograd::softmax_cross_entropy((*network)(batch[0]), batch[1]);
  }
};

std::string notes(const std::string& what, const std::string& command) {
  return fmt::format("# {}\n# measured on {:%Y-%m-%d}, {}\n# {}\n", what, fmt::gmtime(std::time(nullptr)),
                     list_devices().front().name, command);
}

struct Counts {
  std::map<int, std::int64_t> by_exponent;
  std::int64_t zeros = 0;

  void add(const Tensor& gradient) {
    for (const float value : gradient.to_vector<float>()) {
      if (value == 0.0f)
        ++zeros;
      else
        ++by_exponent[std::ilogb(value)];
    }
  }
};

/// Lets each node of the tape count the gradients of activations that it sends on.
void count_activations(autograd::Node* node, Counts& counts, std::set<autograd::Node*>& seen) {
  if (node == nullptr || node->leaf.defined() || !seen.insert(node).second) return;
  node->backward = [node, &counts, inner = node->backward](const autograd::BackwardContext& context) {
    std::vector<Tensor> gradients = inner(context);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined() && node->inputs[i].node && !node->inputs[i].node->leaf.defined())
        counts.add(gradients[i]);
    return gradients;
  };
  for (const autograd::Edge& edge : node->inputs) count_activations(edge.node.get(), counts, seen);
}

}  // namespace

std::string measure_gradients() {
  const Training training;
  optim::SGD optimizer(training.network->parameters(), {.lr = 0.05, .momentum = 0.9});
  Counts activations, weights;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    const bool is_counted = step >= kSteps - kLast;
    std::set<autograd::Node*> seen;
    if (is_counted) count_activations(autograd::gradient_edge(loss).node.get(), activations, seen);
    autograd::backward(loss);
    if (is_counted)
      for (const Tensor& parameter : training.network->parameters()) weights.add(autograd::grad(parameter));
    optimizer.step();
  }
  std::string text = notes(
      fmt::format(
          "gradients of small_cnn by power of two, f32, steps {} to {}; {} of activations and {} of weights are 0",
          kSteps - kLast + 1, kSteps, activations.zeros, weights.zeros),
      "pictures measure gradients: power,activations,weights");
  const int first = std::min(activations.by_exponent.begin()->first, weights.by_exponent.begin()->first);
  const int last = std::max(activations.by_exponent.rbegin()->first, weights.by_exponent.rbegin()->first);
  for (int power = first; power <= last; ++power)
    text += fmt::format("{},{},{}\n", power, activations.by_exponent[power], weights.by_exponent[power]);
  return text;
}

std::string measure_loss_scale() {
  const Training training;
  training.network->set_precision(autograd::Precision::fp16);
  optim::SGD optimizer(training.network->parameters(), {.lr = 0.05, .momentum = 0.9});
  optim::GradScaler scaler({.mode = optim::LossScaling::dynamic, .init_scale = 16777216.0, .growth_interval = 20});
  std::string text = notes("the loss scale of small_cnn in f16, which starts at 2^24 and grows after 20 good steps",
                           "pictures measure loss-scale: step,scale,taken,loss");
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const double scale = scaler.scale();
    const Tensor loss = training.loss(step);
    autograd::backward(loss, Tensor::full({}, scale));
    const bool taken = scaler.step(optimizer);
    scaler.update();
    text += fmt::format("{},{},{},{:.4f}\n", step + 1, scale, taken ? 1 : 0, loss.item());
  }
  return text;
}

std::string step_of_trace(const std::string& file) {
  constexpr std::int64_t kMostTrace = std::int64_t{1} << 30;
  const auto step = train::report::read_step(train::report::read_text(file, kMostTrace));
  require(step.has_value(), "{}: has no complete step; cifar_train --trace writes one that has", file);
  const train::report::StepOfRank& rank = step->ranks.front();
  std::string text = notes("a step of rank 0", "pictures measure step TRACE: row,name,begin,end in ms");
  for (const train::report::StepSpan& span : rank.work)
    if (span.depth == 0) text += fmt::format("computes,{},{:.3f},{:.3f}\n", span.name, span.begin, span.end);
  std::map<std::string, std::string> of_buckets;
  for (const train::report::StepRow& row : rank.rows)
    for (const train::report::StepSpan& span : row.spans)
      if (span.name.starts_with("bucket "))
        of_buckets[span.name] += fmt::format("{0},{0},{1:.3f},{2:.3f}\n", span.name, span.begin, span.end);
  for (const auto& [name, lines] : of_buckets) text += lines;
  return text;
}

}  // namespace tandem::pictures
