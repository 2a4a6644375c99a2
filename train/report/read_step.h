// One step of a trace, for its picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::train::report {

/// Milliseconds since the step began on the first rank.
struct StepSpan {
  std::string name = {};
  std::string module = {};  ///< dotted name of the module that it computes
  double begin = 0.0, end = 0.0;
  int depth = 0;                                 ///< ranges of its row that it lies within
  double bytes = 0.0;                            ///< of communication
  double wait = 0.0, copy = 0.0, combine = 0.0;  ///< of the steps of an algorithm
  std::int64_t number = -1;                      ///< of an operation between ranks: the same on all of them
  int round = -1, peer = -1, chunk = -1, segment = -1;
  std::string algorithm = {};
};

struct StepRow {
  std::string name = {};  ///< "thread 0", "buckets", "to rank 1"
  std::vector<StepSpan> spans = {};
};

struct StepOfRank {
  int rank = 0;
  double begin = 0.0, end = 0.0;
  double uncertainty = 0.0;         ///< of its clock
  std::vector<StepSpan> work = {};  ///< of the thread that trains: phases at depth 0, what lies within them behind that
  std::vector<StepRow> rows = {};   ///< of a GPU's streams and of communication
};

struct StepTrace {
  std::string name = {};  ///< "step 12"
  int recorded = 0;       ///< complete steps of the trace
  double end = 0.0;       ///< of the last rank
  std::vector<StepOfRank> ranks = {};
};

/// Of trace_of()'s text the step that took the median time on rank 0. Nothing where it has no complete step.
std::optional<StepTrace> read_step(std::string_view trace);

}  // namespace tandem::train::report
