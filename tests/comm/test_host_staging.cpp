// Device tensors through a backend that knows host memory only.
#include "tandem/autograd/variable.h"
#include "tandem/comm/ddp/gradient_bucket.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/comm/process_group.h"
#include "tests/comm/collective_checks.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cstring>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// What the backend was asked for, in order, and what it does to f32 and f64 elements: it doubles them.
struct Log {
  std::vector<std::string> calls;
};

template <typename T>
void double_values(const Collective& collective) {
  for (std::int64_t i = 0; i < collective.count(); ++i) static_cast<T*>(collective.output)[i] *= T(2);
}

class DoublingWork final : public Work {
 public:
  DoublingWork(Collective collective, int polls) : collective_(std::move(collective)), polls_(polls) {}
  bool poll() override {
    if (polls_ > 0 && --polls_ == 0) finish();
    return polls_ == 0;
  }
  void wait() override {
    if (polls_ > 0) finish();
    polls_ = 0;
  }

 private:
  void finish() {
    if (collective_.dtype == DType::f64) return double_values<double>(collective_);
    double_values<float>(collective_);
  }
  Collective collective_;
  int polls_;
};

class DoublingBackend final : public Backend {
 public:
  explicit DoublingBackend(Log& log) : log_(log) {}
  std::string_view name() const override { return "doubling"; }
  Place place() const override { return {.rank = 0, .size = 2}; }
  std::unique_ptr<Work> start(const Collective& collective) override {
    const std::int64_t bytes = collective.bytes(collective.count());
    switch (collective.kind) {
      case CollectiveKind::all_reduce:
        log_.calls.push_back("reduce " + std::to_string(collective.count()));
        return std::make_unique<DoublingWork>(collective, 3);
      case CollectiveKind::broadcast:
        log_.calls.push_back("broadcast " + std::to_string(bytes));
        if (collective.peer != 0) std::memset(collective.output, 0, static_cast<std::size_t>(bytes));
        break;
      case CollectiveKind::all_gather:
        log_.calls.push_back("gather " + std::to_string(bytes));
        for (int rank = 0; rank < 2; ++rank)
          std::memcpy(static_cast<std::byte*>(collective.output) + rank * bytes, collective.input,
                      static_cast<std::size_t>(bytes));
        break;
      default:
        log_.calls.emplace_back(name_of(collective.kind));
    }
    return done_work();
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    log_.calls.push_back("gather bytes");
    return {2, std::string(mine)};
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { return nullptr; }

 private:
  Log& log_;
};

std::vector<double> filled(std::int64_t count, double value) {
  return std::vector<double>(static_cast<std::size_t>(count), value);
}

}  // namespace

TEST_CASE("every collective of one rank takes device tensors, of every dtype and of any place", "[cuda]") {
  if (!has_gpu()) return;
  ProcessGroup group(make_self_backend());
  for (const std::int64_t count : {0, 1, 101}) CHECK(fault_of_all_collectives(group, count, kGpu) == "");
  CHECK(fault_of_uneven_rows(group, 7, kGpu) == "");
  CHECK(fault_of_odd_places(group, 101, kGpu) == "");
}

TEST_CASE("collectives of device tensors leave the result on the device, and keep its strides", "[cuda]") {
  if (!has_gpu()) return;
  Log log;
  ProcessGroup group(std::make_unique<DoublingBackend>(log));
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    INFO(name_of(dtype));
    const Tensor tensor =
        Tensor::full({2, 3, 4, 5}, 1.5, {.dtype = dtype, .layout = Layout::channels_last, .device = kGpu});
    const std::uint64_t version = tensor.storage()->version();
    group.all_reduce(Out(tensor));
    CHECK(tensor.to_vector<double>() == filled(120, 3.0));
    CHECK(tensor.storage()->version() > version);
    group.all_reduce_async(Out(tensor))->wait();
    CHECK(tensor.to_vector<double>() == filled(120, 6.0));
    const Tensor all = group.all_gather(tensor);
    CHECK(all.device() == kGpu);
    CHECK(all.shape() == Shape{2, 2, 3, 4, 5});
    CHECK(all.to_vector<double>() == filled(240, 6.0));
    group.broadcast(Out(tensor), 0);
    CHECK(tensor.to_vector<double>() == filled(120, 6.0));
    group.broadcast(Out(tensor), 1);
    CHECK(tensor.to_vector<double>() == filled(120, 0.0));
  }
  const Tensor slice = Tensor::zeros({4, 6}, {.device = kGpu}).narrow(1, 0, 3);
  CHECK_THAT(error_of([&] { group.all_reduce(Out(slice)); }), ContainsText("contiguous()"));
}

TEST_CASE("reductions of device tensors start in the order they were asked for, and before what comes next", "[cuda]") {
  if (!has_gpu()) return;
  Log log;
  ProcessGroup group(std::make_unique<DoublingBackend>(log));
  const auto device_tensor = [](std::int64_t count, double value) {
    return Tensor::full({count}, value, {.device = kGpu});
  };
  const Tensor a = device_tensor(11, 1.0), b = device_tensor(12, 2.0), c = device_tensor(13, 3.0);
  const auto work_a = group.all_reduce_async(Out(a)), work_b = group.all_reduce_async(Out(b)),
             work_c = group.all_reduce_async(Out(c));
  work_c->wait();  // all ranks must have started a and b by then
  CHECK(log.calls == std::vector<std::string>{"reduce 11", "reduce 12", "reduce 13"});
  CHECK(c.to_vector<double>() == filled(13, 6.0));
  while (!work_a->poll()) {
  }
  work_b->wait();
  work_b->wait();
  CHECK(a.to_vector<double>() == filled(11, 2.0));
  CHECK(b.to_vector<double>() == filled(12, 4.0));

  const std::vector<std::function<void()>> collectives{
      [&] { group.barrier(); },
      [&] { group.all_gather_bytes("x"); },
      [&] { group.broadcast(Out(Tensor::zeros({1}))); },
      [&] { group.all_gather(Tensor::zeros({1})); },
      [&] { group.all_reduce(Out(Tensor::zeros({1}))); },
      [&] { group.all_reduce(Out(device_tensor(1, 0.0))); },
      [&] { group.all_reduce_async(Out(Tensor::zeros({1})))->wait(); },
  };
  for (const auto& collective : collectives) {
    log.calls.clear();
    const auto work = group.all_reduce_async(Out(a));
    collective();
    REQUIRE(log.calls.size() == 2);
    CHECK(log.calls.front() == "reduce 11");
    work->wait();
  }
}

TEST_CASE("a reduction sees the device's work before it, and the device's work after it sees the result", "[cuda]") {
  if (!has_gpu()) return;
  Log log;
  ProcessGroup group(std::make_unique<DoublingBackend>(log));
  constexpr std::int64_t kCount = 1 << 17;
  const Tensor tensor = Tensor::zeros({kCount}, {.device = kGpu});
  for (int round = 1; round <= 4; ++round) {
    for (int i = 0; i < 10; ++i) tensor.fill(-i);
    tensor.fill(round);
    const auto work = group.all_reduce_async(Out(tensor));
    work->wait();
    const Tensor copy = tensor.clone();
    CHECK(copy.narrow(0, kCount - 1, 1).item() == 2.0 * round);
  }
}

TEST_CASE("a reduction that is dropped is not waited for", "[cuda]") {
  if (!has_gpu()) return;
  Log log;
  ProcessGroup group(std::make_unique<DoublingBackend>(log));
  group.all_reduce_async(Out(Tensor::zeros({5}, {.device = kGpu}))).reset();
  group.barrier();
  CHECK(log.calls == std::vector<std::string>{"barrier"});
}

TEST_CASE("a bucket of device gradients averages and tells which exist", "[cuda]") {
  if (!has_gpu()) return;
  ProcessGroup group(make_self_backend());
  const Tensor a = Tensor::zeros({1, 2, 2, 2}, {.layout = Layout::channels_last, .device = kGpu});
  const Tensor b = Tensor::zeros({3}, {.device = kGpu}), c = Tensor::zeros({2}, {.device = kGpu});
  GradientBucket bucket({a, b, c});
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
  for (int step = 0; step < 2; ++step) {
    autograd::set_grad(a, Tensor::from(values, {1, 2, 2, 2}, Layout::row_major, kGpu));
    autograd::set_grad(c, Tensor::full({2}, 9.0, {.device = kGpu}));
    for (std::size_t i = 0; i < 3; ++i) bucket.put(i, autograd::grad(bucket.parameter(i)), i == 2 ? 0.0 : 1.0);
    bucket.launch(group);
    bucket.finish();
    CHECK(autograd::grad(a).strides() == a.strides());
    CHECK(autograd::grad(a).device() == kGpu);
    CHECK(autograd::grad(a).to_vector<float>() == values);
    CHECK_FALSE(autograd::grad(b).defined());
    CHECK(autograd::grad(c).to_vector<float>() == std::vector<float>{0, 0});
  }
}

TEST_CASE("hashes do not depend on the device", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor tensor = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(hash_tensor(tensor.to(kGpu)) == hash_tensor(tensor));
  CHECK(hash_tensor(tensor.to(kGpu).transpose(0, 1)) == hash_tensor(tensor.transpose(0, 1)));
}
