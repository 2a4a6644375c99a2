// Reductions, losses and optimizers under the lint.
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/softmax.h"
#include "tandem/kernels/embedding/embedding.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/kernels/loss/least_confident.h"
#include "tandem/kernels/loss/nll_loss.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/norm/row_norm.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/optimizer/lookahead.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/reduce/add_rows.h"
#include "tandem/kernels/reduce/combine_buffers.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/reduce/sum_to.h"
#include "tandem/optim/by_name.h"
#include "tests/lint/lint.h"

#include <memory>

namespace tandem::test {

namespace {

/// Where they begin, on the GPU.
Tensor addresses_of(const std::vector<Tensor>& tensors) {
  std::vector<std::int64_t> addresses;
  for (const Tensor& tensor : tensors) addresses.push_back(reinterpret_cast<std::intptr_t>(tensor.raw_data()));
  return Tensor::from(addresses, {static_cast<std::int64_t>(addresses.size())}).to(kGpu);
}

std::vector<LintCase> reductions() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Tensor all = ones({}, dtype);
    for (const Layout layout : {Layout::channels_last, Layout::row_major}) {
      for (const Shape& shape : {Shape{4, 64, 8, 8}, Shape{2, 256, 4, 4}, Shape{2, 3, 32, 32}}) {
        const Tensor x = ones(shape, dtype, layout), per_channel = ones({1, shape[1], 1, 1}, dtype);
        const std::string name = fmt::format("{}, {}", describe(x), layout == Layout::row_major ? "row-major" : "");
        cases.push_back({"sum of " + name, [=] { kernels::sum(x, Out(all)); }});
        cases.push_back({"mean of " + name, [=] { kernels::mean(x, Out(all)); }});
        cases.push_back({"sum per channel of " + name, [=] { kernels::sum_to(x, Out(per_channel)); }});
        const Tensor per_image = ones({shape[0], 1, 1, 1}, dtype);
        cases.push_back({"sum per image of " + name, [=] { kernels::sum_to(x, Out(per_image)); }});
      }
    }
    const Tensor matrix = ones({64, 256}, dtype), row = ones({256}, dtype), column = ones({64, 1}, dtype);
    cases.push_back({"column sums of " + describe(matrix), [=] { kernels::sum_to(matrix, Out(row)); }});
    cases.push_back({"row sums of " + describe(matrix), [=] { kernels::sum_to(matrix, Out(column)); }});
    cases.push_back({"rows added, " + describe(matrix), [=] { kernels::add_rows(matrix, 2.0, Out(row)); }});
    const std::vector<Tensor> buffers{matrix, ones(matrix.shape(), dtype)};
    const Tensor addresses = addresses_of(buffers), combined = ones(matrix.shape(), dtype);
    cases.push_back({"buffers combined, " + describe(matrix), [=] {
                       kernels::cuda::combine_buffers(current_stream(combined.device()),
                                                      {.buffers = static_cast<const void* const*>(addresses.raw_data()),
                                                       .buffer_count = static_cast<int>(buffers.size()),
                                                       .count = combined.numel(),
                                                       .dtype = dtype},
                                                      kernels::Combination::sum, 2.0, Out(combined).raw_data());
                     }});
  }
  return cases;
}

std::vector<LintCase> losses() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::int64_t classes : {10, 100, 1000, 1500}) {
      const Tensor logits = ones({16, classes}, dtype), gradient = ones({16, classes}, dtype);
      const Tensor labels = ones({16}, DType::i64), loss = ones({}), probabilities = ones({16, classes});
      cases.push_back({"softmax_cross_entropy of " + describe(logits), [=] {
                         kernels::softmax_cross_entropy_forward(logits, labels, 0.1, Out(loss), Out(probabilities));
                       }});
      cases.push_back({"softmax_cross_entropy_backward of " + describe(logits), [=] {
                         kernels::softmax_cross_entropy_backward(probabilities, labels, 0.1, loss, Out(gradient));
                       }});
      const Tensor sums = kernels::make_score_sums(loss.device());
      cases.push_back({"add_scores of " + describe(logits),
                       [=] { kernels::add_scores(loss, logits, labels, {.rows = 16}, Out(sums)); }});
      const Tensor chosen = ones({4}, DType::i64), places = ones({16}, DType::i64);
      cases.push_back({"least_confident of " + describe(logits),
                       [=] { kernels::least_confident(logits, Out(chosen), Out(places)); }});
    }
  }
  return cases;
}

std::vector<LintCase> softmaxes() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::int64_t columns : {10, 100, 1000}) {
      const Tensor x = ones({16, columns}, dtype), grad_x = ones({16, columns}, dtype), y = ones({16, columns});
      const Tensor labels = ones({16}, DType::i64), losses = ones({16});
      const auto result = columns == 100 ? kernels::SoftmaxResult::logarithms : kernels::SoftmaxResult::probabilities;
      cases.push_back({"softmax of " + describe(x), [=] { kernels::softmax_forward(result, x, Out(y)); }});
      cases.push_back(
          {"softmax_backward of " + describe(x), [=] { kernels::softmax_backward(result, y, y, Out(grad_x)); }});
      cases.push_back({"nll_loss of " + describe(x), [=] { kernels::nll_loss_forward(x, labels, Out(losses)); }});
      const kernels::LabelWeights weights{.of_classes = ones({columns}), .ignore_index = 0};
      cases.push_back({"nll_loss with weights of " + describe(x),
                       [=] { kernels::nll_loss_forward(x, labels, Out(losses), weights, Out(ones({16}))); }});
      cases.push_back(
          {"nll_loss_backward of " + describe(x), [=] { kernels::nll_loss_backward(labels, losses, Out(grad_x)); }});
    }
  }
  return cases;
}

std::vector<LintCase> row_norms() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const auto& [shape, options] :
         {std::pair(Shape{64, 96}, kernels::RowNormOptions{}), std::pair(Shape{16, 768}, kernels::RowNormOptions{}),
          std::pair(Shape{8, 8 * 64}, kernels::RowNormOptions{.groups = 4, .repeats = 64})}) {
      const Tensor x = ones(shape, dtype), grad_x = ones(shape, dtype), statistics = ones({shape[0]});
      const Tensor weight = ones({options.groups * shape[1] / options.repeats});
      const kernels::RowNormOptions of_rows = options;
      const std::string name = fmt::format("{}, {} groups", describe(x), options.groups);
      cases.push_back({"row_norm of " + name, [=] {
                         kernels::row_norm_forward("row_norm", x, weight, weight, of_rows, Out(grad_x), Out(statistics),
                                                   Out(statistics));
                       }});
      cases.push_back({"row_norm_backward of " + name, [=] {
                         kernels::row_norm_backward("row_norm", x, weight, statistics, statistics, of_rows, x,
                                                    Out(grad_x), Out(weight), Out(weight));
                       }});
    }
  }
  return cases;
}

std::vector<LintCase> lookups() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Tensor weight = ones({50, 64}, dtype), y = ones({32, 64}, dtype), indices = ones({32}, DType::i64);
    cases.push_back({"embedding of " + describe(y), [=] { kernels::embedding_forward(indices, weight, Out(y)); }});
    cases.push_back(
        {"embedding_backward of " + describe(y), [=] { kernels::embedding_backward(indices, y, Out(weight)); }});
  }
  return cases;
}

/// The parameters of a small network: weights of convolutions, batch normalisation, and the last layer.
std::vector<Tensor> parameters(DType dtype) {
  std::vector<Tensor> result;
  for (const Shape& shape : {Shape{64, 3, 3, 3}, Shape{64}, Shape{64}, Shape{64, 64, 3, 3}, Shape{10, 256}, Shape{10}})
    result.push_back(ones(shape, dtype));
  return result;
}

std::vector<LintCase> optimizers() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::vector<Tensor> values = parameters(dtype), gradients = parameters(dtype), first = parameters(DType::f32),
                              second = parameters(DType::f32), third = parameters(DType::f32),
                              masters = parameters(DType::f32);
    std::vector<kernels::SgdItem> sgd;
    std::vector<kernels::AdamItem> adam;
    std::vector<kernels::RmspropItem> rmsprop;
    std::vector<kernels::LookaheadItem> lookahead;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Out master = dtype == DType::f32 ? Out() : Out(masters[i]);
      sgd.push_back({Out(values[i]), gradients[i], Out(first[i]), false, master});
      adam.push_back({Out(values[i]), gradients[i], Out(first[i]), Out(second[i]), Out(third[i]), 1, master});
      rmsprop.push_back({Out(values[i]), gradients[i], Out(first[i]), Out(second[i]), Out(third[i]), master});
      lookahead.push_back({Out(first[i]), Out(values[i]), master});
    }
    const auto add_case = [&](const char* op, std::function<void()> work) {
      cases.push_back({fmt::format("{} on {}", op, name_of(dtype)), std::move(work)});
    };
    add_case("sgd", [=] { kernels::sgd_step(sgd, {.momentum = 0.9}); });
    add_case("adam", [=] { kernels::adam_step(adam, {}); });
    add_case("rmsprop", [=] { kernels::rmsprop_step(rmsprop, {.momentum = 0.9}); });
    add_case("lookahead", [=] { kernels::lookahead_step(lookahead, 0.5); });
    add_case("squared_norm", [=] { kernels::squared_norm(gradients); });
    add_case("scale_all", [=] { kernels::scale_all(outs_of(gradients), 1.0); });
    add_case("all_finite", [=] { kernels::all_finite(gradients); });
    const Tensor scale = kernels::make_loss_scale(gradients[0].device(), {}), found = ones({}, DType::i32);
    add_case("update_loss_scale", [=] { kernels::update_loss_scale(std::vector{found}, {}, Out(scale)); });
    const Tensor norm = ones({}, DType::f64);
    add_case("clip_by_loss_scale", [=] { kernels::clip_by_loss_scale(norm, 0.5, 1.0, scale, Out(scale)); });
    add_case("fill_loss_scale", [=] { kernels::fill_loss_scale(scale, 0.5, Out(values[1])); });
  }
  return cases;
}

/// Every optimizer of the table, with its defaults; the state is there.
std::vector<LintCase> optimizers_by_name() {
  std::vector<LintCase> cases;
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      std::vector<Tensor> leaves;
      for (const Tensor& values : parameters(dtype)) {
        leaves.push_back(autograd::set_requires_grad(values));
        autograd::set_grad(leaves.back(), ones(values.shape(), dtype));
      }
      const std::shared_ptr<optim::Optimizer> optimizer =
          optim::make_optimizer(leaves, {.name = std::string(entry.name)});
      optimizer->step();
      cases.push_back({fmt::format("step of {} on {}", entry.name, name_of(dtype)), [=] { optimizer->step(); }});
    }
  }
  return cases;
}

const RegisterLint register_reductions("reductions", reductions), register_losses("losses", losses),
    register_softmaxes("softmax", softmaxes), register_row_norms("row_norm", row_norms),
    register_lookups("embedding", lookups), register_optimizers("optimizers", optimizers),
    register_by_name("optimizers by name", optimizers_by_name);

}  // namespace

}  // namespace tandem::test
