// What is not finite in a tensor, and which rank's finding is the first.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/train/nan_finder.h"

#include <optional>
#include <vector>

namespace tandem::train {

/// True of integers, too.
bool is_finite(const Tensor& tensor);

/// Counts, dtype and shape; the rest as it is by default.
NanFinding scan(const Tensor& tensor);

/// The largest magnitude; 0 for tensors of integers and without elements.
double largest(const Tensor& tensor);

/// Numbers along the first dimension of those slices that are not finite.
std::vector<std::int64_t> bad_rows(const Tensor& tensor);

/// Of the findings of all ranks the one that comes first in a step, by place, then by rank; the same on all ranks.
/// Collective.
std::optional<NanFinding> first_of_ranks(const std::optional<NanFinding>& mine, comm::ProcessGroup& group);

}  // namespace tandem::train
