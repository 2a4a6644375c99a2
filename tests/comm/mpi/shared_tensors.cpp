// Tensors in memory that ranks share, between processes.
#include "tandem/autograd/variable.h"
#include "tandem/comm/ddp/gradient_bucket.h"
#include "tandem/core/cpu_allocator.h"
#include "tandem/core/timeline.h"
#include "tests/comm/collective_checks.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/skip.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

std::int64_t wrong_sums(const Tensor& tensor, int ranks, std::int64_t first = 0) {
  std::int64_t wrong = 0, index = first;
  for (const double value : tensor.to_vector<double>()) {
    double sum = 0.0;
    for (int rank = 0; rank < ranks; ++rank) sum += whole_number(rank, index);
    wrong += value != sum;
    ++index;
  }
  return wrong;
}

/// What the rank did in the all_reduces and reduces of `body`, one after another.
template <typename Body>
std::vector<std::string> actions_of(Body&& body) {
  start_timeline();
  body();
  std::vector<std::string> actions;
  for (const CommunicationEvent& event : stop_timeline().communication)
    for (const CommunicationStep& step : event.steps) actions.emplace_back(step.action);
  return actions;
}

const std::vector<std::string> kWhereDataAre{"offer", "wait for all", "reduce", "wait for all"};

/// Why ranks cannot map each other's blocks, or "".
std::string mapping_obstacle() {
  make_process_group("native", environment());
  return environment().size() == 1 ? "one rank alone" : cpu_allocator().share_blocks();
}

/// In memory that no other rank can map.
Tensor hidden_tensor(std::int64_t count) {
  const auto memory = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count), 0.0f);
  return Tensor::on(std::make_shared<Storage>(memory->data(), count * 4, MemoryTag::data, memory), {count}, DType::f32);
}

}  // namespace

TEST_CASE("private tensors of 32 KiB and more are combined where they are") {
  if (!runs_unless(mapping_obstacle())) return;
  const auto group = make_process_group("native", environment());
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    for (const std::int64_t count : {16'384, 70'001, 1 << 20}) {
      for (const std::int64_t shift : {0, 1}) {
        const Tensor values = whole_numbers(group->rank(), {count}, dtype);
        const Tensor whole = Tensor::full({count + 2}, -5.0, {.dtype = dtype}), mine = whole.narrow(0, shift, count);
        Out(mine).copy_from(values);
        CHECK(actions_of([&] { group->all_reduce(Out(mine)); }) == kWhereDataAre);
        CHECK(wrong_sums(mine, group->size()) == 0);
        CHECK(whole.narrow(0, shift == 0 ? count : 0, 1).item() == -5.0);
        CHECK(whole.narrow(0, count + 1, 1).item() == -5.0);
        Out(mine).fill(0.0);
        CHECK(actions_of([&] { group->all_reduce(values, Out(mine)); }) == kWhereDataAre);
        CHECK(wrong_sums(mine, group->size()) == 0);
        CHECK(values.to_vector<double>() == whole_numbers(group->rank(), {count}, dtype).to_vector<double>());
        for (int root = 0; root < group->size(); ++root) {
          Out(mine).copy_from(values);
          CHECK(actions_of([&] { group->reduce(Out(mine), root); }) == kWhereDataAre);
          if (group->rank() == root) CHECK(wrong_sums(mine, group->size()) == 0);
          if (group->rank() != root) CHECK(mine.to_vector<double>() == values.to_vector<double>());
        }
      }
    }
  }
}

TEST_CASE("private tensors beside ones that others cannot map are summed exactly") {
  if (!runs_unless(mapping_obstacle())) return;
  const auto group = make_process_group("native", environment());
  for (const std::int64_t count : {20'000, 300'001}) {
    const Tensor hidden = hidden_tensor(count), mine = Tensor::zeros({count}), other = Tensor::zeros({count});
    const Tensor values = whole_numbers(group->rank(), {count}, DType::f32);
    const Tensor shared = group->shared_zeros({count}), &mixed = group->rank() == 0 ? hidden : mine;
    for (const Tensor* tensor : {&hidden, &mixed, &mine, &shared}) {
      Out(*tensor).copy_from(values);
      group->all_reduce(Out(*tensor));
      CHECK(wrong_sums(*tensor, group->size()) == 0);
      Out(*tensor).copy_from(values);
      group->all_reduce(*tensor, Out(other));
      CHECK(wrong_sums(other, group->size()) == 0);
      Out(other).copy_from(values);
      group->all_reduce(other, Out(*tensor));
      CHECK(wrong_sums(*tensor, group->size()) == 0);
    }
    const std::vector<Tensor> all = group->all_gather_rows(mixed);
    CHECK(all.size() == static_cast<std::size_t>(group->size()));
    for (const Tensor& one : all) CHECK(wrong_sums(one, group->size()) == 0);
  }
}

TEST_CASE("what a rank that gives its group up has under way becomes no other tensor, as others write to it") {
  if (!runs_unless(mapping_obstacle())) return;
  constexpr std::int64_t kCount = 1 << 20;
  const auto others = make_process_group("native", environment());
  auto group = make_process_group("native", environment());
  if (group->rank() == 0) {
    auto work = group->all_reduce_async(Out(Tensor::full({kCount}, 1.0)));
    work.reset();
    group.reset();
    const Tensor next = Tensor::full({kCount}, 7.0);
    others->barrier();
    others->barrier();  // the others have added up now
    const std::vector<float> values = next.to_vector<float>();
    CHECK(std::ranges::count(values, 7.0f) == kCount);
  } else {
    others->barrier();
    const auto work = group->all_reduce_async(Out(Tensor::full({kCount}, 1.0)));
    // Until those that are left have added up, on a busy machine as well.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end) {
      work->poll();
      std::this_thread::yield();
    }
    others->barrier();
    others->barrier();
  }
  if (others->rank() == 0) others->barrier();
}

TEST_CASE("shared tensors are reduced like others, in every dtype and group") {
  const auto group = each_group();
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32}) {
    for (const std::int64_t count : {1, 1025, 70001}) {
      const Tensor whole = group->shared_zeros({count + 3}, dtype);
      REQUIRE(whole.narrow(0, count, 3).to_vector<double>() == std::vector<double>(3, 0.0));
      const Tensor tensor = whole.narrow(0, 1, count);
      for (int round = 0; round < 3; ++round) {
        Out(tensor).copy_from(whole_numbers(group->rank(), {count}, dtype));
        group->all_reduce(Out(tensor));
        CHECK(wrong_sums(tensor, group->size()) == 0);
      }
    }
  }
}

TEST_CASE("shared tensors outlive their group, and new ones take the place of dropped ones") {
  Tensor kept;
  {
    const auto group = make_process_group("native", environment());
    for (int round = 0; round < 5; ++round) {
      const Tensor dropped = group->shared_zeros({5000});
      if (group->rank() % 2 == 0) kept = dropped;  // ranks drop them at different times
      Out(dropped).copy_from(whole_numbers(group->rank(), {5000}, DType::f32));
      group->all_reduce(Out(dropped));
      CHECK(wrong_sums(dropped, group->size()) == 0);
    }
  }
  if (kept.defined()) CHECK(wrong_sums(kept, environment().size()) == 0);
}

TEST_CASE("ranks of one host share memory, and buckets of gradients are in it") {
  const auto group = make_process_group("native", environment());
  CHECK(group->notice() == "");
  const Tensor parameter = autograd::set_requires_grad(Tensor::zeros({30000}));
  GradientBucket bucket({parameter}, HalfExchange::as_half, group.get());
  const Tensor view = bucket.put(0, whole_numbers(group->rank(), {30000}, DType::f32), 1.0);
  const bool is_page_aligned = reinterpret_cast<std::uintptr_t>(view.raw_data()) % 4096 == 0;
  if (group->size() > 1) CHECK(is_page_aligned);
  const auto sent = group->all_reduce_bytes_sent();
  bucket.launch(*group);
  bucket.finish();
  CHECK(group->all_reduce_bytes_sent() == sent);  // no message
  for (std::int64_t i = 0; i < 30000; i += 997) {
    double sum = 0.0;
    for (int rank = 0; rank < group->size(); ++rank) sum += whole_number(rank, i);
    CHECK(autograd::grad(parameter).narrow(0, i, 1).item() ==
          static_cast<double>(static_cast<float>(sum) / static_cast<float>(group->size())));
  }
}

TEST_CASE("large pieces are read where they are, as far as the system lets ranks, and others go through the window") {
  if (!runs_unless(reading_obstacle())) return;
  // 4 MiB of each rank and more are read by default.
  for (const std::int64_t count : {(1 << 20) / environment().size(), 1 << 20, (1 << 20) + 1}) {
    for (const SingleCopy wish : {SingleCopy::automatic, SingleCopy::on, SingleCopy::off}) {
      const auto group = make_native_group({.name = "native", .single_copy = wish});
      CHECK(fault_of_moves(*group, count) == "");
      const Tensor part = group->reduce_scatter(whole_numbers(group->rank(), {group->size(), count}, DType::f32));
      CHECK(wrong_sums(part, group->size(), group->rank() * count) == 0);
    }
  }
}

TEST_CASE("ranks that wish differently for single copies are told, and so are those that have them by no means") {
  if (environment().size() == 1) return;
  const bool last = environment().rank() == environment().size() - 1;
  CHECK_THAT(agreed_error_of([&] {
               make_native_group({.name = "native", .single_copy = last ? SingleCopy::off : SingleCopy::on});
             }),
             ContainsText(fmt::format("TANDEM_SINGLE_COPY is on on rank 0 and off on rank {}; give all ranks the same",
                                      environment().size() - 1)));
  CHECK(agreed_error_of([&] {
          make_native_group({.all_reduce = "ring", .shared_memory = false, .single_copy = SingleCopy::on});
        }) == "TANDEM_SINGLE_COPY=on: ranks exchange messages by algorithm ring");
}
