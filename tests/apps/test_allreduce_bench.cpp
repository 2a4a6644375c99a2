// What allreduce_bench says of its predictions.
#include "apps/allreduce_bench/bench.h"
#include "tests/support/catch.h"

using namespace tandem::apps;

namespace {

BenchRow row(std::int64_t bytes, const std::string& backend, double seconds, double predicted,
             const std::string& chosen = {}) {
  return {.bytes = bytes, .backend = backend, .in_place = {seconds, seconds}, .predicted = predicted, .chosen = chosen};
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
}

TEST_CASE("allreduce_bench: where nothing was predicted, nothing is said of it") {
  CHECK(summarize_predictions({}).count == 0);
  const std::vector<BenchRow> rows{row(65536, "native, by-cost", 5.0, 2.2, "ring")};
  CHECK(summarize_predictions(rows).worst_choice == 0.0);  // the ring was not measured by itself
}
