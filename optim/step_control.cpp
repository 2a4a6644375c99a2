// The factors of steps, row by row.
#include "tandem/optim/step_control.h"

#include "tandem/core/error.h"

namespace tandem::optim {

void StepControl::check_row(std::size_t row) const {
  require(row < rows_.size(), "step control: there is no row {}: it has {}, counted from 0", row, rows_.size());
}

void StepControl::resize(std::size_t rows) { rows_.resize(rows); }

void StepControl::set(std::size_t row, const kernels::StepFactors& factors) {
  check_row(row);
  rows_[row] = factors;
}

Tensor StepControl::row(std::size_t row, Device device) {
  check_row(row);
  return copies_.on(device, bytes())
      .narrow(0, static_cast<std::int64_t>(row) * kernels::kStepFactors, kernels::kStepFactors);
}

void StepControl::upload() { copies_.upload(bytes()); }

}  // namespace tandem::optim
