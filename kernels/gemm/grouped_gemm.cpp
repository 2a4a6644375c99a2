// grouped_gemm: checks, and the CPU's way, which is batched_gemm for each and a pass behind it.
#include "tandem/kernels/gemm/grouped_gemm.h"
#include "tandem/kernels/gemm/grouped_gemm_implementations.h"

#include "tandem/core/describe.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tandem/kernels/gemm/product_work.h"

#include <vector>

namespace tandem::kernels {

namespace {

constexpr std::string_view kOp = "grouped_gemm";

void check(const GroupedProduct& product, const Tensor& first) {
  const auto& [a, b, c, addend] = product;
  require(a.defined() && b.defined() && c.defined() && a.rank() == 3 && b.rank() == 3 && c.rank() == 3,
          "{}: needs batches of matrices, got a {}, b {}, c {}", kOp, a, b, c.tensor());
  require(c.size(0) == a.size(0) && c.size(0) == b.size(0) && c.size(1) == a.size(1) && a.size(2) == b.size(1) &&
              b.size(2) == c.size(2),
          "{}: shapes do not fit: a {}, b {}, c {}", kOp, a, b, c.tensor());
  require(
      is_floating(c.dtype()) && a.dtype() == first.dtype() && b.dtype() == first.dtype() && c.dtype() == first.dtype(),
      "{}: all must be of one floating dtype, got a {}, b {}, c {}, the first c {}", kOp, a, b, c.tensor(), first);
  require(c.is_dense(Layout::row_major), "{}: c {} with strides {} must be dense; make it contiguous()", kOp,
          c.tensor(), c.strides());
  require_one_device(kOp, first, a, b, c.tensor(), addend);
  require(c.numel() == 0 || (c.raw_data() != a.raw_data() && c.raw_data() != b.raw_data()),
          "{}: c {} must not be a or b itself", kOp, c.tensor());
  if (!addend.defined()) return;
  require(addend.shape() == c.shape() && addend.dtype() == c.dtype() && addend.is_dense(Layout::row_major) &&
              (addend.raw_data() != c.raw_data() || c.numel() == 0),
          "{}: what is added must be a dense tensor like c {}, and not c itself, got {} with strides {}", kOp,
          c.tensor(), addend, addend.strides());
}

/// What becomes of the product in c.
template <typename T>
void combine(const GroupedProduct& product, const Combination& combination) {
  using S = compute_t<T>;
  const std::int64_t rows = product.c.size(1), columns = product.c.size(2);
  T* const c = product.c.data<T>();
  const T* const addend = product.addend.defined() ? product.addend.data<T>() : nullptr;
  const S by = static_cast<S>(combination.product), of_addend = static_cast<S>(combination.addend),
          of_identity = static_cast<S>(combination.identity);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / columns);
  parallel_for(product.c.size(0) * rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* const values = c + row * columns;
      const std::int64_t diagonal = row % rows;
      const bool has_diagonal = diagonal < columns;
      const S stored = has_diagonal ? static_cast<S>(values[diagonal]) : S(0);
      if (addend == nullptr) {
        for (std::int64_t j = 0; j < columns; ++j) values[j] = T(by * static_cast<S>(values[j]));
        if (has_diagonal) values[diagonal] = T(by * stored + of_identity);
        continue;
      }
      const T* const added = addend + row * columns;
      for (std::int64_t j = 0; j < columns; ++j)
        values[j] = T(by * static_cast<S>(values[j]) + of_addend * static_cast<S>(added[j]));
      if (has_diagonal) values[diagonal] = T(by * stored + of_addend * static_cast<S>(added[diagonal]) + of_identity);
    }
  });
}

}  // namespace

void grouped_gemm(std::span<const GroupedProduct> products, const Combination& combination) {
  std::vector<GroupedProduct> due;
  for (const GroupedProduct& product : products) {
    check(product, products.front().c.tensor());
    if (product.c.numel() > 0) due.push_back(product);
  }
  if (due.empty()) return;
  if constexpr (kHasCuda) {
    if (due.front().c.device().type == DeviceType::cuda) {
      for (const GroupedProduct& each : due)
        note_products(each.c.size(0), each.c.size(1), each.c.size(2), each.a.size(2), each.c.dtype());
      if (const CudaOp op{kOp, due.front().c}) return cuda::grouped_gemm(due, combination);
    }
  }
  const bool is_plain = combination.product == 1.0 && combination.identity == 0.0;
  for (const GroupedProduct& product : due) {
    batched_gemm(product.a, product.b, product.c);
    if (is_plain && (combination.addend == 0.0 || !product.addend.defined())) continue;
    dispatch_floating(product.c.dtype(), kOp,
                      [&](auto tag) { combine<typename decltype(tag)::type>(product, combination); });
  }
}

}  // namespace tandem::kernels
