// Op cases: max, average and global average pooling.
#include "tandem/autograd/functions/avg_pool2d.h"
#include "tandem/autograd/functions/global_avg_pool2d.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tests/op_cases/op_case.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using kernels::Pool2dOptions;

namespace {

struct Variant {
  std::string name;
  Pool2dOptions options;
};

using Function = Tensor (*)(const Tensor&, const Pool2dOptions&);
using Reference = std::function<void(const Tensor& x, const Pool2dOptions& options, const Out& y)>;

std::vector<OpCall> calls_of(const Shape& nchw, const std::vector<Variant>& variants, Values values, Function function,
                             const Reference& reference) {
  std::vector<OpCall> result;
  for (const Variant& variant : variants) {
    const Pool2dOptions options = variant.options;
    if (nchw[2] + 2 * options.padding[0] < options.kernel[0] || nchw[3] + 2 * options.padding[1] < options.kernel[1]) {
      continue;
    }
    OpCall call;
    call.variant = variant.name;
    call.inputs = {{.shape = nchw, .values = values}};
    call.function = [=](const std::vector<Tensor>& in) { return function(in[0], options); };
    call.reference = [=](const std::vector<Tensor>& in) {
      const Tensor y =
          Tensor::empty(kernels::pool2d_output_shape("reference", in[0].shape(), options), in[0].options());
      reference(in[0], options, Out(y));
      return y;
    };
    call.magnitude = [=](const std::vector<Tensor>& in) { return call.reference(absolute(in)); };
    call.terms = static_cast<double>(options.kernel[0] * options.kernel[1]);
    result.push_back(call);
  }
  return result;
}

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();  // twice as much overflows

std::vector<BadInput> bad_inputs_of(const std::string& name, Function function) {
  const auto refuse = [function](const Shape& x, const Pool2dOptions& options, DType dtype = DType::f32) {
    return [=] { function(Tensor::zeros(x, {.dtype = dtype}), options); };
  };
  return {
      {"no image", refuse({3, 8, 8}, {}), name + ": needs images [N, C, H, W], got [3, 8, 8]"},
      {"large window", refuse({2, 3, 8, 2}, {.kernel = {3, 3}}), name + ": a window of 3 does not fit the width"},
      {"stride 0", refuse({2, 3, 8, 8}, {.stride = {0, 2}}), name + ": kernel and stride must be at least 1"},
      {"huge padding", refuse({2, 3, 8, 8}, {.padding = {kHuge, 0}}), name + ": padding must lie between 0 and half"},
      {"huge stride", refuse({2, 3, 8, 8}, {.stride = {2, kHuge}}), name + ": kernel and stride must be at least 1"},
      {"padding", refuse({2, 3, 8, 8}, {.padding = {2, 0}}), name + ": padding must lie between 0 and half"},
      {"integers", refuse({2, 3, 8, 8}, {}, DType::i64), "floating dtype"}};
}

const std::vector<Variant> kMaxVariants = {
    {"2x2", {}},
    {"2x2, ceil", {.ceil_mode = true}},
    {"3x3, stride 2, padding 1", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
    {"3x3, stride 1, padding 1", {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}},
    {"3x1, stride 2x3", {.kernel = {3, 1}, .stride = {2, 3}}},
    {"2x3, stride 3x2, padding 1, ceil", {.kernel = {2, 3}, .stride = {3, 2}, .padding = {1, 1}, .ceil_mode = true}},
    {"3x2, stride 3x2", {.kernel = {3, 2}, .stride = {3, 2}}},
    {"1x1, stride 2", {.kernel = {1, 1}}},
    {"17x17, padding 8", {.kernel = {17, 17}, .stride = {3, 3}, .padding = {8, 8}}},  // more than 256 positions
};

const RegisterOp max_pool2d_case({.name = "max_pool2d",
                                  .calls =
                                      [](const Shape& nchw) {
                                        const Reference reference = [](const Tensor& x, const Pool2dOptions& options,
                                                                       const Out& y) {
                                          kernels::reference::max_pool2d_forward(x, options, y, {});
                                        };
                                        return calls_of(nchw, kMaxVariants, Values::distinct, autograd::max_pool2d,
                                                        reference);
                                      },
                                  .bad_inputs = bad_inputs_of("max_pool2d", autograd::max_pool2d)});

// Windows of 1, 2 or 4 pixels have exact means; others are rounded.
const std::vector<Variant> kExactVariants = {
    {"2x2", {}},
    {"2x2, padding 1", {.padding = {1, 1}}},
    {"2x2, stride 1, padding 1, padding not counted",
     {.stride = {1, 1}, .padding = {1, 1}, .count_include_pad = false}},
    {"2x2, ceil", {.ceil_mode = true}},
    {"4x1, stride 1", {.kernel = {4, 1}, .stride = {1, 1}}},
};
const std::vector<Variant> kRoundedVariants = {
    {"3x3, stride 2, padding 1", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
    {"3x3, stride 1, padding 1, ceil, padding not counted",
     {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = false}},
    {"3x2, stride 3x1, padding 1, ceil", {.kernel = {3, 2}, .stride = {3, 1}, .padding = {1, 1}, .ceil_mode = true}},
};

OpCase avg_pool2d_of(const std::string& name, const std::vector<Variant>& variants, bool exact) {
  return {.name = name,
          .calls =
              [variants](const Shape& nchw) {
                return calls_of(nchw, variants, Values::normal, autograd::avg_pool2d,
                                kernels::reference::avg_pool2d_forward);
              },
          .bad_inputs = bad_inputs_of("avg_pool2d", autograd::avg_pool2d),
          .exact_on_integers = exact};
}

const RegisterOp avg_pool2d_case(avg_pool2d_of("avg_pool2d", kExactVariants, true));
const RegisterOp avg_pool2d_rounded_case(avg_pool2d_of("avg_pool2d, any window", kRoundedVariants, false));

std::vector<OpCall> global_avg_pool2d_calls(const Shape& nchw) {
  OpCall call;
  call.inputs = {{.shape = nchw}};
  call.function = [](const std::vector<Tensor>& in) { return autograd::global_avg_pool2d(in[0]); };
  call.reference = [](const std::vector<Tensor>& in) {
    const Tensor y = Tensor::empty({in[0].size(0), in[0].size(1), 1, 1}, in[0].options());
    kernels::reference::global_avg_pool2d_forward(in[0], Out(y));
    return y;
  };
  call.terms = static_cast<double>(nchw[2] * nchw[3]);
  return {call};
}

const RegisterOp global_avg_pool2d_case(
    {.name = "global_avg_pool2d",
     .calls = global_avg_pool2d_calls,
     .bad_inputs =
         {{"no image", [] { autograd::global_avg_pool2d(Tensor::zeros({2, 3})); }, "needs images [N, C, H, W]"},
          {"no pixels", [] { autograd::global_avg_pool2d(Tensor::zeros({2, 3, 0, 4})); }, "at least one pixel"},
          {"integers", [] { autograd::global_avg_pool2d(Tensor::zeros({2, 3, 4, 4}, {.dtype = DType::i32})); },
           "floating dtype"}},
     .exact_on_integers = false});

}  // namespace
