// Backward of whole networks writes the gradients of parameters where these want them: none is copied there.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/node.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/named_tensors.h"
#include "tandem/layers/models/models.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <set>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

struct Counts {
  std::size_t in_place = 0;
  std::vector<std::string> elsewhere;  // "operation, input": gradients that the walk has to copy
};

/// Lets every operation behind `root` count which gradients of leaves its backward function leaves in their place.
void count_places(const Tensor& root, Counts& counts) {
  std::vector<autograd::Node*> pending{autograd::gradient_edge(root).node.get()};
  std::set<autograd::Node*> seen;
  while (!pending.empty()) {
    autograd::Node* const node = pending.back();
    pending.pop_back();
    if (!seen.insert(node).second) continue;
    for (const autograd::Edge& edge : node->inputs) {
      if (edge.node) pending.push_back(edge.node.get());
    }
    if (!node->backward) continue;
    node->backward = [node, &counts, inner = std::move(node->backward)](const autograd::BackwardContext& context) {
      const std::vector<Tensor> gradients = inner(context);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!node->inputs[i].node || !node->inputs[i].node->leaf.defined()) continue;
        const Tensor place = autograd::gradient_place(node->inputs[i].node->leaf);
        if (place.defined() && gradients[i].is_same(place)) {
          ++counts.in_place;
        } else if (place.defined()) {
          counts.elsewhere.push_back(fmt::format("{}, {}", node->name, i));
        }
      }
      return gradients;
    };
  }
}

/// The gradients of a network with random weights, by parameter, with places for them or without.
std::vector<std::vector<float>> gradients_of(const ModelOptions& options, Device device, autograd::Precision precision,
                                             Counts* counts) {
  const auto model = make_model(options);
  model->set_precision(precision);
  model->to(device);
  const Tensor images = Tensor::full({2, options.in_channels, options.image_size, options.image_size}, 0.5,
                                     {.layout = Layout::channels_last, .device = device});
  const Tensor labels = Tensor::from<std::int64_t>({1, 2}, {2}).to(device);
  if (counts != nullptr) {
    for (const Tensor& parameter : model->parameters()) autograd::set_gradient_place(parameter, empty_like(parameter));
  }
  const Tensor loss = autograd::softmax_cross_entropy((*model)(images), labels, 0.0);
  if (counts != nullptr) count_places(loss, *counts);
  autograd::backward(loss);
  std::vector<std::vector<float>> result;
  for (const Tensor& parameter : model->parameters()) {
    if (!autograd::requires_grad(parameter)) continue;  // frozen ones get none
    const Tensor gradient = autograd::grad(parameter);
    if (counts != nullptr) CHECK(gradient.is_same(autograd::gradient_place(parameter)));
    result.push_back(gradient.to_vector<float>());
  }
  return result;
}

void check_network(const ModelOptions& options, Device device, autograd::Precision precision) {
  INFO(options.name << " in " << autograd::name_of(precision));
  Counts counts;
  const auto placed = gradients_of(options, device, precision, &counts);
  CHECK(counts.elsewhere == std::vector<std::string>{});
  CHECK(counts.in_place == placed.size());
  CHECK(placed == gradients_of(options, device, precision, nullptr));
}

}  // namespace

TEST_CASE("no network's gradients are copied to their places") {
  for (const std::string& name : model_names()) check_network({.name = name}, {}, autograd::Precision::fp32);
  check_network({.name = "vgg_lite", .batch_norm = true, .dropout = 0.5}, {}, autograd::Precision::fp32);
  check_network({.name = "small_cnn"}, {}, autograd::Precision::bf16);
}

TEST_CASE("no network's gradients are copied to their places on a GPU, where layers sum up biases for those below",
          "[cuda]") {
  if (!has_gpu()) return;
  const ModelOptions options{.name = "mnist_cnn", .in_channels = 1, .image_size = 12};
  check_network(options, kGpu, autograd::Precision::fp16);
  check_network({.name = "small_cnn", .image_size = 8}, kGpu, autograd::Precision::fp32);
}
