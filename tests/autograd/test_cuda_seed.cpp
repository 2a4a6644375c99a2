// The gradient of 1 that backward() begins with on a GPU, which is kept from call to call.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/out.h"
#include "tandem/core/stream.h"
#include "tandem/core/work_graph.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

namespace tandem::test {
namespace {

using namespace autograd;

Tensor leaf_of(double value, const Shape& shape = {}, DType dtype = DType::f32) {
  return set_requires_grad(Tensor::full(shape, value, {.dtype = dtype, .device = kGpu}));
}

/// Of a sum, whose gradient passes on as it is.
double slope(const Shape& shape = {}, DType dtype = DType::f32) {
  const Tensor x = leaf_of(3.0, shape, dtype);
  backward(add(x, 2.0));
  const double before = grad(x).item();
  Out(grad(x)).fill(7.0);  // of the leaf alone
  return before;
}

}  // namespace

TEST_CASE("gradients that are changed in place leave the 1 as it is that backward() begins with", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor root = leaf_of(3.0);
  backward(root);
  CHECK(grad(root).item() == 1.0);
  Out(grad(root)).fill(5.0);
  backward(root);  // is added to what is there
  CHECK(grad(root).item() == 6.0);
  for (int time = 0; time < 2; ++time) {
    CHECK(slope() == 1.0);
    CHECK(slope({1, 1}) == 1.0);
    CHECK(slope({}, DType::f16) == 1.0);
    const StreamScope scope{Stream(kGpu)};
    CHECK(slope() == 1.0);
    CHECK(slope({1}, DType::bf16) == 1.0);
  }
}

TEST_CASE("a recorded backward() begins with 1 at each launch", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor x = leaf_of(3.0), place = Tensor::zeros({}, {.device = kGpu});
  set_gradient_place(x, place);
  const auto step = [&] {
    clear_grad(x);
    backward(mul(x, x));
  };
  for (const bool is_kept : {false, true}) {
    if (!is_kept) CHECK(slope({}, DType::f16) == 1.0);  // another is kept then
    if (is_kept) step();
    const WorkGraph graph(kGpu, step);
    CHECK(slope({}, DType::bf16) == 1.0);  // takes the place of what the graph has seen
    for (int launch = 0; launch < 2; ++launch) {
      place.fill(0.0);
      graph.launch();
      CHECK(place.item() == 6.0);
    }
  }
}

}  // namespace tandem::test
