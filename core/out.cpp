#include "tandem/core/out.h"

namespace tandem {

Out::Out(const Tensor& tensor, std::string_view writer) : tensor_(tensor) {
  if (tensor_.defined()) tensor_.mark_written(writer);
}

std::vector<Out> outs_of(std::span<const Tensor> tensors) { return std::vector<Out>(tensors.begin(), tensors.end()); }

}  // namespace tandem
