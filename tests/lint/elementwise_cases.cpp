// Copies, fills, casts, dropout and element-wise ops under the lint.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/binary.h"
#include "tandem/kernels/elementwise/compare.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/elementwise/unary.h"
#include "tandem/kernels/elementwise/where.h"
#include "tests/lint/lint.h"

namespace tandem::test {

namespace {

/// A tensor as a case finds it, and its name.
struct View {
  std::string name;
  Tensor tensor;
};

/// One shape as networks store it, and as they may come by it: from a row-major dataset, by a transpose, as a slice of
/// a batch of larger images, as one value per channel.
std::vector<View> views(const Shape& shape, DType dtype) {
  const Shape larger{shape[0], shape[1], shape[2] + 2, shape[3] + 2}, per_channel{1, shape[1], 1, 1};
  return {{"dense", ones(shape, dtype)},
          {"row-major", ones(shape, dtype, Layout::row_major)},
          {"a crop", ones(larger, dtype).narrow(2, 1, shape[2]).narrow(3, 1, shape[3])},
          {"per channel", ones(per_channel, dtype).expand(shape)}};
}

std::vector<LintCase> copies() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::u8}) {
    for (const Shape& shape : {Shape{2, 64, 8, 8}, Shape{1, 256, 4, 4}, Shape{2, 3, 32, 32}}) {
      for (const View& from : views(shape, dtype)) {
        for (const Layout layout : {Layout::channels_last, Layout::row_major}) {
          // Crops of images are cut into planes, if ever; the planes of a crop inside a network are less than a sector.
          if (from.name == "a crop" && layout == Layout::row_major && shape[1] != 3) continue;
          const Tensor to = ones(shape, dtype, layout);
          const char* const name = layout == Layout::channels_last ? "channels last" : "row-major";
          cases.push_back({fmt::format("copy of {} to {}", describe(from.tensor) + ", " + from.name + ",", name),
                           [=] { to.copy_from(from.tensor); }});
        }
      }
    }
    const Tensor matrix = ones({96, 130}, dtype);
    const Tensor transposed = ones({130, 96}, dtype);
    cases.push_back(
        {fmt::format("transpose of {}", describe(matrix)), [=] { transposed.copy_from(matrix.transpose(0, 1)); }});
    const Tensor crop = ones({2, 64, 10, 10}, dtype).narrow(2, 1, 8).narrow(3, 1, 8);
    cases.push_back({fmt::format("fill of a crop, {}", name_of(dtype)), [=] { crop.fill(2.0); }});
    cases.push_back({fmt::format("fill of {}", describe(matrix)), [=] { matrix.fill(2.0); }});
  }
  return cases;
}

std::vector<LintCase> maps() {
  std::vector<LintCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape : {Shape{2, 64, 8, 8}, Shape{1, 256, 6, 6}, Shape{2, 3, 32, 32}}) {
      const Tensor out = ones(shape, dtype), other = ones(shape, dtype);
      const Tensor wide = ones(shape, DType::f32), half = ones(shape, DType::bf16);
      const Tensor mask = ones(shape, DType::u8);
      for (const View& view : views(shape, dtype)) {
        const Tensor in = view.tensor;
        const auto add_case = [&](const char* op, std::function<void()> work) {
          cases.push_back({fmt::format("{} of {}, {}", op, describe(in), view.name), std::move(work)});
        };
        add_case("relu", [=] { kernels::relu_forward(in, Out(out)); });
        add_case("relu_backward", [=] { kernels::relu_backward(other, in, Out(out)); });
        add_case("gelu_backward", [=] { kernels::gelu_backward(in, other, Out(out)); });
        add_case("silu", [=] { kernels::silu_forward(in, Out(out)); });
        add_case("add", [=] { kernels::add(other, in, Out(out)); });
        add_case("mul", [=] { kernels::mul(in, other, Out(out)); });
        add_case("scale", [=] { kernels::scale(in, 2.0, Out(out)); });
        add_case("tanh", [=] { kernels::unary_forward("tanh", kernels::Unary::tanh, in, {}, Out(out)); });
        add_case("tanh_backward",
                 [=] { kernels::unary_backward("tanh", kernels::Unary::tanh, other, in, {}, Out(out)); });
        add_case("div", [=] { kernels::binary_forward("div", kernels::Binary::div, other, in, Out(out)); });
        add_case("div_backward", [=] {
          kernels::binary_backward("div", kernels::Binary::div, kernels::Side::right, other, in, other, Out(out));
        });
        add_case("where", [=] { kernels::where(mask, other, in, Out(out)); });
        add_case("gt", [=] { kernels::compare("gt", kernels::Comparison::gt, other, in, Out(mask)); });
        add_case("where_backward", [=] { kernels::where_backward(mask, true, in, Out(out)); });
        add_case("cast to bf16", [=] { kernels::cast(in, Out(half)); });
        if (dtype != DType::f32) add_case("cast to f32", [=] { kernels::cast(in, Out(wide)); });
        add_case("dropout", [=] { kernels::dropout_forward(in, 0.5, {.seed = 1}, Out(out)); });
      }
    }
  }
  return cases;
}

const RegisterLint register_copies("copies", copies), register_maps("maps", maps);

}  // namespace

}  // namespace tandem::test
