// What a training step of vgg_lite in half precision launches: no kernel of its own for a bias, a ReLU, its gradient,
// a bias gradient or a cast, but for those that are listed here.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/muon.h"
#include "tandem/simulator/settings.h"
#include "tests/lint/lint.h"

#include <functional>
#include <regex>

namespace tandem::test {
namespace {

/// Kernels by a regular expression for their names, how often they are launched, and what for.
struct Expected {
  std::string kernels;
  std::uint64_t launches;
  std::string why;
};

const std::vector<Expected> kStep{
    {"few_channels_forward<.*|(implicit_gemm|stationary_conv)<.*(ForwardResult|PooledResult|WindowTaker)<.*", 6,
     "convolutions with bias, ReLU and, three of them, pooling"},
    {"max_pool_tile_gradient<.*", 2, "from pooled gradients to unpooled ones, through the ReLU as well"},
    {"max_pool_gradient_and_sums<.*", 1,
     "the same for the last convolution, and its bias gradient: the layer above is linear, and has not summed it up"},
    {"(implicit_gemm|stationary_conv)<.*InputResult<.*", 5, "gradients of images, masked for the layer below"},
    {"few_channels_backward_weight<.*|weights_in_parts<.*|implicit_gemm<.*WeightResult<.*|stationary_conv_weight<.*", 6,
     "gradients of weights, and but for few channels the sums of their parts"},
    {"add_parts<.*", 4,
     "sums of the parts of few channels' weights and of three products of linear layers, of two rows each"},
    {"sum_rows_of_columns<float, .*|sum_chunks<float, .*", 6,
     "bias gradients of convolutions, from the sums that each tile or block left"},
    {"transpose_words<.*", 2, "the last images, channels last, to rows of the first linear layer, and back"},
    {"tile_product<.*", 9,
     "linear layers with bias and ReLU, and their gradients, those of biases with those of weights"},
    {"short_rows<.*|row_gradients<.*", 2, "the loss and its gradient"},
    {"fill_words<.*", 1, "the scale of the loss"},
    {"find_non_finite.*", 1, "infinities in gradients"},
    {"count_adam_steps", 1, "counts, so that no number comes from the host"},
    {"adam.*", 1, "unscales, updates f32 masters and writes half weights"},
};

std::map<std::string, std::uint64_t> launches_so_far() {
  std::map<std::string, std::uint64_t> launches;
  for (const auto& [kernel, count] : simulator::lint_launches()) launches[kernel] += count;
  return launches;
}

std::string without_namespaces(const std::string& kernel) {
  return std::regex_replace(kernel, std::regex("\\(anonymous namespace\\)::|\\w+::"), "");
}

/// That the work launches these kernels, and no others.
void check_launches(const std::vector<Expected>& expected, const std::function<void()>& work) {
  simulator::settings().lint = false;
  const std::map<std::string, std::uint64_t> before = launches_so_far();
  traffic_of(work);
  std::vector<std::uint64_t> launches(expected.size());
  for (auto [kernel, count] : launches_so_far()) {
    if (const auto found = before.find(kernel); found != before.end()) count -= found->second;
    if (count == 0) continue;
    const std::string name = without_namespaces(kernel);
    INFO(name << ", launched " << count << " times");
    const auto found = std::find_if(expected.begin(), expected.end(),
                                    [&](const Expected& e) { return std::regex_match(name, std::regex(e.kernels)); });
    CHECK(found != expected.end());
    if (found != expected.end()) launches[static_cast<std::size_t>(found - expected.begin())] += count;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(expected[i].kernels << ": " << expected[i].why);
    CHECK(launches[i] == expected[i].launches);
  }
}

}  // namespace

TEST_CASE("a training step launches no pass for bias, ReLU or casts", "[lint][step]") {
  const auto model = layers::make_model({.name = "vgg_lite"});
  autograd::use_products_of(autograd::Precision::fp16, kGpu);
  model->to(kGpu);
  model->set_precision(autograd::Precision::fp16);
  optim::Adam optimizer(model->parameters(), optim::AdamOptions{});
  optim::GradScaler scaler({.mode = optim::LossScaling::dynamic});
  const Tensor images = ones({2, 3, 32, 32}, DType::f16), labels = ones({2}, DType::i64);

  check_launches(kStep, [&] {
    optimizer.zero_grad();
    const Tensor loss = autograd::softmax_cross_entropy((*model)(images), labels);
    autograd::backward(loss, Tensor::full({}, scaler.scale(), loss.options()));
    scaler.step(optimizer);
  });
}

TEST_CASE("a step of Muon launches as many kernels for six matrices of four shapes as for one", "[lint][step]") {
  const std::vector<Expected> expected{
      {"muon_momentum", 1, "momentum, and sums of squares"},
      {"muon_divide", 1, "by the norms, and rounding"},
      {"grouped_tiles<.*", 9, "three products of each of three rounds"},
      {"muon_apply", 1, "scales and steps the weights"},
      {"sgd", 1, "all that are no matrices"},
  };
  // The shapes of airbench94, of a fourth of its width, and with fewer inputs of the largest.
  std::vector<Tensor> parameters;
  for (const Shape& shape : {Shape{16, 6, 3, 3}, Shape{16, 16, 3, 3}, Shape{64, 4, 3, 3}, Shape{64, 8, 3, 3},
                             Shape{64, 8, 3, 3}, Shape{64, 8, 3, 3}, Shape{16}, Shape{64}, Shape{10, 64}})
    parameters.push_back(autograd::set_requires_grad(ones(shape, DType::f32)));
  for (const DType products : {DType::f32, DType::bf16}) {
    optim::Muon muon(parameters, {.newton_schulz = {.dtype = products}});
    for (int step = 0; step < 2; ++step) {  // tables of others are there then
      for (const Tensor& parameter : parameters) autograd::set_grad(parameter, ones(parameter.shape(), DType::f32));
      if (step == 0) muon.step();
    }
    check_launches(expected, [&] { muon.step(); });
  }
}

}  // namespace tandem::test
