// Tensors for check_gdb.py to look at, in stop_here().
#include "gdb_leaf.h"

#include <array>

using namespace tandem;

namespace {

void stop_here(const Tensor& matrix, const Tensor& view, const Tensor& half, const Tensor& brain, const Tensor& bytes,
               const Tensor& number, const Tensor& none, const Tensor& undefined, const Tensor& constant,
               const Shape& shape, const Tensor& unborn, const Shape& unborn_shape) {
  const Storage& storage = *matrix.storage();
  // The debugger stops here: everything above is used below.
  asm volatile("" : : "r"(&matrix), "r"(&view), "r"(&half), "r"(&brain), "r"(&bytes), "r"(&storage) : "memory");
  asm volatile("" : : "r"(&number), "r"(&none), "r"(&undefined), "r"(&shape) : "memory");
  asm volatile("" : : "r"(&constant), "r"(&unborn), "r"(&unborn_shape) : "memory");
}

}  // namespace

int main() {
  const Tensor matrix = Tensor::from<float>({1, 2.5, 3, 4, 5, 6}, {2, 3});
  const Tensor wanted = matrix.detach();
  make_leaf(wanted, true);
  const Tensor constant = Tensor::from<float>({1}, {1});
  make_leaf(constant, false);
  // Bytes before a constructor has run.
  alignas(16) std::array<char, 256> bytes;
  bytes.fill(0x5a);
  stop_here(wanted, matrix.transpose(0, 1).narrow(0, 1, 2), Tensor::full({2}, 0.1, {.dtype = DType::f16}),
            Tensor::full({1}, -1.5, {.dtype = DType::bf16}), Tensor::from<std::uint8_t>({7, 255}, {2}),
            Tensor::full({}, 3, {.dtype = DType::i64}), Tensor::zeros({2, 0}), Tensor(), constant, {8, 3, 32, 32},
            *reinterpret_cast<const Tensor*>(bytes.data()), *reinterpret_cast<const Shape*>(bytes.data()));
}
