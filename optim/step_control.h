// The factors of steps in the memory of the device whose kernels read them.
#pragma once

#include "tandem/core/device_copies.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/optimizer/step_factors.h"

#include <cstddef>
#include <span>
#include <vector>

namespace tandem::optim {

/// What changes from step to step, in rows, one for each group of parameters. A device has a copy of all rows, which
/// its kernels read: where a step is recorded in a WorkGraph, set() and upload() before a launch make that launch go by
/// other numbers. On a GPU a change of any number of rows is one small copy that nobody waits for; nothing is copied
/// where nothing has changed. Example:
///     StepControl control(1);
///     control.set(0, {.lr = 0.5});
///     const std::vector<double> row = control.row(0, Device{}).to_vector<double>();  // {0.5, 0, 0, 1, 1}
class StepControl {
 public:
  /// `rows`: each is as StepFactors are by default.
  explicit StepControl(std::size_t rows) : rows_(rows) {}
  ~StepControl() = default;
  /// Not copied: two of them would write to the same memory, each taking it for its own.
  StepControl(const StepControl&) = delete;
  StepControl& operator=(const StepControl&) = delete;
  /// What is left has no rows.
  StepControl(StepControl&&) = default;
  StepControl& operator=(StepControl&&) = default;

  /// How many there are.
  std::size_t rows() const { return rows_.size(); }

  /// More rows, or fewer; devices then get others, elsewhere. New ones are as StepFactors are by default.
  void resize(std::size_t rows);

  /// For work that is enqueued from the next row() or upload() on. Throws Error where there is no such row.
  void set(std::size_t row, const kernels::StepFactors& factors);

  /// One row on that device for kernels on its current stream: f64[kernels::kStepFactors], in the order of StepFactors.
  /// Copies all rows there if one has changed. The memory stays the same one for as long as the current stream does.
  /// Throws Error where there is no such row, and where a copy is due while this thread records work.
  Tensor row(std::size_t row, Device device);

  /// What row() copies, for all devices that have rows already. Throws Error, copying nothing more, for one whose
  /// current stream is not that of row().
  void upload();

 private:
  void check_row(std::size_t row) const;
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(rows_)); }

  std::vector<kernels::StepFactors> rows_;
  DeviceCopies copies_{"step control", DType::f64};
};

}  // namespace tandem::optim
