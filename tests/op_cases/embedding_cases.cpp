// Op cases: lookup of rows.
#include "tandem/autograd/functions/embedding.h"
#include "tandem/kernels/embedding/embedding.h"
#include "tandem/kernels/embedding/embedding_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<OpCall> calls(const Shape& nchw) {
  std::vector<OpCall> result;
  // Few rows, so that most are looked up several times, and many, most of which are not.
  for (const std::int64_t rows : {std::int64_t{3}, std::int64_t{50}}) {
    const Shape indices{nchw[0], nchw[2], nchw[3]};
    const std::int64_t features = nchw[1], count = element_count(indices);
    OpCall call;
    call.variant = fmt::format("{} rows", rows);
    call.inputs = {{.shape = {rows, features}}, {.shape = indices, .values = Values::labels, .classes = rows}};
    call.function = [](const std::vector<Tensor>& in) { return autograd::embedding(in[1], in[0]); };
    call.reference = [=](const std::vector<Tensor>& in) {
      const Tensor y = Tensor::empty({count, features}, {.dtype = DType::f64});
      kernels::reference::embedding_forward(in[1].contiguous().view({count}), in[0].contiguous(), Out(y));
      return y.view({indices[0], indices[1], indices[2], features});
    };
    call.terms = static_cast<double>(count);
    result.push_back(call);
  }
  return result;
}

const Tensor weight = Tensor::zeros({5, 2});

std::function<void()> look_up(const std::vector<std::int64_t>& indices) {
  return [=] { autograd::embedding(Tensor::from(indices, {static_cast<std::int64_t>(indices.size())}), weight); };
}

std::function<void()> with(const Tensor& indices, const Tensor& table) {
  return [=] { autograd::embedding(indices, table); };
}

const Tensor indices = Tensor::from(std::vector<std::int64_t>{4, 0}, {2});

const RegisterOp embedding_case(
    {.name = "embedding",
     .calls = calls,
     .bad_inputs = {
         {"an index too large", look_up({4, 0, 5}), "embedding: index 2 is 5, outside of the 5 rows of the weight"},
         {"an index below 0", look_up({-1}), "embedding: index 0 is -1, outside of the 5 rows"},
         {"floating indices", with(Tensor::zeros({2}), weight), "embedding: indices must be i64, got f32[2]; use cast"},
         {"a vector", with(indices, Tensor::zeros({5})),
          "embedding: needs a floating weight [rows, features], got f32[5]"},
         {"integers", with(indices, Tensor::zeros({5, 2}, {.dtype = DType::i64})),
          "embedding: needs a floating weight [rows, features], got i64[5, 2]"},
         {"no weight", with(indices, Tensor()), "embedding: needs indices and a weight, got i64[2] and"},
         {"no indices", with(Tensor(), weight), "embedding: needs indices and a weight"},
         {"a gradient of another shape",
          [] { kernels::embedding_backward(indices, Tensor::zeros({2, 3}), Out(Tensor::zeros({5, 2}))); },
          "embedding_backward: rows of f32[5, 2] for i64[2] must be dense f32[2, 2], got f32[2, 3]"}}});

}  // namespace
