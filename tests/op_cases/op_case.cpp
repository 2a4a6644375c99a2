// The op table's registry and the making of inputs.
#include "tests/op_cases/op_case.h"

#include "tandem/autograd/variable.h"
#include "tandem/core/random.h"

#include <cmath>
#include <numeric>

namespace tandem::test {

namespace {

std::vector<OpCase>& registry() {
  static std::vector<OpCase> table;
  return table;
}

double random_value(const OpInput& input, const RandomKey& key, std::uint64_t index, bool integers) {
  const double normal = integers ? static_cast<double>(key.below(index, 9)) - 4.0 : key.normal(index);
  switch (input.values) {
    case Values::normal:
      return normal;
    case Values::away_from_zero:
      if (integers) return normal == 0.0 ? 3.0 : normal;
      return normal < 0.0 ? normal - 0.125 : normal + 0.125;
    case Values::positive:
      return integers ? normal + 5.0 : std::abs(normal) + 0.5;
    case Values::small:
      return integers ? normal / 8.0 : normal / (1.0 + std::abs(normal));
    case Values::labels:
      return key.below(index, static_cast<std::uint32_t>(input.classes));
    case Values::distinct:
      break;
  }
  // Element j of a plane of p elements: a permutation of 0..p-1 (multiplication by a unit modulo p), centred. Exact in
  // bf16 for planes of up to 256 elements.
  std::int64_t plane = 1;
  for (int dim = std::max(0, input.shape.rank() - 2); dim < input.shape.rank(); ++dim) plane *= input.shape[dim];
  std::int64_t factor = plane / 2 + 1;
  while (std::gcd(factor, plane) != 1) ++factor;
  const auto j = static_cast<std::int64_t>(index);
  const std::int64_t shuffled = (j % plane * factor + j / plane + key.below(0, 7)) % plane;
  return static_cast<double>(shuffled - plane / 2) * (integers ? 1.0 : 0.125);
}

}  // namespace

RegisterOp::RegisterOp(OpCase op) { registry().push_back(std::move(op)); }

const std::vector<OpCase>& op_table() { return registry(); }

const std::vector<Shape>& nasty_shapes() {
  static const std::vector<Shape> shapes = {{0, 3, 5, 7}, {1, 1, 1, 1},  {3, 3, 1, 1},  {1, 5, 7, 3},
                                            {2, 1, 9, 5}, {2, 33, 5, 5}, {1, 33, 1, 1}, {2, 8, 6, 8}};
  return shapes;
}

Tensor make_input(const OpInput& input, DType dtype, bool integers, std::uint32_t seed) {
  const RandomKey key{.seed = seed, .stream = RandomStream::test};
  std::vector<double> values(static_cast<std::size_t>(element_count(input.shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random_value(input, key, i, integers);
  if (input.values == Values::labels) dtype = DType::i64;
  return dispatch_all(dtype, "make_input", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> typed;
    for (const double value : values) typed.push_back(static_cast<T>(static_cast<compute_t<T>>(value)));
    return Tensor::from(typed, input.shape, input.layout);
  });
}

std::vector<Tensor> make_inputs(const OpCall& call, DType dtype, bool integers, std::uint32_t seed) {
  std::vector<Tensor> inputs;
  for (const OpInput& input : call.inputs) {
    inputs.push_back(make_input(input, dtype, integers, seed + 100 * static_cast<std::uint32_t>(inputs.size())));
    if (input.differentiable && input.values != Values::labels) autograd::set_requires_grad(inputs.back());
  }
  return inputs;
}

Tensor with_gaps(const Tensor& tensor) {
  Shape larger = tensor.shape();
  for (int dim = 0; dim < tensor.rank(); ++dim) larger[dim] = 2 * larger[dim] + 1;
  Tensor view = Tensor::zeros(larger, tensor.options());
  for (int dim = 0; dim < tensor.rank(); ++dim) view = view.narrow(dim, 1, tensor.size(dim), 2);
  view.copy_from(tensor.detach());
  return view;
}

std::vector<Tensor> as_f64(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    const bool convert = is_floating(input.dtype());
    result.push_back(convert ? Tensor::from(input.to_vector<double>(), input.shape()) : input.detach());
  }
  return result;
}

std::vector<Tensor> absolute(const std::vector<Tensor>& f64_inputs) {
  std::vector<Tensor> result;
  for (const Tensor& input : f64_inputs) {
    result.push_back(input.detach());
    if (input.dtype() != DType::f64) continue;
    std::vector<double> values = input.to_vector<double>();
    for (double& value : values) value = std::abs(value);
    result.back() = Tensor::from(values, input.shape());
  }
  return result;
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0x1p-8;
  }
}

double smallest_positive(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-1074;
    case DType::f32:
      return 0x1p-149;
    case DType::f16:
      return 0x1p-24;
    default:
      return 0x1p-133;
  }
}

}  // namespace tandem::test
