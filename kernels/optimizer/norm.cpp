// Norm and scaling over many tensors: one pass over all of them, in chunks that do not depend on the number of threads.
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/norm_implementations.h"
#include "tandem/kernels/optimizer/sum_of_squares.h"
#include "tandem/kernels/optimizer/tensor_list.h"

#include <numeric>

namespace tandem::kernels {

namespace {

constexpr std::int64_t kChunk = 1 << 13;

}  // namespace

double squared_norm(std::span<const Tensor> tensors) {
  constexpr std::string_view kOp = "squared_norm";
  const std::vector<std::int64_t> sizes = dense_sizes(kOp, tensors);
  if constexpr (kHasCuda)
    if (!tensors.empty())
      if (const CudaOp op{kOp, tensors.front()}) return cuda::squared_norm_there(tensors, nullptr).item();
  struct Chunk {
    std::size_t item;
    std::int64_t begin, end;
  };
  std::vector<Chunk> chunks;
  for (std::size_t item = 0; item < sizes.size(); ++item) {
    for (std::int64_t begin = 0; begin < sizes[item]; begin += kChunk) {
      chunks.push_back({item, begin, std::min(begin + kChunk, sizes[item])});
    }
  }
  std::vector<double> partial(chunks.size());
  parallel_for(static_cast<std::int64_t>(chunks.size()), 2, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Tensor& tensor = tensors[chunks[i].item];
      dispatch_floating(tensor.dtype(), kOp, [&](auto tag) {
        using T = typename decltype(tag)::type;
        partial[i] = detail::sum_of_squares(tensor.data<T>() + chunks[i].begin, chunks[i].end - chunks[i].begin);
      });
    }
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

Tensor squared_norm_there(std::span<const Tensor> tensors, TableCache* table) {
  if constexpr (kHasCuda) {
    dense_sizes("squared_norm", tensors);
    if (!tensors.empty())
      if (const CudaOp op{"squared_norm", tensors.front()}) return cuda::squared_norm_there(tensors, table);
  }
  return Tensor::full({}, squared_norm(tensors), {.dtype = DType::f64});
}

void scale_all(std::span<const Out> tensors, double factor) {
  constexpr std::string_view kOp = "scale_all";
  const std::vector<std::int64_t> sizes = dense_sizes(kOp, std::vector<Tensor>(tensors.begin(), tensors.end()));
  if constexpr (kHasCuda)
    if (!tensors.empty())
      if (const CudaOp op{kOp, tensors.front()}) return cuda::scale_all(tensors, factor);
  for_each_part(sizes, [&](std::size_t item, std::int64_t begin, std::int64_t end) {
    dispatch_floating(tensors[item].dtype(), kOp, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const values = tensors[item].data<T>();
      const auto by = static_cast<compute_t<T>>(factor);
      for (std::int64_t i = begin; i < end; ++i) values[i] = T(static_cast<compute_t<T>>(values[i]) * by);
    });
  });
}

}  // namespace tandem::kernels
