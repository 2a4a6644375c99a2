#include "gdb_leaf.h"

using namespace tandem;

namespace {

struct Leaf final : AutogradMeta {
  std::string_view operation() const override { return ""; }
};

}  // namespace

void make_leaf(const Tensor& tensor, bool requires_grad) {
  tensor.autograd_meta() = std::make_shared<Leaf>();
  tensor.autograd_meta()->requires_grad = requires_grad;
}
