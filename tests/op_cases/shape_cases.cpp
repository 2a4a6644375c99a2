// Op cases: changes of shape and copies; padding, cropping and mirroring of images.
#include "tandem/autograd/functions/augment.h"
#include "tandem/autograd/functions/copy.h"
#include "tandem/autograd/functions/shape.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/flip_horizontal.h"
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// One image input; `rearranged` takes its row-major elements to those of the output.
OpCall moves(std::string variant, const Shape& nchw, std::function<Tensor(const Tensor&)> function,
             std::function<std::vector<double>(const std::vector<double>&)> rearranged, const Shape& out_shape) {
  OpCall call;
  call.variant = std::move(variant);
  call.inputs = {{.shape = nchw}};
  call.function = [function](const std::vector<Tensor>& in) { return function(in[0]); };
  call.reference = [=](const std::vector<Tensor>& in) {
    return Tensor::from(rearranged(in[0].to_vector<double>()), out_shape);
  };
  return call;
}

std::vector<double> same(const std::vector<double>& values) { return values; }

const Tensor kImages = Tensor::zeros({2, 3, 4, 5});

const RegisterOp reshape_case({
    .name = "reshape",
    .calls =
        [](const Shape& s) {
          const Shape merged{s[0] * s[1], s[2] * s[3]}, halves{s[3], s[0], s[2] * s[1]};
          const auto to = [](const Shape& shape) {
            return [=](const Tensor& x) { return autograd::reshape(x, shape); };
          };
          return std::vector<OpCall>{moves("to " + to_string(merged), s, to(merged), same, merged),
                                     moves("to " + to_string(halves), s, to(halves), same, halves)};
        },
    .bad_inputs = {{"other count", [] { autograd::reshape(kImages, {7}); },
                    "reshape: f32[2, 3, 4, 5] has 120 elements, and shape [7] has not"},
                   {"two open sizes", [] { autograd::reshape(kImages, {-1, -1}); },
                    "reshape: shape [-1, -1] may hold one -1"},
                   {"open size that does not divide", [] { autograd::reshape(kImages, {7, -1}); },
                    "no size for the -1 of shape [7, -1]"},
                   {"huge sizes", [] { autograd::reshape(kImages, {std::int64_t{1} << 62, 4, -1}); },
                    "no size for the -1 of shape [4611686018427387904, 4, -1]"},
                   {"undefined", [] { autograd::reshape(Tensor(), {1}); }, "reshape: needs a defined tensor"}},
});

const RegisterOp flatten_case({
    .name = "flatten",
    .calls =
        [](const Shape& s) {
          return std::vector<OpCall>{moves("", s, autograd::flatten, same, {s[0], s[1] * s[2] * s[3]})};
        },
    .bad_inputs = {{"rank 0", [] { autograd::flatten(Tensor::zeros({})); }, "flatten: needs a batch dimension"},
                   {"undefined", [] { autograd::flatten(Tensor()); }, "undefined"},
                   {"moved from",
                    [] {
                      Tensor x = Tensor::zeros({2, 2});
                      const Tensor y = std::move(x);
                      autograd::flatten(x);
                    },
                    "undefined"}},
});

const RegisterOp permute_case({
    .name = "permute",
    .calls =
        [](const Shape& s) {
          const Shape out{s[3], s[0], s[1], s[2]};
          const auto rotated = [s](const std::vector<double>& x) {
            const std::size_t width = static_cast<std::size_t>(s[3]), rows = width == 0 ? 0 : x.size() / width;
            std::vector<double> y(x.size());
            for (std::size_t row = 0; row < rows; ++row) {
              for (std::size_t w = 0; w < width; ++w) y[w * rows + row] = x[row * width + w];
            }
            return y;
          };
          return std::vector<OpCall>{moves(
              "3, 0, 1, -2", s, [](const Tensor& x) { return autograd::permute(x, {3, 0, 1, -2}); }, rotated, out)};
        },
    .bad_inputs = {{"a dimension twice", [] { autograd::permute(kImages, {0, 1, 1, 2}); },
                    "permute: dimension 1 named twice"},
                   {"too few", [] { autograd::permute(kImages, {0, 1}); },
                    "permute: f32[2, 3, 4, 5] needs 4 dimensions"},
                   {"out of range", [] { autograd::permute(kImages, {0, 1, 2, 4}); }, "dimension 4 is out of range"}},
});

/// Rows [top, ...) and columns [left, ...) of row-major images; what lies outside is 0.
std::vector<double> window(const std::vector<double>& x, const Shape& s, std::int64_t top, std::int64_t left,
                           std::int64_t height, std::int64_t width) {
  std::vector<double> y;
  for (std::int64_t plane = 0; plane < s[0] * s[1]; ++plane) {
    for (std::int64_t h = top; h < top + height; ++h) {
      for (std::int64_t w = left; w < left + width; ++w) {
        const bool inside = h >= 0 && h < s[2] && w >= 0 && w < s[3];
        y.push_back(inside ? x[static_cast<std::size_t>((plane * s[2] + h) * s[3] + w)] : 0.0);
      }
    }
  }
  return y;
}

const RegisterOp narrow_case({
    .name = "narrow",
    .calls =
        [](const Shape& s) {
          const std::int64_t start = s[3] / 3, length = s[3] - start;
          return std::vector<OpCall>{moves(
              "columns", s, [=](const Tensor& x) { return autograd::narrow(x, -1, start, length); },
              [=](const std::vector<double>& x) { return window(x, s, 0, start, s[2], length); },
              {s[0], s[1], s[2], length})};
        },
    .bad_inputs = {{"too long", [] { autograd::narrow(kImages, 1, 1, 3); }, "narrow: 3 elements from 1"},
                   {"negative start", [] { autograd::narrow(kImages, 1, -1, 1); }, "narrow: 1 elements from -1"},
                   {"no such dimension", [] { autograd::narrow(kImages, 4, 0, 1); }, "dimension 4 is out of range"}},
});

/// Every second row of images, beginning with the second one.
std::vector<double> odd_rows(const std::vector<double>& x, const Shape& s) {
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (static_cast<std::int64_t>(i) / s[3] % s[2] % 2 == 1) y.push_back(x[i]);
  }
  return y;
}

const RegisterOp narrow_step_case({
    .name = "narrow_step",
    .calls =
        [](const Shape& s) {
          return std::vector<OpCall>{moves(
              "odd rows", s, [=](const Tensor& x) { return autograd::narrow(x, 2, s[2] > 1 ? 1 : 0, s[2] / 2, 2); },
              [=](const std::vector<double>& x) { return odd_rows(x, s); }, {s[0], s[1], s[2] / 2, s[3]})};
        },
    .bad_inputs = {{"too long", [] { autograd::narrow(kImages, 2, 1, 3, 2); },
                    "narrow: 3 elements from 1 in steps of 2"},
                   {"step 0", [] { autograd::narrow(kImages, 2, 0, 1, 0); }, "in steps of 0"},
                   {"negative step", [] { autograd::narrow(kImages, 2, 3, 2, -1); }, "in steps of -1"}},
});

const RegisterOp select_case({
    .name = "select",
    .calls =
        [](const Shape& s) {
          return std::vector<OpCall>{moves(
              "last channel", s, [=](const Tensor& x) { return autograd::select(x, 1, s[1] - 1); },
              [=](const std::vector<double>& x) {
                const auto plane = static_cast<std::size_t>(s[2] * s[3]),
                           image = plane * static_cast<std::size_t>(s[1]);
                std::vector<double> y;
                for (std::size_t i = 0; i < x.size(); ++i) {
                  if (i % image >= image - plane) y.push_back(x[i]);
                }
                return y;
              },
              {s[0], s[2], s[3]})};
        },
    .bad_inputs = {{"outside", [] { autograd::select(kImages, 1, 3); }, "select: index 3 is outside dimension 1"},
                   {"negative", [] { autograd::select(kImages, 0, -1); }, "select: index -1 is outside"},
                   {"no such dimension", [] { autograd::select(kImages, 4, 0); }, "dimension 4 is out of range"}},
});

const RegisterOp transpose_case({
    .name = "transpose",
    .calls =
        [](const Shape& s) {
          return std::vector<OpCall>{moves(
              "rows and channels", s, [](const Tensor& x) { return autograd::transpose(x, 1, -2); },
              [=](const std::vector<double>& x) {
                const auto channels = static_cast<std::size_t>(s[1]), rows = static_cast<std::size_t>(s[2]),
                           width = static_cast<std::size_t>(s[3]);
                std::vector<double> y(x.size());
                for (std::size_t i = 0; i < x.size(); ++i) {
                  const std::size_t w = i % width, h = i / width % rows, c = i / width / rows % channels,
                                    n = i / width / rows / channels;
                  y[((n * rows + h) * channels + c) * width + w] = x[i];
                }
                return y;
              },
              {s[0], s[2], s[1], s[3]})};
        },
    .bad_inputs = {{"no such dimension", [] { autograd::transpose(kImages, 0, 4); }, "dimension 4 is out of range"},
                   {"none before the first", [] { autograd::transpose(kImages, -5, 0); },
                    "dimension -5 is out of range"},
                   {"undefined", [] { autograd::transpose(Tensor(), 0, 1); }, "undefined"}},
});

const RegisterOp squeeze_case({
    .name = "squeeze",
    .calls =
        [](const Shape& s) {
          if (s[0] != 1) return std::vector<OpCall>{};
          return std::vector<OpCall>{
              moves("batch", s, [](const Tensor& x) { return autograd::squeeze(x, -4); }, same, {s[1], s[2], s[3]})};
        },
    .bad_inputs = {{"size 2", [] { autograd::squeeze(kImages, 0); },
                    "squeeze: dimension 0 of f32[2, 3, 4, 5] is not 1"},
                   {"no such dimension", [] { autograd::squeeze(kImages, 4); }, "dimension 4 is out of range"},
                   {"undefined", [] { autograd::squeeze(Tensor(), 0); }, "undefined"}},
});

const RegisterOp unsqueeze_case({
    .name = "unsqueeze",
    .calls =
        [](const Shape& s) {
          return std::vector<OpCall>{moves("last", s, [](const Tensor& x) { return autograd::unsqueeze(x, -1); }, same,
                                           {s[0], s[1], s[2], s[3], 1}),
                                     moves("second", s, [](const Tensor& x) { return autograd::unsqueeze(x, 1); }, same,
                                           {s[0], 1, s[1], s[2], s[3]})};
        },
    .bad_inputs = {{"too far", [] { autograd::unsqueeze(kImages, 5); }, "unsqueeze: dimension 5 is out of range"},
                   {"too far in front", [] { autograd::unsqueeze(kImages, -6); }, "unsqueeze: dimension -6"},
                   {"undefined", [] { autograd::unsqueeze(Tensor(), 0); }, "undefined"}},
});

const RegisterOp expand_case({
    .name = "expand",
    .calls =
        [](const Shape& s) {
          const Shape channel{s[0], 1, s[2], s[3]}, out{2, s[0], 3, s[2], s[3]};
          OpCall call = moves(
              "channels and a new dimension", channel, [=](const Tensor& x) { return autograd::expand(x, out); },
              [=](const std::vector<double>& x) {
                const auto plane = static_cast<std::size_t>(s[2] * s[3]);
                std::vector<double> y(6 * x.size());
                for (std::size_t i = 0; i < y.size(); ++i)
                  y[i] = x[i / (3 * plane) % (x.size() / plane) * plane + i % plane];
                return y;
              },
              out);
          call.terms = 6;
          return std::vector<OpCall>{std::move(call)};
        },
    .bad_inputs = {{"other size", [] { autograd::expand(kImages, {2, 4, 4, 5}); },
                    "expand: f32[2, 3, 4, 5] cannot become [2, 4, 4, 5]"},
                   {"fewer dimensions", [] { autograd::expand(kImages, {4, 5}); }, "cannot become [4, 5]"},
                   {"undefined", [] { autograd::expand(Tensor(), {1}); }, "undefined"}},
});

const RegisterOp clone_case({
    .name = "clone",
    .calls = [](const Shape& s) { return std::vector<OpCall>{moves("", s, autograd::clone, same, s)}; },
    .bad_inputs = {{"undefined", [] { autograd::clone(Tensor()); }, "undefined"},
                   {"moved from",
                    [] {
                      Tensor x = Tensor::zeros({2, 2});
                      const Tensor y = std::move(x);
                      autograd::clone(x);
                    },
                    "undefined"},
                   {"raw, of a leaf", [] { autograd::set_requires_grad(Tensor::zeros({2})).clone(); },
                    "call autograd::clone"}},
});

const RegisterOp contiguous_case({
    .name = "contiguous",
    .calls =
        [](const Shape& s) {
          return std::vector<OpCall>{
              moves(
                  "row major", s, [](const Tensor& x) { return autograd::contiguous(x); }, same, s),
              moves(
                  "channels last", s, [](const Tensor& x) { return autograd::contiguous(x, Layout::channels_last); },
                  same, s)};
        },
    .bad_inputs = {{"undefined", [] { autograd::contiguous(Tensor()); }, "undefined"},
                   {"moved from",
                    [] {
                      Tensor x = Tensor::zeros({2, 2});
                      const Tensor y = std::move(x);
                      autograd::contiguous(x);
                    },
                    "undefined"},
                   {"raw, of a leaf", [] { autograd::set_requires_grad(Tensor::zeros({2})).contiguous(); },
                    "call autograd::contiguous"}},
});

OpCall pad_call(const Shape& s, const kernels::Pad2dOptions& options) {
  OpCall call;
  call.variant = fmt::format("{} {} {} {} {}", options.left, options.right, options.top, options.bottom,
                             options.mode == kernels::PadMode::zero ? "zero" : "reflect");
  call.inputs = {{.shape = s}};
  call.function = [=](const std::vector<Tensor>& in) { return autograd::pad2d(in[0], options); };
  call.reference = [=](const std::vector<Tensor>& in) {
    const Tensor out = Tensor::empty(kernels::pad2d_output_shape(s, options), in[0].options());
    kernels::reference::pad2d(in[0], options, Out(out));
    return out;
  };
  call.terms = 9;  // an element may show at both ends of both axes
  return call;
}

const RegisterOp pad2d_case({
    .name = "pad2d",
    .calls =
        [](const Shape& s) {
          std::vector<OpCall> calls = {pad_call(s, {.left = 1, .right = 2, .top = 0, .bottom = 3}), pad_call(s, {})};
          if (s[2] >= 3 && s[3] >= 3) {
            calls.push_back(
                pad_call(s, {.left = 2, .right = 1, .top = 1, .bottom = 2, .mode = kernels::PadMode::reflect}));
          }
          return calls;
        },
    .bad_inputs = {{"negative", [] { autograd::pad2d(kImages, {.left = -1}); }, "pad2d: padding left -1"},
                   {"reflection wider than the image",
                    [] { autograd::pad2d(kImages, {.top = 4, .mode = kernels::PadMode::reflect}); },
                    "pad2d: reflecting needs"},
                   {"rank 3", [] { autograd::pad2d(Tensor::zeros({3, 4, 5}), {}); },
                    "pad2d: needs images of shape N,C,H,W"},
                   {"integers", [] { autograd::pad2d(Tensor::zeros({1, 1, 2, 2}, {.dtype = DType::u8}), {}); },
                    "floating dtype"}},
});

const RegisterOp crop2d_case({
    .name = "crop2d",
    .calls =
        [](const Shape& s) {
          const std::int64_t top = s[2] / 3, left = s[3] / 2, height = s[2] - top,
                             width = std::max<std::int64_t>(1, s[3] - left - 1);
          return std::vector<OpCall>{moves(
              "", s, [=](const Tensor& x) { return autograd::crop2d(x, top, left, height, width); },
              [=](const std::vector<double>& x) { return window(x, s, top, left, height, width); },
              {s[0], s[1], height, width})};
        },
    .bad_inputs = {{"outside", [] { autograd::crop2d(kImages, 1, 0, 4, 5); },
                    "crop2d: window f32[2, 3, 4, 5] at row 1"},
                   {"negative start", [] { autograd::crop2d(kImages, 0, -1, 2, 2); }, "column -1"},
                   {"negative size", [] { autograd::crop2d(kImages, 0, 0, -2, 2); }, "crop2d: a window of -2 x 2"},
                   {"rank 2", [] { autograd::crop2d(Tensor::zeros({3, 4}), 0, 0, 1, 1); }, "crop2d: needs images"}},
});

const RegisterOp flip_horizontal_case({
    .name = "flip_horizontal",
    .calls =
        [](const Shape& s) {
          const auto mirrored = [s](std::vector<double> x) {
            const std::int64_t width = s[3];
            for (std::int64_t row = 0; row < s[0] * s[1] * s[2]; ++row) {
              std::reverse(x.begin() + row * width, x.begin() + (row + 1) * width);
            }
            return x;
          };
          return std::vector<OpCall>{moves("", s, autograd::flip_horizontal, mirrored, s)};
        },
    .bad_inputs = {{"rank 3", [] { autograd::flip_horizontal(Tensor::zeros({3, 4, 5})); },
                    "flip_horizontal: needs images"},
                   {"other shape", [] { kernels::flip_horizontal(kImages, Out(Tensor::zeros({2, 3, 5, 4}))); },
                    "must have one shape"},
                   {"shared memory", [] { kernels::flip_horizontal(kImages, Out(kImages)); }, "share memory"}},
});

}  // namespace
