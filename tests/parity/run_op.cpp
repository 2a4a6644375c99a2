// Parity cases of one differentiable function.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/functions/reduction.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/augment/pad2d.h"
#include "tests/parity/parity_runner.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tandem::parity {

HeightWidth pair_of(const json& options, const char* key, HeightWidth otherwise) {
  if (!options.contains(key)) return otherwise;
  const auto [height, width] = options.at(key).get<std::array<std::int64_t, 2>>();
  return {height, width};
}

kernels::Conv2dOptions conv_options(const json& options) {
  return {.stride = pair_of(options, "stride", 1),
          .padding = pair_of(options, "padding", 0),
          .dilation = pair_of(options, "dilation", 1),
          .groups = options.value("groups", std::int64_t{1}),
          .impl = kernels::parse_conv_impl(options.value("impl", "auto"))};
}

kernels::Activation activation_of(const json& options) {
  const std::string name = options.at("activation");
  return name == "relu"   ? kernels::Activation::relu
         : name == "gelu" ? kernels::Activation::gelu
         : name == "silu" ? kernels::Activation::silu
                          : kernels::Activation::none;
}

kernels::Pool2dOptions pool_options(const json& options) {
  return {.kernel = pair_of(options, "kernel", 2),
          .stride = pair_of(options, "stride", 2),
          .padding = pair_of(options, "padding", 0),
          .ceil_mode = options.value("ceil_mode", false),
          .count_include_pad = options.value("count_include_pad", true)};
}

namespace {

using namespace autograd;

Shape shape_of(const json& sizes) {
  return Shape(std::span<const std::int64_t>(sizes.get<std::vector<std::int64_t>>()));
}

DType dtype_of_name(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  fail("unknown dtype '{}'", name);
}

/// The parts joined in the other order.
Tensor turned(std::vector<Tensor> parts, int dim) {
  std::reverse(parts.begin(), parts.end());
  return concat(parts, dim);
}

/// A result without a gradient, as floats. The case's anchor, a number, gets a gradient of 0 in place of the operands.
Tensor counted(const Tensor& result, const CaseFile& f) {
  const Tensor anchor = f.at("anchor");
  return cast(result, anchor.dtype()) + 0.0 * anchor;
}

/// One of eq, ne, lt, le, gt and ge of a tensor and another, or a number.
template <typename Other>
Tensor compared(const std::string& name, const Tensor& a, const Other& b) {
  return name == "eq"   ? eq(a, b)
         : name == "ne" ? ne(a, b)
         : name == "lt" ? lt(a, b)
         : name == "le" ? le(a, b)
         : name == "gt" ? gt(a, b)
                        : ge(a, b);
}

Reduction reduction_of(const json& options) {
  const std::string name = options.at("reduction");
  return name == "mean" ? Reduction::mean : name == "sum" ? Reduction::sum : Reduction::none;
}

using Op = std::function<Tensor(const CaseFile&, const json& options)>;

const std::map<std::string, Op>& ops() {
  static const std::map<std::string, Op> table{
      {"conv2d", [](const CaseFile& f,
                    const json& o) { return conv2d(f.at("x"), f.at("weight"), f.find("bias"), conv_options(o)); }},
      {"conv_transpose2d",
       [](const CaseFile& f, const json& o) {
         const kernels::Conv2dOptions options = conv_options(o);
         return conv_transpose2d(f.at("x"), f.at("weight"), f.find("bias"),
                                 {.stride = options.stride,
                                  .padding = options.padding,
                                  .output_padding = pair_of(o, "output_padding", 0),
                                  .dilation = options.dilation,
                                  .groups = options.groups,
                                  .impl = options.impl});
       }},
      {"conv_bias_relu",
       [](const CaseFile& f, const json& o) {
         return conv_bias_relu(f.at("x"), f.at("weight"), f.find("bias"), conv_options(o));
       }},
      {"linear", [](const CaseFile& f, const json&) { return linear(f.at("x"), f.at("weight"), f.find("bias")); }},
      {"linear_relu",
       [](const CaseFile& f, const json&) { return linear_relu(f.at("x"), f.at("weight"), f.find("bias")); }},
      {"relu", [](const CaseFile& f, const json&) { return relu(f.at("x")); }},
      {"gelu", [](const CaseFile& f, const json&) { return gelu(f.at("x")); }},
      {"silu", [](const CaseFile& f, const json&) { return silu(f.at("x")); }},
      {"tanh", [](const CaseFile& f, const json&) { return autograd::tanh(f.at("x")); }},
      {"sigmoid", [](const CaseFile& f, const json&) { return sigmoid(f.at("x")); }},
      {"leaky_relu", [](const CaseFile& f, const json& o) { return leaky_relu(f.at("x"), o.at("negative_slope")); }},
      {"celu", [](const CaseFile& f, const json& o) { return celu(f.at("x"), o.at("alpha")); }},
      {"hardswish", [](const CaseFile& f, const json&) { return hardswish(f.at("x")); }},
      {"exp", [](const CaseFile& f, const json&) { return exp(f.at("x")); }},
      {"expm1", [](const CaseFile& f, const json&) { return autograd::expm1(f.at("x")); }},
      {"log1p", [](const CaseFile& f, const json&) { return autograd::log1p(f.at("x")); }},
      {"softplus", [](const CaseFile& f, const json& o) { return softplus(f.at("x"), o.at("beta").get<double>()); }},
      {"log", [](const CaseFile& f, const json&) { return log(f.at("x")); }},
      {"sqrt", [](const CaseFile& f, const json&) { return sqrt(f.at("x")); }},
      {"rsqrt", [](const CaseFile& f, const json&) { return rsqrt(f.at("x")); }},
      {"reciprocal", [](const CaseFile& f, const json&) { return reciprocal(f.at("x")); }},
      {"abs", [](const CaseFile& f, const json&) { return abs(f.at("x")); }},
      {"neg", [](const CaseFile& f, const json&) { return -f.at("x"); }},
      {"clamp", [](const CaseFile& f, const json& o) { return clamp(f.at("x"), o.at("min"), o.at("max")); }},
      {"pow_number", [](const CaseFile& f, const json& o) { return pow(f.at("x"), o.at("exponent").get<double>()); }},
      {"number_pow", [](const CaseFile& f, const json& o) { return pow(o.at("base").get<double>(), f.at("x")); }},
      {"clamp_min", [](const CaseFile& f, const json& o) { return clamp_min(f.at("x"), o.at("min")); }},
      {"clamp_max", [](const CaseFile& f, const json& o) { return clamp_max(f.at("x"), o.at("max")); }},
      {"add_number", [](const CaseFile& f, const json& o) { return f.at("x") + o.at("number").get<double>(); }},
      {"sub_number", [](const CaseFile& f, const json& o) { return f.at("x") - o.at("number").get<double>(); }},
      {"number_sub", [](const CaseFile& f, const json& o) { return o.at("number").get<double>() - f.at("x"); }},
      {"div_number", [](const CaseFile& f, const json& o) { return f.at("x") / o.at("number").get<double>(); }},
      {"number_div", [](const CaseFile& f, const json& o) { return o.at("number").get<double>() / f.at("x"); }},
      {"sub", [](const CaseFile& f, const json&) { return f.at("a") - f.at("b"); }},
      {"div", [](const CaseFile& f, const json&) { return f.at("a") / f.at("b"); }},
      {"pow", [](const CaseFile& f, const json&) { return pow(f.at("a"), f.at("b")); }},
      {"maximum", [](const CaseFile& f, const json&) { return maximum(f.at("a"), f.at("b")); }},
      {"minimum", [](const CaseFile& f, const json&) { return minimum(f.at("a"), f.at("b")); }},
      {"where", [](const CaseFile& f, const json&) { return where(f.at("condition"), f.at("a"), f.at("b")); }},
      {"dropout",
       [](const CaseFile& f, const json& o) {
         return dropout(f.at("x"), o.at("p"), RandomKey{o.at("seed"), RandomStream::dropout, o.at("step")});
       }},
      {"max_pool2d", [](const CaseFile& f, const json& o) { return max_pool2d(f.at("x"), pool_options(o)); }},
      {"avg_pool2d", [](const CaseFile& f, const json& o) { return avg_pool2d(f.at("x"), pool_options(o)); }},
      {"global_avg_pool2d", [](const CaseFile& f, const json&) { return global_avg_pool2d(f.at("x")); }},
      {"batch_norm",
       [](const CaseFile& f, const json& o) {
         return batch_norm(f.at("x"), f.at("weight"), f.at("bias"), f.at("running_mean"), f.at("running_var"),
                           {.training = o.at("training"),
                            .momentum = o.at("momentum"),
                            .eps = o.at("eps"),
                            .activation = activation_of(o)});
       }},
      {"softmax_cross_entropy",
       [](const CaseFile& f, const json& o) {
         return softmax_cross_entropy(f.at("logits"), f.at("labels"), o.at("label_smoothing"));
       }},
      {"weighted_cross_entropy",
       [](const CaseFile& f, const json& o) {
         return softmax_cross_entropy(f.at("logits"), f.at("labels"),
                                      {.weight = f.find("weight"),
                                       .ignore_index = o.at("ignore_index").get<std::int64_t>(),
                                       .label_smoothing = o.at("label_smoothing"),
                                       .reduction = reduction_of(o)});
       }},
      {"weighted_nll_loss",
       [](const CaseFile& f, const json& o) {
         return nll_loss(f.at("log_probabilities"), f.at("labels"), reduction_of(o),
                         {.of_classes = f.find("weight"), .ignore_index = o.at("ignore_index").get<std::int64_t>()});
       }},
      {"mse_loss",
       [](const CaseFile& f, const json& o) { return mse_loss(f.at("x"), f.at("target"), reduction_of(o)); }},
      {"l1_loss", [](const CaseFile& f, const json& o) { return l1_loss(f.at("x"), f.at("target"), reduction_of(o)); }},
      {"binary_cross_entropy_with_logits",
       [](const CaseFile& f, const json& o) {
         return binary_cross_entropy_with_logits(f.at("x"), f.at("target"), reduction_of(o), f.find("pos_weight"));
       }},
      {"nll_loss", [](const CaseFile& f,
                      const json& o) { return nll_loss(f.at("log_probabilities"), f.at("labels"), reduction_of(o)); }},
      {"softmax", [](const CaseFile& f, const json& o) { return softmax(f.at("x"), o.at("dim")); }},
      {"log_softmax", [](const CaseFile& f, const json& o) { return log_softmax(f.at("x"), o.at("dim")); }},
      {"layer_norm",
       [](const CaseFile& f, const json& o) {
         return layer_norm(f.at("x"), shape_of(o.at("normalized_shape")), f.find("weight"), f.find("bias"),
                           o.at("eps"));
       }},
      {"group_norm",
       [](const CaseFile& f, const json& o) {
         return group_norm(f.at("x"), o.at("groups"), f.find("weight"), f.find("bias"), o.at("eps"));
       }},
      {"embedding",
       [](const CaseFile& f, const json& o) {
         const std::int64_t padding = o.value("padding_idx", std::int64_t{-1});
         return embedding(f.at("indices"), f.at("weight"),
                          padding < 0 ? std::nullopt : std::optional<std::int64_t>(padding));
       }},
      {"compare",
       [](const CaseFile& f, const json& o) {
         const std::string name = o.at("comparison");
         if (f.find("b").defined()) return counted(compared(name, f.at("a"), f.at("b")), f);
         return counted(compared(name, f.at("a"), o.at("number").get<double>()), f);
       }},
      {"argmax",
       [](const CaseFile& f, const json& o) { return counted(argmax(f.at("x"), o.at("dim"), o.at("keepdim")), f); }},
      {"add", [](const CaseFile& f, const json&) { return add(f.at("a"), f.at("b")); }},
      {"mul", [](const CaseFile& f, const json&) { return mul(f.at("a"), f.at("b")); }},
      {"scale", [](const CaseFile& f, const json& o) { return scale(f.at("x"), o.at("factor")); }},
      {"sum", [](const CaseFile& f, const json&) { return sum(f.at("x")); }},
      {"mean", [](const CaseFile& f, const json&) { return mean(f.at("x")); }},
      {"sum_along",
       [](const CaseFile& f, const json& o) {
         return sum(f.at("x"), o.at("dims").get<std::vector<int>>(), o.at("keepdim"));
       }},
      {"mean_along",
       [](const CaseFile& f, const json& o) {
         return mean(f.at("x"), o.at("dims").get<std::vector<int>>(), o.at("keepdim"));
       }},
      {"pad2d",
       [](const CaseFile& f, const json& o) {
         const std::vector<std::int64_t> sides = o.at("padding");
         return pad2d(f.at("x"), {sides.at(0), sides.at(1), sides.at(2), sides.at(3),
                                  o.at("mode") == "reflect" ? PadMode::reflect : PadMode::zero});
       }},
      {"crop2d",
       [](const CaseFile& f, const json& o) {
         return crop2d(f.at("x"), o.at("top"), o.at("left"), o.at("height"), o.at("width"));
       }},
      {"flip_horizontal", [](const CaseFile& f, const json&) { return flip_horizontal(f.at("x")); }},
      {"reshape", [](const CaseFile& f, const json& o) { return reshape(f.at("x"), shape_of(o.at("shape"))); }},
      {"flatten", [](const CaseFile& f, const json&) { return flatten(f.at("x")); }},
      {"permute", [](const CaseFile& f, const json& o) { return permute(f.at("x"), o.at("order")); }},
      {"narrow",
       [](const CaseFile& f, const json& o) {
         return narrow(f.at("x"), o.at("dim"), o.at("start"), o.at("length"), o.value("step", std::int64_t{1}));
       }},
      {"select", [](const CaseFile& f, const json& o) { return select(f.at("x"), o.at("dim"), o.at("index")); }},
      {"transpose", [](const CaseFile& f, const json& o) { return transpose(f.at("x"), o.at("a"), o.at("b")); }},
      {"squeeze", [](const CaseFile& f, const json& o) { return squeeze(f.at("x"), o.at("dim")); }},
      {"unsqueeze", [](const CaseFile& f, const json& o) { return unsqueeze(f.at("x"), o.at("dim")); }},
      {"expand", [](const CaseFile& f, const json& o) { return expand(f.at("x"), shape_of(o.at("shape"))); }},
      {"matmul", [](const CaseFile& f, const json&) { return matmul(f.at("a"), f.at("b")); }},
      {"slice",
       [](const CaseFile& f, const json& o) {
         return slice(f.at("x"), o.at("dim"), o.at("start"), o.at("end"), o.value("step", std::int64_t{1}));
       }},
      {"split_by_size",
       [](const CaseFile& f, const json& o) {
         return turned(split(f.at("x"), o.at("size").get<std::int64_t>(), o.at("dim")), o.at("dim"));
       }},
      {"split_into_sizes",
       [](const CaseFile& f, const json& o) {
         return turned(split(f.at("x"), o.at("sizes").get<std::vector<std::int64_t>>(), o.at("dim")), o.at("dim"));
       }},
      {"concat", [](const CaseFile& f, const json& o) { return concat({f.at("a"), f.at("b")}, o.at("dim")); }},
      {"stack", [](const CaseFile& f, const json& o) { return stack({f.at("a"), f.at("b")}, o.at("dim")); }},
      {"topk", [](const CaseFile& f,
                  const json& o) { return topk(f.at("x"), o.at("k"), o.at("dim"), o.at("largest")).values; }},
      {"clone", [](const CaseFile& f, const json&) { return clone(f.at("x")); }},
      {"cast", [](const CaseFile& f, const json& o) { return cast(f.at("x"), dtype_of_name(o.at("dtype"))); }},
  };
  return table;
}

}  // namespace

NamedTensors run_op(const CaseFile& file) {
  const std::string name = file.description.at("op");
  const auto found = ops().find(name);
  require(found != ops().end(), "unknown op '{}'", name);
  const auto constant = file.description.at("constant").get<std::vector<std::string>>();
  std::vector<std::string> leaves;
  for (const auto& [input, tensor] : file.tensors) {
    const bool fixed = std::find(constant.begin(), constant.end(), input) != constant.end();
    if (input == "grad_output" || fixed || !is_floating(tensor.dtype())) continue;
    leaves.push_back(input);
    set_requires_grad(tensor);
  }

  NamedTensors results;
  const Tensor output = found->second(file, file.description.at("options"));
  results.emplace_back("output", output.detach());
  if (requires_grad(output)) {
    backward(output, file.at("grad_output"));
    for (const std::string& leaf : leaves) results.emplace_back("grad." + leaf, grad(file.at(leaf)));
  }
  for (const std::string state : file.description.at("state")) results.emplace_back("state." + state, file.at(state));
  return results;
}

}  // namespace tandem::parity
