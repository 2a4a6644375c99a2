// Muon's momentum, norms and steps: in parts that do not depend on the number of threads.
#include "tandem/kernels/optimizer/muon.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/muon_implementations.h"
#include "tandem/kernels/optimizer/sum_of_squares.h"
#include "tandem/kernels/optimizer/update.h"
#include "tandem/kernels/traffic.h"

#include <cmath>
#include <vector>

namespace tandem::kernels {

namespace {

void check_items(std::string_view op, std::span<const MuonItem> items, const MuonOptions& options) {
  for (const MuonItem& item : items) {
    check_update(op, {item.parameter, item.gradient, item.master});
    if (options.momentum != 0.0) {
      require_alike(op, "the momentum buffer", item.momentum_buffer, item.parameter,
                    optimizer_state_dtype(item.parameter.dtype()));
    }
    require_one_device(op, items.front().parameter, item.parameter, item.matrix);
    require(item.matrix.defined() && is_floating(item.matrix.dtype()) && item.matrix.is_dense() &&
                item.matrix.numel() == item.parameter.numel() && item.parameter.rank() > 0,
            "{}: the matrix of parameter {} must be dense, floating and of as many elements, got {}", op,
            describe(item.parameter), describe(item.matrix));
  }
  check_skip(op, options.skip, items.front().parameter.device());
  check_control(op, options.control, items.front().parameter.device());
  check_loss_scale(op, options.loss_scale, items.front().parameter.device());
}

/// Calls body(item, its part, begin, end) for all parts of all items; the number of a part counts over all items.
template <typename Body>
void for_each_part_of(std::span<const MuonItem> items, Body&& body) {
  struct Part {
    std::size_t item;
    std::int64_t begin, end;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t count = items[i].parameter.numel();
    for (std::int64_t begin = 0; begin < count; begin += kMuonPart)
      parts.push_back({i, begin, std::min(begin + kMuonPart, count)});
  }
  parallel_for(static_cast<std::int64_t>(parts.size()), 4, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const Part& part = parts[static_cast<std::size_t>(i)];
      body(part.item, i, part.begin, part.end);
    }
  });
}

/// Of each item, the sum of its parts' numbers in that column, in their order.
std::vector<double> sums_of(std::span<const MuonItem> items, const Tensor& squares, std::int64_t column) {
  std::vector<double> sums;
  const double* part = squares.data<double>() + column;
  for (const MuonItem& item : items) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < parts_of(item); ++i, part += 2) sum += *part;
    sums.push_back(sum);
  }
  return sums;
}

/// Momentum and directions of a run.
template <typename S>
void direct(const MuonItem& item, const MuonOptions& options, const StepFactors& step, std::int64_t first,
            std::int64_t count, const S* __restrict gradient, S* __restrict direction) {
  const S factor = static_cast<S>(step.gradient_factor), momentum = static_cast<S>(step.momentum);
  if (options.momentum == 0.0) {
    for (std::int64_t i = 0; i < count; ++i) direction[i] = factor * gradient[i];
    return;
  }
  S* __restrict const buffer = item.momentum_buffer.data<S>() + first;
  if (item.is_first_step) std::fill(buffer, buffer + count, S(0));
  for (std::int64_t i = 0; i < count; ++i) {
    const S g = factor * gradient[i];
    const S velocity = momentum * buffer[i] + g;
    buffer[i] = velocity;
    direction[i] = options.nesterov ? g + momentum * velocity : velocity;
  }
}

void matrices_on_cpu(std::span<const MuonItem> items, const MuonOptions& options, std::span<const Out> directions,
                     const Out& squares) {
  const StepFactors step = factors_on_cpu(options.control, factors_of(options), options.loss_scale);
  for_each_part_of(items, [&](std::size_t index, std::int64_t part, std::int64_t begin, std::int64_t end) {
    const MuonItem& item = items[index];
    double* const sums = squares.data<double>() + 2 * part;
    sums[0] = sums[1] = 0.0;
    detail::step_elements({item.parameter, item.gradient, item.master}, begin, end,
                          [&](auto* parameter, const auto* gradient, std::int64_t first, std::int64_t count) {
                            using S = std::remove_pointer_t<decltype(parameter)>;
                            S* const direction = directions[index].data<S>() + first;
                            direct(item, options, step, first, count, gradient, direction);
                            sums[0] += detail::sum_of_squares(direction, count);
                            if (options.normalize) sums[1] += detail::sum_of_squares(parameter, count);
                          });
  });
  const std::vector<double> sums = sums_of(items, squares, 0);
  for_each_part_of(items, [&](std::size_t index, std::int64_t, std::int64_t begin, std::int64_t end) {
    const Out& matrix = items[index].matrix;
    dispatch_floating(directions[index].dtype(), "muon_matrices", [&](auto direction_tag) {
      using S = typename decltype(direction_tag)::type;
      const S* const direction = directions[index].data<S>();
      const S norm = static_cast<S>(std::sqrt(sums[index]) + options.eps);
      dispatch_floating(matrix.dtype(), "muon_matrices", [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* const values = matrix.data<T>();
        for (std::int64_t i = begin; i < end; ++i)
          values[i] = T(static_cast<compute_t<T>>(sums[index] == 0.0 ? S(0) : direction[i] / norm));
      });
    });
  });
}

void step_on_cpu(std::span<const MuonItem> items, const MuonOptions& options, const Tensor& squares) {
  const StepFactors step = factors_on_cpu(options.control, factors_of(options));
  std::vector<Tensor> matrices;  // of the dtype that is computed in
  for (const MuonItem& item : items) {
    matrices.push_back(item.matrix);
    const DType wide = optimizer_state_dtype(item.parameter.dtype());
    if (item.matrix.dtype() == wide) continue;
    matrices.back() = Tensor::empty(item.matrix.shape(), {.dtype = wide});
    cast(item.matrix, Out(matrices.back()));
  }
  const std::vector<double> sums = sums_of(items, squares, 1);
  for_each_part_of(items, [&](std::size_t index, std::int64_t, std::int64_t begin, std::int64_t end) {
    const MuonItem& item = items[index];
    const double root = std::sqrt(static_cast<double>(item.parameter.size(0)));
    detail::step_elements({item.parameter, item.gradient, item.master}, begin, end,
                          [&](auto* parameter, const auto* /*gradient*/, std::int64_t first, std::int64_t count) {
                            using S = std::remove_pointer_t<decltype(parameter)>;
                            const S* const matrix = matrices[index].data<S>() + first;
                            const S lr = static_cast<S>(step.lr), decay = static_cast<S>(step.weight_decay);
                            const S scale = options.normalize && step.keep != 0.0
                                                ? static_cast<S>(root / std::sqrt(nonzero_squares(sums[index])))
                                                : S(1);
                            for (std::int64_t i = 0; i < count; ++i) {
                              const S scaled = scale * parameter[i];
                              parameter[i] = scaled - lr * (matrix[i] + decay * scaled);
                            }
                          });
  });
}

}  // namespace

StepFactors factors_of(const MuonOptions& options) {
  return {.lr = options.lr,
          .momentum = options.momentum,
          .weight_decay = options.weight_decay,
          .gradient_factor = options.gradient_factor};
}

Tensor muon_matrices(std::span<const MuonItem> items, const MuonOptions& options) {
  constexpr std::string_view kOp = "muon_matrices";
  if (items.empty()) return {};
  check_items(kOp, items, options);
  const MemoryTagScope scope(MemoryTag::workspace);
  const Device device = items.front().parameter.device();
  std::int64_t parts = 0;
  std::vector<Out> directions;
  for (const MuonItem& item : items) {
    parts += parts_of(item);
    const DType wide = optimizer_state_dtype(item.parameter.dtype());
    directions.push_back(item.matrix.dtype() == wide
                             ? item.matrix
                             : Out(Tensor::empty(item.matrix.shape(), {.dtype = wide, .device = device})));
    note_traffic(item.gradient, item.parameter, item.momentum_buffer, item.momentum_buffer, item.matrix);
  }
  const Out squares(Tensor::empty({parts, 2}, {.dtype = DType::f64, .device = device}));
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().parameter}) {
      cuda::muon_matrices(items, options, directions, squares);
      return squares;
    }
  if (is_skipped(options.skip)) {
    for (const MuonItem& item : items) item.matrix.tensor().zero();
    squares.tensor().zero();
    return squares;
  }
  matrices_on_cpu(items, options, directions, squares);
  return squares;
}

void muon_step(std::span<const MuonItem> items, const MuonOptions& options, const Tensor& squares) {
  constexpr std::string_view kOp = "muon_step";
  if (items.empty()) return;
  check_items(kOp, items, options);
  std::int64_t parts = 0;
  for (const MuonItem& item : items) {
    parts += parts_of(item);
    note_traffic(item.parameter, item.parameter, item.master, item.master, item.matrix);
  }
  require(squares.defined() && squares.dtype() == DType::f64 && squares.shape() == Shape{parts, 2} &&
              squares.is_dense() && squares.device() == items.front().parameter.device(),
          "{}: needs what muon_matrices() has returned for these items, got {}", kOp, describe(squares));
  const MemoryTagScope scope(MemoryTag::workspace);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().parameter}) return cuda::muon_step(items, options, squares);
  if (is_skipped(options.skip)) return;
  step_on_cpu(items, options, squares);
}

}  // namespace tandem::kernels
