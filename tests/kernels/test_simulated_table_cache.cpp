// When kernels of many tensors copy their tables to the device.
#include "tandem/core/cuda/recording.h"
#include "tandem/core/stream.h"
#include "tandem/kernels/optimizer/lookahead.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/simulator/runtime.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a table is copied where its tensors or the stream are others than before", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto on_gpu = [](double value) { return Tensor::full({300}, value, {.device = kGpu}); };
  const Tensor a = on_gpu(1.0), b = on_gpu(2.0), one = on_gpu(1.0), two = on_gpu(2.0);
  kernels::TableCache table;
  const auto copies_of = [&](const Tensor& gradient_of_b) {
    const std::vector<kernels::SgdItem> items{{Out(a), one, {}}, {Out(b), gradient_of_b, {}}};
    const std::int64_t before = simulator::runtime_counts().copies_to_device;
    kernels::sgd_step(items, {.lr = 1.0, .table = &table});
    return simulator::runtime_counts().copies_to_device - before;
  };
  CHECK(copies_of(one) == 1);  // b: 1
  CHECK(copies_of(one) == 0);  // 0
  CHECK(copies_of(two) == 1);  // -2
  CHECK(copies_of(two) == 0);  // -4
  CHECK(copies_of(one) == 1);  // -5
  const Stream other(kGpu);
  Event done;
  done.record(current_stream(kGpu));
  other.wait(done);
  {
    const StreamScope scope(other);
    CHECK(copies_of(one) == 1);  // -6
    CHECK(copies_of(one) == 0);  // -7
    other.synchronize();
  }
  CHECK(copies_of(one) == 1);  // -8
  CHECK(b.to_vector<float>() == std::vector<float>(300, -8.0f));
  CHECK(a.to_vector<float>() == std::vector<float>(300, -7.0f));
}

TEST_CASE("a step that finds its table can be recorded, and another one says that it cannot", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = Tensor::full({300}, 1.0, {.device = kGpu}), slow = weight.clone();
  const std::vector<kernels::SgdItem> sgd{{Out(weight), slow, {}}};
  const std::vector<kernels::LookaheadItem> lookahead{{Out(slow), Out(weight)}};
  kernels::TableCache of_sgd, of_lookahead;
  const auto step = [&] {
    kernels::sgd_step(sgd, {.lr = 1.0, .table = &of_sgd});
    kernels::lookahead_step(lookahead, 0.5, {}, {}, &of_lookahead);
  };
  const auto record = [&] {
    const cuda::RecordingScope scope;
    step();
  };
  CHECK_THAT(error_of(record), ContainsText("cannot be recorded; do it before the WorkGraph is made"));
  step();
  CHECK(error_of(record) == "no error");
  CHECK(slow.to_vector<float>() == std::vector<float>(300, 0.25f));  // half way to 0, twice
}
