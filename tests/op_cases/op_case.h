// The op table: one OpCase per differentiable function. test_op_table.cpp runs every case over every shape that it
// takes: forward against the reference (exact integers, then a derived bound, all new memory poisoned with NaN),
// gradcheck in f64, directional derivatives in the storage dtypes, non-dense inputs, bad inputs. docs/adding-an-op.md
// walks through.
#pragma once

#include "tandem/core/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::test {

/// What an input is filled with. Random values, and small integers for the exact test, obey it alike.
enum class Values {
  normal,          // N(0, 1); integers -4..4
  away_from_zero,  // |x| >= 0.1, for functions with a kink at 0; integers without 0
  distinct,        // no two equal within a plane (the last two dimensions), for maxima
  positive,        // >= 0.5
  labels,          // i64 in [0, classes); never differentiable
  small,           // |x| < 1, for slopes that a rounded output is good enough for; integers are eighths
};

struct OpInput {
  Shape shape = {};
  Values values = Values::normal;
  bool differentiable = true;
  std::int64_t classes = 0;  // for Values::labels
  Layout layout = Layout::channels_last;
};

using OpFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// One way to call an op: input shapes and options fixed.
struct OpCall {
  /// Names the options in messages: "stride 2, padding 1". May be empty.
  std::string variant = {};
  std::vector<OpInput> inputs = {};
  /// The differentiable function under test; takes any dtype of OpCase::dtypes, and f64.
  OpFunction function = {};
  /// The oracle: f64 inputs to f64 output of the same shape, by kernels::reference or plain loops of its own; not
  /// recorded.
  OpFunction reference = {};
  /// Longest sum behind one element of the output or of a gradient; scales the derived bounds. For functions that are
  /// not plain sums of products: the number of roundings that a wary reader would grant.
  double terms = 1;
  /// f64 inputs to the size of what is summed up (sum |a||b|), which scales the bound; `reference` of |inputs| if
  /// empty.
  OpFunction magnitude = {};
};

/// A call that must throw an Error of one line whose text contains `message`.
struct BadInput {
  std::string what;
  std::function<void()> call;
  std::string message;
};

struct OpCase {
  std::string name = {};
  /// The calls to try for a batch of images of shape N,C,H,W (see nasty_shapes); none if this shape does not apply.
  std::function<std::vector<OpCall>(const Shape& nchw)> calls;
  /// At least three.
  std::vector<BadInput> bad_inputs;
  /// True if small integer inputs give small integer (or half-integer) results, which every correct
  /// implementation must then compute exactly, gradients included.
  bool exact_on_integers = true;
  /// Storage types beside f64 that forward and backward are run in.
  std::vector<DType> dtypes = {DType::f32, DType::f16, DType::bf16};
};

/// Adds a case to the table; define one at namespace scope: `const RegisterOp relu_case(OpCase{...});`
struct RegisterOp {
  explicit RegisterOp(OpCase op);
};

const std::vector<OpCase>& op_table();

/// Batch 0 and 1, 1x1 images, 1, 3, 5 and 33 channels, odd sizes, and one plain shape.
const std::vector<Shape>& nasty_shapes();

/// Makes an input. `integers`: small whole numbers, else random ones, rounded to `dtype`. Equal `seed`: equal elements.
Tensor make_input(const OpInput& input, DType dtype, bool integers, std::uint32_t seed);

/// All inputs of a call; the differentiable ones are leaves that require gradients.
std::vector<Tensor> make_inputs(const OpCall& call, DType dtype, bool integers, std::uint32_t seed);

/// The same values in a tensor with gaps between its elements: a view into a larger one.
Tensor with_gaps(const Tensor& tensor);

/// The same values as f64 (labels stay i64), without gradients.
std::vector<Tensor> as_f64(const std::vector<Tensor>& inputs);

/// |x| of each element, as a new f64 tensor (labels stay as they are).
std::vector<Tensor> absolute(const std::vector<Tensor>& f64_inputs);

/// Half the distance between 1 and the next larger number: the relative error of one rounding.
double unit_roundoff(DType dtype);

/// The smallest number above 0: the absolute error of one rounding near 0.
double smallest_positive(DType dtype);

}  // namespace tandem::test
