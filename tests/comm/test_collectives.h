// What tests of collectives share: one on a tensor in place, and what a reduction makes of two values.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/core/out.h"

#include <algorithm>

namespace tandem::test {

inline comm::Collective in_place(comm::CollectiveKind kind, const Tensor& tensor,
                                 comm::ReduceOp op = comm::ReduceOp::sum) {
  return comm::in_place(kind, Out(tensor), op);
}

/// The values of all ranks, value(rank), reduced in order.
template <typename Value>
double reduced(int ranks, comm::ReduceOp op, const Value& value) {
  using comm::ReduceOp;
  double result = value(0);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = value(rank);
    if (op == ReduceOp::min) {
      result = std::min(result, next);
    } else if (op == ReduceOp::max) {
      result = std::max(result, next);
    } else if (op == ReduceOp::product) {
      result *= next;
    } else {
      result += next;
    }
  }
  return op == ReduceOp::average ? result / ranks : result;
}

}  // namespace tandem::test
