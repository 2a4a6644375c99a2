// Collectives of tensors on GPUs of one host, through memory that these share, against plain loops: equal bits.
#include "tandem/autograd/record.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/ddp/gradient_bucket.h"
#include "tests/comm/collective_checks.h"
#include "tests/comm/mpi/device_groups.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

constexpr DType kReducible[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::average, ReduceOp::min, ReduceOp::max};

/// A rank's elements: fractions of many magnitudes, so that another order of the ranks has other bits, and NaN now and
/// then; of whole numbers large ones, so that sums wrap around.
template <typename T>
T element(int rank, std::int64_t index) {
  const auto number = static_cast<std::uint64_t>(rank * 1'000'003 + index * 7919 + 12345) * 0x9e3779b97f4a7c15ULL;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(number >> (sizeof(T) == 1 ? 5 : 1));
  } else {
    if (number % 97 == 0) return T(std::nanf(""));
    const double fraction = static_cast<double>(number >> 11) * 0x1p-53 - 0.5;
    return T(static_cast<compute_t<T>>(std::ldexp(fraction, static_cast<int>(number % 9) - 3)));
  }
}

template <typename T>
std::vector<T> elements(int rank, std::int64_t begin, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(element<T>(rank, begin + i));
  return values;
}

template <typename T>
compute_t<T> combined(compute_t<T> a, compute_t<T> b, ReduceOp op) {
  using C = compute_t<T>;
  if (op == ReduceOp::min) return b < a || b != b ? b : a;
  if (op == ReduceOp::max) return a < b || b != b ? b : a;
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<C>(op == ReduceOp::product ? static_cast<U>(a) * static_cast<U>(b)
                                                  : static_cast<U>(a) + static_cast<U>(b));
  } else {
    return op == ReduceOp::product ? a * b : a + b;
  }
}

/// Over all ranks in their order, rounded once.
template <typename T>
std::vector<T> reduced_elements(int ranks, std::int64_t begin, std::int64_t count, ReduceOp op) {
  std::vector<T> values;
  for (std::int64_t i = begin; i < begin + count; ++i) {
    auto total = static_cast<compute_t<T>>(element<T>(0, i));
    for (int rank = 1; rank < ranks; ++rank)
      total = combined<T>(total, static_cast<compute_t<T>>(element<T>(rank, i)), op);
    if (op == ReduceOp::average) total = total / static_cast<compute_t<T>>(ranks);
    values.push_back(T(total));
  }
  return values;
}

/// The elements as bytes; NaN is NaN.
template <typename T>
std::vector<T> on_host(const Tensor& tensor) {
  const Tensor copy = tensor.contiguous().to(Device{});
  const T* const data = copy.data<T>();
  return {data, data + copy.numel()};
}

template <typename T>
bool are_same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto left = static_cast<compute_t<T>>(a[i]), right = static_cast<compute_t<T>>(b[i]);
    const bool are_nan = left != left && right != right;
    if (!are_nan && std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

/// On the GPU, from element `skipped` of their memory on, so that they begin at any address.
template <typename T>
Tensor on_gpu(const std::vector<T>& values, std::int64_t skipped = 0) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor host = Tensor::empty({count + skipped}, {.dtype = dtype_of<T>});
  std::fill_n(Out(host).data<T>(), count + skipped, T(1));
  std::copy(values.begin(), values.end(), Out(host).data<T>() + skipped);
  return host.to(kGpu).narrow(0, skipped, count);
}

/// 0, 1, the ranks and one less and more, primes, and around segments of so many bytes.
std::vector<std::int64_t> sizes(int ranks, std::int64_t segment_bytes, std::int64_t element_bytes) {
  const std::int64_t segment = segment_bytes / element_bytes;
  return {0, 1, ranks - 1, ranks, ranks + 1, 31, 127, segment - 1, segment, segment + 1, 3 * segment + 101};
}

constexpr std::int64_t kSegment = 512;

template <typename T>
void check_all_reduce(ProcessGroup& group) {
  const int ranks = group.size();
  for (const ReduceOp op : kOps) {
    if (op == ReduceOp::average && std::is_integral_v<T>) continue;
    for (const std::int64_t count : sizes(ranks, kSegment, sizeof(T))) {
      CAPTURE(name_of(dtype_of<T>), name_of(op), count);
      const std::vector<T> mine = elements<T>(group.rank(), 0, count);
      const std::vector<T> expected = reduced_elements<T>(ranks, 0, count, op);
      const Tensor in_place = on_gpu(mine, count % 3);
      group.all_reduce(Out(in_place), op);
      CHECK(are_same(on_host<T>(in_place), expected));
      const Tensor input = on_gpu(mine), output = on_gpu(mine, 1);
      group.all_reduce_async(input, Out(output), op)->wait();
      CHECK(are_same(on_host<T>(output), expected));
      CHECK(are_same(on_host<T>(input), mine));
    }
  }
}

template <typename T>
void check_other_reductions(ProcessGroup& group) {
  const int ranks = group.size();
  const ReduceOp op = std::is_integral_v<T> ? ReduceOp::sum : ReduceOp::average;
  for (const std::int64_t count : sizes(ranks, kSegment, sizeof(T))) {
    CAPTURE(name_of(dtype_of<T>), count);
    const int root = ranks - 1;
    const std::vector<T> mine = elements<T>(group.rank(), 0, count);
    const Tensor tensor = on_gpu(mine, 1);
    group.reduce(Out(tensor), root, op);
    CHECK(are_same(on_host<T>(tensor), group.rank() == root ? reduced_elements<T>(ranks, 0, count, op) : mine));
    if (count == 0) continue;
    const Tensor all = on_gpu(elements<T>(group.rank(), 0, count * ranks)).view({ranks, count});
    CHECK(are_same(on_host<T>(group.reduce_scatter(all, op)),
                   reduced_elements<T>(ranks, group.rank() * count, count, op)));
  }
}

template <typename T>
void check_moves(ProcessGroup& group) {
  const int ranks = group.size();
  for (const std::int64_t count : sizes(ranks, kSegment, sizeof(T))) {
    CAPTURE(name_of(dtype_of<T>), count);
    for (int root = 0; root < ranks; ++root) {
      const Tensor tensor = on_gpu(elements<T>(group.rank(), 0, count), count % 2);
      group.broadcast(Out(tensor), root);
      CHECK(are_same(on_host<T>(tensor), elements<T>(root, 0, count)));
    }
    const Tensor all = group.all_gather(on_gpu(elements<T>(group.rank(), 0, count), 1));
    for (int rank = 0; rank < ranks; ++rank)
      CHECK(are_same(on_host<T>(all.select(0, rank)), elements<T>(rank, 0, count)));
  }
  // Of different lengths, none among them.
  const std::vector<T> mine = elements<T>(group.rank(), 0, group.rank() * 301);
  const std::vector<Tensor> rows = group.all_gather_rows(on_gpu(mine));
  for (int rank = 0; rank < ranks; ++rank)
    CHECK(are_same(on_host<T>(rows[static_cast<std::size_t>(rank)]), elements<T>(rank, 0, rank * 301)));
}

template <typename Check>
void for_each_dtype(Check&& check) {
  for (const DType dtype : kReducible)
    dispatch_all(dtype, "for_each_dtype", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<T, std::uint8_t>) check(TypeTag<T>{});
    });
}

/// By every rank, and by parts, which one more than two ranks do.
std::unique_ptr<ProcessGroup> each_device_group() {
  const std::int64_t parts_from_bytes = GENERATE(std::int64_t{1} << 40, std::int64_t{0});
  return make_device_group({.bytes = kSegment, .parts_from_bytes = parts_from_bytes});
}

}  // namespace

TEST_CASE("GPUs that share memory reduce all dtypes and sizes in the order of the ranks", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = each_device_group();
  for_each_dtype([&](auto tag) { check_all_reduce<typename decltype(tag)::type>(*group); });
}

TEST_CASE("GPUs that share memory reduce to one rank, and a part to each", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  for_each_dtype([&](auto tag) { check_other_reductions<typename decltype(tag)::type>(*group); });
}

TEST_CASE("GPUs that share memory broadcast and gather", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  check_moves<std::uint8_t>(*group);
  for_each_dtype([&](auto tag) { check_moves<typename decltype(tag)::type>(*group); });
}

TEST_CASE("every collective between GPUs that share memory, those among them that go by host memory",
          "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  for (const std::int64_t count : {0, 1, 101}) CHECK(fault_of_all_collectives(*group, count, kGpu) == "");
  CHECK(fault_of_uneven_rows(*group, 7, kGpu) == "");
  CHECK(fault_of_odd_places(*group, 101, kGpu) == "");
}

TEST_CASE("several operations between GPUs are under way at once, beside those of the CPU", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  if (GENERATE(false, true)) group->set_progress("thread");
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; i < 6; ++i) {
    tensors.push_back(on_gpu(elements<float>(group->rank(), i, 1000)));
    works.push_back(group->all_reduce_async(Out(tensors.back())));
    const Tensor on_cpu = Tensor::full({100}, 1.0);
    works.push_back(group->all_reduce_async(Out(on_cpu)));
  }
  std::reverse(works.begin(), works.end());
  for (const auto& work : works) work->wait();
  for (int i = 0; i < 6; ++i)
    CHECK(are_same(on_host<float>(tensors[static_cast<std::size_t>(i)]),
                   reduced_elements<float>(group->size(), i, 1000, ReduceOp::sum)));
  // What no device window does goes by host memory.
  const Tensor all =
      group->all_to_all(on_gpu(elements<float>(group->rank(), 0, group->size())).view({group->size(), 1}));
  CHECK(all.device() == kGpu);
}

TEST_CASE("a work between GPUs is joined by streams, and the host waits for no GPU", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  if (GENERATE(false, true)) group->set_progress("thread");
  Stream stream(kGpu);
  for (int step = 0; step < 3; ++step) {
    const Tensor first = on_gpu(elements<float>(group->rank(), step, 5000)),
                 second = on_gpu(elements<float>(group->rank(), 9, 10));
    const auto work = group->all_reduce_async(Out(first)), next = group->all_reduce_async(Out(second));
    const Tensor copy = Tensor::empty({5000}, {.device = kGpu});
    const bool is_joined = work->join(stream), is_next_joined = next->join(stream);
    if (group->progress() != "thread")
      CHECK((is_joined && is_next_joined));  // where the thread may have ended it before
    if (!is_joined) work->wait();
    if (!is_next_joined) next->wait();
    {
      const StreamScope scope(stream);
      copy.copy_from_async(first);
    }
    stream.synchronize();
    CHECK(are_same(on_host<float>(copy), reduced_elements<float>(group->size(), step, 5000, ReduceOp::sum)));
    next->wait();
    work->wait();
  }
  const auto on_cpu = group->all_reduce_async(Out(Tensor::full({5}, 1.0)));
  CHECK_FALSE(on_cpu->join(stream));
  on_cpu->wait();
}

TEST_CASE("a bucket of gradients between GPUs is finished without a wait of the host", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  const std::vector<Tensor> parameters{autograd::set_requires_grad(Tensor::zeros({700}, {.device = kGpu})),
                                       autograd::set_requires_grad(Tensor::zeros({3}, {.device = kGpu}))};
  GradientBucket bucket(parameters, HalfExchange::in_f32, nullptr);
  for (int step = 0; step < 3; ++step) {
    std::vector<std::unique_ptr<Work>> going_on;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      bucket.put(i, Tensor::full(parameters[i].shape(), group->rank() + step, {.device = kGpu}), 1.0);
    bucket.launch(*group, 0);
    going_on.push_back(bucket.finish());
    CHECK(going_on.front() != nullptr);  // the host has not waited for it
    const double mean = step + (group->size() - 1) / 2.0;
    CHECK(autograd::grad(parameters[0]).to_vector<double>() == std::vector<double>(700, mean));
    going_on.front()->wait();
  }
}

TEST_CASE("an operation that was dropped goes on, and its group may go before it is done", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  const Tensor tensor = on_gpu(elements<float>(group->rank(), 0, 5000));
  group->all_reduce_async(Out(tensor)).reset();
  const Tensor next = on_gpu(elements<float>(group->rank(), 0, 10));
  group->all_reduce(Out(next));
  CHECK(are_same(on_host<float>(tensor), reduced_elements<float>(group->size(), 0, 5000, ReduceOp::sum)));
}

TEST_CASE("GPUs of some ranks share memory as well", "[cuda][device window]") {
  if (!has_gpu() || environment().size() < 4) return;
  const auto group = make_device_group({.bytes = kSegment});
  const auto part = group->split(group->rank() % 2);
  const Tensor tensor = on_gpu(elements<float>(part->rank(), 0, 777));
  part->all_reduce(Out(tensor));
  CHECK(are_same(on_host<float>(tensor), reduced_elements<float>(part->size(), 0, 777, ReduceOp::sum)));
}

TEST_CASE("ranks that call different collectives of GPUs are told, and go on", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  const Tensor tensor = Tensor::zeros({group->rank() == 1 ? 300 : 200}, {.device = kGpu});
  std::string text;
  try {
    group->all_reduce(Out(tensor));
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_THAT(text, ContainsText("all_reduce sum f32[200] on rank 0 meets all_reduce sum f32[300] on rank 1"));
  const Tensor next = on_gpu(elements<float>(group->rank(), 0, 10));
  group->all_reduce(Out(next));
  CHECK(are_same(on_host<float>(next), reduced_elements<float>(group->size(), 0, 10, ReduceOp::sum)));
}

TEST_CASE("a tensor of the CPU among those of GPUs is an error on all ranks, and the next one goes on",
          "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  if (GENERATE(false, true)) group->set_progress("thread");
  for (int round = 0; round < 3; ++round) {
    const Tensor mixed = Tensor::zeros({200}, {.device = group->rank() == 1 ? Device{} : kGpu});
    std::string text;
    try {
      group->all_reduce(Out(mixed));
    } catch (const Error& error) {
      text = error.what();
    }
    CHECK_THAT(text,
               ContainsText("all_reduce sum f32[200] between GPUs on rank 0 meets all_reduce sum f32[200] by host "
                            "memory on rank 1"));
    const Tensor next = on_gpu(elements<float>(group->rank(), 0, 1000)), on_cpu = Tensor::full({30}, 1.0);
    group->all_reduce(Out(next));
    group->all_reduce(Out(on_cpu));
    CHECK(are_same(on_host<float>(next), reduced_elements<float>(group->size(), 0, 1000, ReduceOp::sum)));
    CHECK(on_cpu.to_vector<float>() == std::vector<float>(30, static_cast<float>(group->size())));
  }
}

TEST_CASE("a rank may start many works of GPUs before the others come", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group({.bytes = kSegment});
  constexpr int kMany = 150;
  if (group->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; i < kMany; ++i) {
    const bool is_elsewhere = i == 0 && group->rank() == 1;  // which must not be missed
    tensors.push_back(is_elsewhere ? Tensor::zeros({20}) : on_gpu(elements<float>(group->rank(), i, 20)));
    works.push_back(group->all_reduce_async(Out(tensors.back())));
  }
  CHECK_THROWS_AS(works.front()->wait(), Error);
  for (int i = 1; i < kMany; ++i) {
    works[static_cast<std::size_t>(i)]->wait();
    CHECK(are_same(on_host<float>(tensors[static_cast<std::size_t>(i)]),
                   reduced_elements<float>(group->size(), i, 20, ReduceOp::sum)));
  }
}

TEST_CASE("several groups between GPUs have works under way at once, in different orders", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto first = make_device_group({.bytes = kSegment}), second = make_device_group({.bytes = 2 * kSegment});
  const auto part = first->split(first->rank() % 2);
  for (ProcessGroup* const group : {first.get(), second.get(), part.get()})
    group->set_progress("thread");  // waits for one group do not move on the others
  const bool is_even = first->rank() % 2 == 0;
  const Tensor a = on_gpu(elements<float>(first->rank(), 0, 3000)), b = on_gpu(elements<float>(first->rank(), 7, 3000)),
               c = on_gpu(elements<float>(part->rank(), 9, 3000));
  const auto early = (is_even ? first : second)->all_reduce_async(Out(is_even ? a : b));
  const auto own = part->all_reduce_async(Out(c));
  const auto late = (is_even ? second : first)->all_reduce_async(Out(is_even ? b : a));
  late->wait();
  own->wait();
  early->wait();
  CHECK(are_same(on_host<float>(a), reduced_elements<float>(first->size(), 0, 3000, ReduceOp::sum)));
  CHECK(are_same(on_host<float>(b), reduced_elements<float>(first->size(), 7, 3000, ReduceOp::sum)));
  CHECK(are_same(on_host<float>(c), reduced_elements<float>(part->size(), 9, 3000, ReduceOp::sum)));
}

TEST_CASE("GPUs that share memory move tensors of several segments of the usual size",
          "[cuda][device window][.][large]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto group = make_device_group();
  const std::int64_t count = (std::int64_t{17} << 20) / 4 + 1001;  // between two segments and three
  const std::vector<float> mine = elements<float>(group->rank(), 0, count);
  const Tensor sum = on_gpu(mine), moved = on_gpu(mine);
  group->all_reduce(Out(sum), ReduceOp::average);
  CHECK(are_same(on_host<float>(sum), reduced_elements<float>(group->size(), 0, count, ReduceOp::average)));
  group->broadcast(Out(moved), group->size() - 1);
  CHECK(are_same(on_host<float>(moved), elements<float>(group->size() - 1, 0, count)));
  const Tensor all = group->all_gather(on_gpu(mine));
  for (int rank = 0; rank < group->size(); ++rank)
    CHECK(are_same(on_host<float>(all.select(0, rank)), elements<float>(rank, 0, count)));
  const std::int64_t part = count / group->size();
  const Tensor parts = on_gpu(elements<float>(group->rank(), 0, part * group->size())).view({group->size(), part});
  CHECK(are_same(on_host<float>(group->reduce_scatter(parts)),
                 reduced_elements<float>(group->size(), group->rank() * part, part, ReduceOp::sum)));
}

TEST_CASE("sums of GPUs that share memory have the bits of those by host memory", "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto direct = make_device_group({.bytes = kSegment}), staged = make_native_group({});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    dispatch_floating(dtype, "test", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Tensor a = on_gpu(elements<T>(direct->rank(), 0, 3001)), b = a.clone();
      direct->all_reduce(Out(a), ReduceOp::average);
      staged->all_reduce(Out(b), ReduceOp::average);
      CHECK(are_same(on_host<T>(a), on_host<T>(b)));
    });
  }
}

TEST_CASE("replicas average their gradients by shared memory of GPUs to the bits of host memory",
          "[cuda][device window]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto gradients_by = [](ProcessGroup& group) {
    NamedTensors parameters{{"weight", Tensor::zeros({30, 20}, {.device = kGpu})},
                            {"half", Tensor::zeros({77}, {.dtype = DType::bf16, .device = kGpu})},
                            {"bias", Tensor::zeros({41}, {.device = kGpu})}};
    for (auto& [name, tensor] : parameters) tensor = autograd::set_requires_grad(tensor);
    DistributedDataParallel replicas(group, parameters, {}, {64, 2048});
    std::vector<Tensor> inputs, gradients;
    for (const auto& [name, tensor] : parameters) {
      inputs.push_back(tensor);
      dispatch_floating(tensor.dtype(), "test", [&, &like = tensor](auto tag) {
        using T = typename decltype(tag)::type;
        gradients.push_back(on_gpu(elements<T>(group.rank(), 0, like.numel())).view(like.shape()));
      });
    }
    autograd::backward(autograd::record("known_gradients", inputs, Tensor::zeros({}, {.device = kGpu}),
                                        [&](const autograd::BackwardContext&) { return gradients; }));
    replicas.finish();
    std::vector<std::vector<float>> result;
    for (const Tensor& input : inputs) result.push_back(autograd::grad(input).to_vector<float>());
    return result;
  };
  const auto direct = make_device_group({.bytes = kSegment}), staged = make_native_group({});
  const auto expected = gradients_by(*staged), found = gradients_by(*direct);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(are_same(found[i], expected[i]));
}
