// The factors of steps, copied where they have changed.
#include "tandem/optim/step_control.h"

#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <cstring>

namespace tandem::optim {

namespace {

/// Copies them, on a GPU from pinned memory and behind the work of the current stream.
void copy_rows(const std::vector<kernels::StepFactors>& rows, const Tensor& to) {
  const bool on_gpu = to.device().type == DeviceType::cuda;
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor here = on_gpu ? Tensor::empty(to.shape(), {.dtype = DType::f64, .pinned = true}) : to;
  std::memcpy(Out(here).data<double>(), rows.data(), rows.size() * sizeof(kernels::StepFactors));
  if (on_gpu) to.copy_from_async(here);
}

}  // namespace

void StepControl::check_row(std::size_t row) const {
  require(row < rows_.size(), "step control: there is no row {}: it has {}, counted from 0", row, rows_.size());
}

void StepControl::resize(std::size_t rows) {
  if (rows == rows_.size()) return;
  rows_.resize(rows);
  copies_.clear();
}

void StepControl::set(std::size_t row, const kernels::StepFactors& factors) {
  check_row(row);
  rows_[row] = factors;
}

StepControl::Copy& StepControl::copy_on(Device device) {
  auto found = std::ranges::find_if(copies_, [&](const Copy& copy) { return copy.stream.device() == device; });
  const Stream stream = current_stream(device);
  if (found != copies_.end() && found->stream == stream) return *found;
  // Kernels on the stream of before may still read what is there.
  const MemoryTagScope scope(MemoryTag::workspace);
  const auto rows = static_cast<std::int64_t>(rows_.size());
  Copy copy{.stream = stream,
            .rows = rows_,
            .tensor = Tensor::empty({rows, kernels::kStepFactors}, {.dtype = DType::f64, .device = device})};
  copy_rows(copy.rows, copy.tensor);
  if (found == copies_.end()) return copies_.emplace_back(std::move(copy));
  *found = std::move(copy);
  return *found;
}

void StepControl::refresh(Copy& copy) const {
  if (copy.rows == rows_) return;
  copy_rows(rows_, copy.tensor);
  copy.rows = rows_;
}

Tensor StepControl::row(std::size_t row, Device device) {
  check_row(row);
  Copy& copy = copy_on(device);
  refresh(copy);
  return copy.tensor.narrow(0, static_cast<std::int64_t>(row), 1).view({kernels::kStepFactors});
}

void StepControl::upload() {
  for (Copy& copy : copies_) {
    const Device device = copy.stream.device();
    require(copy.stream == current_stream(device),
            "step control: the rows on {} are read on another stream than the current one; make that the current one",
            name_of(device));
    refresh(copy);
  }
}

}  // namespace tandem::optim
