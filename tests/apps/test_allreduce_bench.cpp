// The collectives of allreduce_bench, what it checks, and what it says of its predictions.
#include "apps/allreduce_bench/bench.h"
#include "apps/allreduce_bench/collectives.h"
#include "apps/allreduce_bench/predictions.h"
#include "apps/allreduce_bench/roofline.h"
#include "apps/allreduce_bench/values.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/core/out.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>

using namespace tandem;
using namespace tandem::allreduce_bench;
using comm::ReduceOp;

namespace {

const BenchCollective& collective(const std::string& name) { return *find_collectives({name}, 2).front(); }

/// Adds one to an element, or to an infinite one nothing.
void change(const Tensor& tensor, std::int64_t at) {
  dispatch_all(tensor.dtype(), "change", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T& value = Out(tensor).data<T>()[at];
    value = T(static_cast<float>(value) + 1.0f);
  });
}

/// Of parts of 100 elements, between threads.
std::int64_t wrong_of_bench(const BenchCollective& collective, int ranks, ReduceOp op) {
  const BenchOptions options{.collectives = {&collective},
                             .backends = {"threads"},
                             .replicas = ranks,
                             .min_bytes = ranks * 400,
                             .max_bytes = ranks * 400,
                             .rounds = 1,
                             .op = op};
  std::int64_t wrong = 0;
  comm::run_thread_ranks(ranks, [&](comm::ProcessGroup& threads) {
    const std::shared_ptr<comm::ProcessGroup> not_owned(&threads, [](comm::ProcessGroup*) {});
    run_bench({{"threads", not_owned}}, options, [&](const BenchRow& row) { wrong += row.wrong; });
  });
  return wrong;
}

}  // namespace

TEST_CASE("allreduce_bench: factors of the bus are those of nccl-tests") {
  // doc/PERFORMANCE.md, and GetBw of all_reduce.cu, broadcast.cu, ..., for 4 ranks.
  const std::map<std::string, double> factors{
      {"all_reduce", 1.5},       {"broadcast", 1.0},        {"reduce", 1.0},       {"all_gather", 0.75},
      {"all_gather_rows", 0.75}, {"gather", 0.75},          {"scatter", 0.75},     {"reduce_scatter", 0.75},
      {"all_to_all", 0.75},      {"all_to_all_rows", 0.75}, {"send_receive", 1.0}, {"barrier", 0.0}};
  CHECK(bench_collectives().size() == factors.size());
  for (const auto& [name, factor] : factors) {
    CAPTURE(name);
    CHECK(collective(name).bus_factor(4) == factor);
  }
  CHECK(collective("all_reduce").bus_factor(1) == 0.0);
}

TEST_CASE("allreduce_bench: bytes are those of all parts, each of one element at least, and no size comes twice") {
  using Sizes = std::vector<std::int64_t>;
  CHECK(part_sizes(collective("all_reduce"), 4, 64, 4, 3, 4) == Sizes{1, 4, 16});
  CHECK(part_sizes(collective("all_gather"), 4, 64, 4, 3, 4) == Sizes{1, 5});  // of 12, 12 and 60 bytes
  CHECK(part_sizes(collective("all_gather_rows"), 4, 64, 4, 3, 4) == Sizes{1, 5});
  CHECK(part_sizes(collective("all_to_all_rows"), 4, 64, 4, 3, 4) == Sizes{1, 5});
  CHECK(part_sizes(collective("send_receive"), 4, 4, 2, 2, 8) == Sizes{1});
  CHECK(part_sizes(collective("barrier"), 4, 1 << 20, 2, 2, 4) == Sizes{0});
}

TEST_CASE("allreduce_bench: what ranks must hold") {
  using Parts = std::vector<ExpectedPart>;
  const auto expected = [](const std::string& name, int rank) {
    return collective(name).expected({.rank = rank, .ranks = 3, .part = 10});
  };
  const Parts reduction{{ExpectedPart::kReduction, 0, 10}}, all{{0, 0, 10}, {1, 0, 10}, {2, 0, 10}};
  CHECK(expected("all_reduce", 2) == reduction);
  CHECK(expected("broadcast", 2) == Parts{{0, 0, 10}});
  CHECK(expected("reduce", 0) == reduction);
  CHECK(expected("reduce", 2) == Parts{{2, 0, 10}});
  CHECK(expected("all_gather", 1) == all);
  CHECK(expected("gather", 0) == all);
  CHECK(expected("gather", 1).empty());
  CHECK(expected("scatter", 2) == Parts{{0, 20, 10}});
  CHECK(expected("reduce_scatter", 2) == Parts{{ExpectedPart::kReduction, 20, 10}});
  CHECK(expected("all_to_all", 1) == Parts{{0, 10, 10}, {1, 10, 10}, {2, 10, 10}});
  CHECK(expected("all_gather_rows", 1) == Parts{{0, 0, 15}, {1, 0, 5}, {2, 0, 10}});
  CHECK(expected("all_to_all_rows", 1) == Parts{{0, 15, 5}, {1, 15, 5}, {2, 15, 5}});
  CHECK(expected("all_to_all_rows", 2) == Parts{{0, 20, 10}, {1, 20, 10}, {2, 20, 10}});
  CHECK(expected("send_receive", 0) == Parts{{2, 0, 10}});
  CHECK(expected("barrier", 0).empty());
}

TEST_CASE("allreduce_bench: ranks have unequal rows, in all as many as there are elements in parts") {
  for (const int ranks : {1, 2, 3, 8})
    for (const std::int64_t part : {1, 2, 7, 100}) {
      CAPTURE(ranks, part);
      std::int64_t rows = 0;
      for (int rank = 0; rank < ranks; ++rank) rows += rows_of({rank, ranks, part});
      CHECK(rows == ranks * part);
    }
  CHECK(rows_of({0, 2, 10}) == 15);
  CHECK(rows_of({1, 2, 10}) == 5);
  CHECK(rows_of({2, 3, 10}) == 10);
  CHECK(shape_of(Extent::rows, {1, 2, 10}) == Shape{5});
  CHECK(shape_of(Extent::all_rows, {1, 2, 10}) == Shape{20});
}

TEST_CASE("allreduce_bench: sums are exact in any order, and ranks and parts differ") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32);
  CAPTURE(name_of(dtype));
  const auto number_at = [&](int rank, std::int64_t index) { return value_at(rank, index, ReduceOp::sum, dtype); };
  for (std::int64_t index = 0; index < 10000; ++index) {
    float forwards = 0.0f, backwards = 0.0f;
    for (int rank = 0; rank < 64; ++rank) {
      forwards += static_cast<float>(number_at(rank, index));
      backwards += static_cast<float>(number_at(63 - rank, index));
    }
    REQUIRE(forwards == backwards);
    REQUIRE(forwards == reduced_at(64, index, ReduceOp::sum, dtype));
    for (int rank = 1; rank < 64; ++rank) REQUIRE(number_at(0, index) != number_at(rank, index));
    // Nor is a sum that of other ranks.
    REQUIRE(reduced_at(3, index, ReduceOp::sum, dtype) != 3.0 * number_at(1, index));
    REQUIRE(reduced_at(4, index, ReduceOp::sum, dtype) != 2.0 * (number_at(0, index) + number_at(3, index)));
  }
  for (const std::int64_t distance : {1, 2, 5, 64, 1024, 4096, 8192}) {
    std::int64_t equal = 0;
    for (std::int64_t index = 0; index < 1000; ++index) equal += number_at(0, index) == number_at(0, index + distance);
    CHECK(equal < 20);
  }
}

TEST_CASE("allreduce_bench: each dtype has the product of many ranks, of which each has factors") {
  constexpr double kMost = 32768.0;  // the largest power of two that f16 has
  for (const DType dtype : {DType::f16, DType::i32})
    for (const int ranks : {2, 165, 166, 400, 1024})
      for (std::int64_t index = 0; index < 11; ++index) {
        CAPTURE(name_of(dtype), ranks, index);
        const double product = reduced_at(ranks, index, ReduceOp::product, dtype);
        CHECK(std::abs(product) >= 1.0);
        CHECK(std::abs(product) <= kMost);
      }
  for (int rank = 0; rank < 1024; ++rank) {
    int factors = 0;
    for (std::int64_t index = 0; index < 11; ++index)
      factors += value_at(rank, index, ReduceOp::product, DType::i32) != 1.0;
    REQUIRE(factors == 1);
  }
}

TEST_CASE("allreduce_bench: what reduces nothing is checked by numbers that differ between ranks, whatever --op is") {
  constexpr int kRanks = 12;  // the first and the last have factors of products at the same places
  BenchCollective swaps = collective("all_gather");
  swaps.run = [](comm::ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
    const Tensor all = group.all_gather(buffers.input), first = all.narrow(0, 0, 1).clone();
    Out(all.narrow(0, 0, 1)).copy_from(all.narrow(0, kRanks - 1, 1));
    Out(all.narrow(0, kRanks - 1, 1)).copy_from(first);
    Out(buffers.output).copy_from(all);
  };
  CHECK(wrong_of_bench(swaps, kRanks, ReduceOp::product) > kRanks * 100);  // two parts of 100 elements on each rank
}

TEST_CASE("allreduce_bench: rows in another rank's tensor are wrong") {
  CHECK(wrong_of_bench(collective("all_gather_rows"), 3, ReduceOp::sum) == 0);
  BenchCollective shifts = collective("all_gather_rows");
  shifts.run = [](comm::ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
    buffers.made = group.all_gather_rows(buffers.input);
    const Tensor all = buffers.result(false);
    const std::int64_t first = buffers.made[0].numel() + 1;  // takes one of the second's
    buffers.made[0] = all.narrow(0, 0, first);
    buffers.made[1] = all.narrow(0, first, buffers.made[1].numel() - 1);
  };
  CHECK(wrong_of_bench(shifts, 3, ReduceOp::sum) == 3 * 2);
  shifts.run = [](comm::ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
    buffers.made = group.all_gather_rows(buffers.input);
    buffers.made = {buffers.result(false)};
  };
  CHECK(wrong_of_bench(shifts, 3, ReduceOp::sum) > 0);
}

TEST_CASE("allreduce_bench: each wrong element is counted") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64);
  const ReduceOp op = GENERATE(ReduceOp::sum, ReduceOp::product, ReduceOp::average, ReduceOp::min, ReduceOp::max);
  CAPTURE(name_of(dtype), name_of(op));
  constexpr std::int64_t kCount = 20000;  // more than the values' period
  const Tensor tensor = Tensor::zeros({kCount}, {.dtype = dtype});
  const std::vector<ExpectedPart> mine{{3, 0, kCount}};
  fill_input(tensor, 3, op);
  REQUIRE(count_wrong(tensor, mine, 4, op) == 0);
  CHECK(count_wrong(tensor, {}, 4, op) == 0);
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{8191}, kCount - 1}) change(tensor, at);
  CHECK(count_wrong(tensor, mine, 4, op) == 3);
  CHECK(count_wrong(std::vector{tensor, tensor.clone()}, mine, 4, op) == 6);
  CHECK(count_wrong(tensor, std::vector<ExpectedPart>{{2, 0, kCount}}, 4, op) > 1000);
  fill_with_wrong_values(tensor);
  CHECK(count_wrong(tensor, std::vector<ExpectedPart>{{ExpectedPart::kReduction, 0, kCount}}, 4, op) == kCount);
  CHECK_THROWS_AS(count_wrong(tensor, std::vector<ExpectedPart>{{3, 0, kCount - 1}}, 4, op), Error);
}

TEST_CASE("allreduce_bench: averages that no dtype has are rounded once") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::f16, DType::bf16);
  const int ranks = GENERATE(3, 5, 7);
  CAPTURE(name_of(dtype), ranks);
  const std::vector<ExpectedPart> average{{ExpectedPart::kReduction, 0, 5000}};
  std::vector<std::int64_t> wrong(static_cast<std::size_t>(ranks));
  comm::run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    const Tensor tensor = Tensor::empty({5000}, {.dtype = dtype});
    fill_input(tensor, group.rank(), ReduceOp::average);
    group.all_reduce(Out(tensor), ReduceOp::average);
    wrong[static_cast<std::size_t>(group.rank())] = count_wrong(tensor, average, ranks, ReduceOp::average);
  });
  CHECK(wrong == std::vector<std::int64_t>(wrong.size()));
}

TEST_CASE("allreduce_bench: collectives of threads give what is expected, and a planted fault is seen") {
  const int ranks = GENERATE(1, 2, 3);
  for (const BenchCollective* const each : find_collectives({"all"}, ranks)) {
    if (!each->has_bytes()) continue;
    CAPTURE(each->name, ranks);
    std::vector<std::int64_t> wrong(3), wrong_then(3), received(3);
    comm::run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      const PartPlace place{group.rank(), ranks, 5000};
      const std::vector<ExpectedPart> expected = each->expected(place);
      Buffers buffers{Tensor::zeros(shape_of(each->input, place)), Tensor()};
      if (each->output != Extent::none) buffers.output = Tensor::zeros(shape_of(each->output, place));
      for (const bool in_place : {false, true}) {
        if (!(in_place ? each->in_place : each->out_of_place)) continue;
        fill_input(buffers.input, place.rank, ReduceOp::sum);
        if (!in_place && buffers.output.defined()) fill_with_wrong_values(buffers.output);
        each->run(group, buffers, in_place, ReduceOp::sum);
        const Tensor result = buffers.result(in_place);
        wrong[me] += count_wrong(result, expected, ranks, ReduceOp::sum);
        change(result, result.numel() - 1);
        wrong_then[me] += count_wrong(result, expected, ranks, ReduceOp::sum);
        received[me] += !expected.empty();
      }
    });
    CHECK(wrong == std::vector<std::int64_t>(3));
    CHECK(wrong_then == received);
    CHECK(received.front() > 0);
  }
}

TEST_CASE("allreduce_bench: the roofline's ranks together do an all-reduce") {
  const int ranks = GENERATE(1, 2, 3);
  const std::int64_t count = GENERATE(1, 31, 5000);
  std::vector<std::int64_t> wrong(3);
  comm::run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    const Roofline roofline(group, count, DType::f32);
    const std::vector<ExpectedPart> expected{{ExpectedPart::kReduction, 0, count}};
    for (const bool in_place : {false, true}) {
      fill_input(roofline.buffers().input, group.rank(), ReduceOp::sum);
      fill_with_wrong_values(roofline.buffers().output);
      group.barrier();
      roofline.run(in_place, ReduceOp::sum);
      group.barrier();
      const Tensor& result = in_place ? roofline.buffers().input : roofline.buffers().output;
      wrong[static_cast<std::size_t>(group.rank())] += count_wrong(result, expected, ranks, ReduceOp::sum);
    }
  });
  CHECK(wrong == std::vector<std::int64_t>(3));
}

TEST_CASE("allreduce_bench: a roofline is of one host") {
  check_one_host(4, 4);
  CHECK(test::error_of([] { check_one_host(4, 2); }) ==
        "--roofline: it is of ranks on one host, which read each other's memory; of 4 ranks, 2 are on this one");
}

TEST_CASE("allreduce_bench: collectives by name") {
  CHECK(find_collectives({"all"}, 2).size() == bench_collectives().size());
  CHECK(find_collectives({"all"}, 1).size() == bench_collectives().size() - 1);
  CHECK(find_collectives({"reduce", "broadcast", "reduce"}, 2).size() == 2);
  CHECK(test::error_of([] { find_collectives({"send_receive"}, 1); }) ==
        "send_receive needs two ranks or more: a message goes to another rank");
  CHECK(test::error_of([] {
          find_collectives({"allgather"}, 2);
        }).starts_with("unknown collective 'allgather': did you mean all_gather?"));
}

namespace {

BenchRow row(std::int64_t bytes, const std::string& backend, double seconds, double predicted,
             const std::string& chosen = {}) {
  return {.collective = &collective("all_reduce"),
          .bytes = bytes,
          .backend = backend,
          .in_place = BenchTime{seconds, seconds},
          .predicted = predicted,
          .chosen = chosen};
}

}  // namespace

TEST_CASE("allreduce_bench: predictions are compared with what was measured, from 64 KiB on") {
  const std::vector<BenchRow> rows{row(1024, "native, ring", 1.0, 100.0),  // too small to count
                                   row(65536, "mpi", 1.0, 0.0),            // not predicted
                                   row(65536, "native, ring", 2.0, 2.2),
                                   row(65536, "native, direct", 1.6, 2.4),
                                   row(65536, "native, by-cost", 5.0, 2.2, "ring"),
                                   row(131072, "native, ring", 4.0, 3.0),
                                   row(131072, "native, direct", 8.0, 8.0),
                                   row(131072, "native, by-cost", 4.0, 3.0, "ring")};
  const PredictionSummary summary = summarize_predictions(rows);
  CHECK(summary.count == 4);
  CHECK(summary.median_error == Approx(0.25));  // of 0.1, 0.5, 0.25 and 0, the upper of the middle two
  CHECK(summary.median_choice == Approx(1.25));
  CHECK(summary.worst_choice == Approx(1.25));
  CHECK(prediction_lines(rows) ==
        "predictions, from 64 KiB on, in place: the median error of 4 is 25 %\n"
        "what by-cost chose takes 1.25 times as long as the best (median of the sizes; at most 1.25)\n"
        "by-cost chose, from so many bytes on:\n"
        "       65536  ring\n");
}

TEST_CASE("allreduce_bench: where nothing was predicted, nothing is said of it") {
  CHECK(summarize_predictions({}).count == 0);
  CHECK(prediction_lines({}).empty());
  const std::vector<BenchRow> rows{row(65536, "native, by-cost", 5.0, 2.2, "ring")};
  CHECK(summarize_predictions(rows).worst_choice == 0.0);  // the ring was not measured by itself
}
