// Tensors for check_gdb.py to look at, in stop_here().
#include "tandem/core/tensor.h"

using namespace tandem;

namespace {

struct Leaf final : AutogradMeta {
  std::string_view operation() const override { return ""; }
};

void stop_here(const Tensor& matrix, const Tensor& view, const Tensor& half, const Tensor& brain, const Tensor& bytes,
               const Tensor& number, const Tensor& none, const Tensor& undefined, const Shape& shape) {
  const Storage& storage = *matrix.storage();
  // The debugger stops here: everything above is used below.
  asm volatile("" : : "r"(&matrix), "r"(&view), "r"(&half), "r"(&brain), "r"(&bytes), "r"(&storage) : "memory");
  asm volatile("" : : "r"(&number), "r"(&none), "r"(&undefined), "r"(&shape) : "memory");
}

}  // namespace

int main() {
  const Tensor matrix = Tensor::from<float>({1, 2.5, 3, 4, 5, 6}, {2, 3});
  const Tensor wanted = matrix.detach();
  wanted.autograd_meta() = std::make_shared<Leaf>();
  wanted.autograd_meta()->requires_grad = true;
  stop_here(wanted, matrix.transpose(0, 1).narrow(0, 1, 2), Tensor::full({2}, 0.1, {.dtype = DType::f16}),
            Tensor::full({1}, -1.5, {.dtype = DType::bf16}), Tensor::from<std::uint8_t>({7, 255}, {2}),
            Tensor::full({}, 3, {.dtype = DType::i64}), Tensor::zeros({2, 0}), Tensor(), {8, 3, 32, 32});
}
