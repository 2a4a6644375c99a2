// What ranks put into their tensors, and whether what comes out is right to the bit.
#pragma once

#include "apps/allreduce_bench/collectives.h"
#include "tandem/comm/collective.h"
#include "tandem/core/tensor.h"

#include <cstdint>
#include <span>

namespace tandem::allreduce_bench {

/// The element at `index` of a rank's input: whole numbers that the dtype has, of which f32 has the sums and products,
/// in any order. Ranks differ at each index (but for products), and so do the parts of a tensor.
double value_at(int rank, std::int64_t index, comm::ReduceOp op, DType dtype);
/// The reduction of these over all ranks. An average is rounded once where the dtype has not the sum's part, as all
/// backends round it.
double reduced_at(int ranks, std::int64_t index, comm::ReduceOp op, DType dtype);

/// Writes a rank's input, or values that are in no result.
void fill_input(const Tensor& tensor, int rank, comm::ReduceOp op);
void fill_with_wrong_values(const Tensor& tensor);

/// Elements that are not what the parts, one behind the other, say; 0 without parts. Halves are rounded once. Throws
/// Error where the parts have not as many elements as the tensor.
std::int64_t count_wrong(const Tensor& tensor, std::span<const ExpectedPart> parts, int ranks, comm::ReduceOp op);
/// Of all these tensors, which are to hold the same.
std::int64_t count_wrong(std::span<const Tensor> tensors, std::span<const ExpectedPart> parts, int ranks,
                         comm::ReduceOp op);

}  // namespace tandem::allreduce_bench
