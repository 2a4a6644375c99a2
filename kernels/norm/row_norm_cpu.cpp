// Normalisation of rows of floats or halves, in float: a row is read from memory once and finished in the cache.
#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/norm/channel_values.h"
#include "tandem/kernels/norm/row_norm_implementations.h"
#include "tandem/kernels/reduce/lane_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

constexpr std::int64_t kLanes = 32;

/// Sums of some terms per element of a run, in f64 over independent lanes, which vectorise and have a fixed order.
template <std::size_t kTerms, typename Terms>
std::array<double, kTerms> lane_sums(std::int64_t count, Terms&& terms) {
  double lanes[kTerms][kLanes] = {};
  const auto add = [&](std::int64_t i, std::int64_t lane) {
    const std::array<float, kTerms> values = terms(i + lane);
    for (std::size_t term = 0; term < kTerms; ++term) lanes[term][lane] += static_cast<double>(values[term]);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) add(i, lane);
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) add(i, lane);
  std::array<double, kTerms> sums{};
  for (std::size_t term = 0; term < kTerms; ++term) {
    for (const double lane : lanes[term]) sums[term] += lane;
  }
  return sums;
}

/// Weights or biases as floats, by number.
std::vector<float> load_parameters(const Tensor& tensor, std::int64_t count, float absent) {
  return tensor.defined() ? tensor.to_vector<float>() : std::vector<float>(static_cast<std::size_t>(count), absent);
}

/// Rows, and which parameters belong to their columns.
struct Geometry {
  std::int64_t rows, columns, groups, repeats, of_row, parameters;

  Geometry(const Tensor& x, const RowNormOptions& options)
      : rows(x.size(0)),
        columns(x.size(1)),
        groups(options.groups),
        repeats(options.repeats),
        of_row(columns / repeats),
        parameters(groups * of_row) {}

  std::int64_t first_parameter(std::int64_t row) const { return row % groups * of_row; }
};

struct Statistics {
  float mean, inverse_std;
};

Statistics statistics_of(const float* x, std::int64_t count, double eps) {
  const auto mean = static_cast<float>(lane_sum(x, count, 1) / static_cast<double>(count));
  const double squares = lane_sums<1>(count, [=](std::int64_t i) {
    const float deviation = x[i] - mean;
    return std::array{deviation * deviation};
  })[0];
  return {mean, static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(count) + eps))};
}

void normalise(const Geometry& g, const float* __restrict x, const Statistics& s, const float* weight,
               const float* bias, float* __restrict y) {
  const float mean = s.mean, inverse_std = s.inverse_std;
  if (g.repeats == 1) {
    for (std::int64_t c = 0; c < g.columns; ++c) y[c] = (x[c] - mean) * inverse_std * weight[c] + bias[c];
    return;
  }
  for (std::int64_t p = 0; p < g.of_row; ++p) {
    const float scale = weight[p], shift = bias[p];
    const float* const from = x + p * g.repeats;
    float* const to = y + p * g.repeats;
    for (std::int64_t i = 0; i < g.repeats; ++i) to[i] = (from[i] - mean) * inverse_std * scale + shift;
  }
}

/// Sums over a row of grad_y times weight, and of that times xhat.
struct RowSums {
  double sum = 0.0, normalised = 0.0;
};

/// Adds grad_y and grad_y xhat to the sums of each column's parameters.
RowSums add_column_gradients(const Geometry& g, const float* x, const Statistics& s, const float* weight,
                             const float* grad, float* __restrict weight_sums, float* __restrict bias_sums) {
  const float mean = s.mean, inverse_std = s.inverse_std;
  for (std::int64_t c = 0; c < g.columns; ++c) {
    weight_sums[c] += grad[c] * ((x[c] - mean) * inverse_std);
    bias_sums[c] += grad[c];
  }
  const auto [sum, normalised] = lane_sums<2>(g.columns, [=](std::int64_t c) {
    const float scaled = grad[c] * weight[c];
    return std::array{scaled, scaled * ((x[c] - mean) * inverse_std)};
  });
  return {sum, normalised};
}

/// The same where columns share parameters.
RowSums add_run_gradients(const Geometry& g, const float* x, const Statistics& s, const float* weight,
                          const float* grad, float* weight_sums, float* bias_sums) {
  RowSums row;
  for (std::int64_t p = 0; p < g.of_row; ++p) {
    const float *const from = x + p * g.repeats, *const gradient = grad + p * g.repeats;
    const auto [sum, normalised] = lane_sums<2>(g.repeats, [=](std::int64_t i) {
      return std::array{gradient[i], gradient[i] * ((from[i] - s.mean) * s.inverse_std)};
    });
    bias_sums[p] += static_cast<float>(sum);
    weight_sums[p] += static_cast<float>(normalised);
    row.sum += static_cast<double>(weight[p]) * sum;
    row.normalised += static_cast<double>(weight[p]) * normalised;
  }
  return row;
}

void propagate(const Geometry& g, const float* __restrict x, const Statistics& s, const float* weight,
               const float* __restrict grad, const RowSums& sums, float* __restrict to) {
  const auto count = static_cast<double>(g.columns);
  const auto mean_gradient = static_cast<float>(sums.sum / count), slope = static_cast<float>(sums.normalised / count);
  const float mean = s.mean, inverse_std = s.inverse_std;
  const auto gradient = [=](float value, float scaled) {
    return inverse_std * (scaled - mean_gradient - (value - mean) * inverse_std * slope);
  };
  if (g.repeats == 1) {
    for (std::int64_t c = 0; c < g.columns; ++c) to[c] = gradient(x[c], grad[c] * weight[c]);
    return;
  }
  for (std::int64_t p = 0; p < g.of_row; ++p) {
    const float scale = weight[p];
    const std::int64_t first = p * g.repeats, end = first + g.repeats;
    for (std::int64_t c = first; c < end; ++c) to[c] = gradient(x[c], grad[c] * scale);
  }
}

/// Rows that sums of parameters are first added up over in f32: whole groups, about 32 Ki elements, and no more than 64
/// parts. The sizes alone decide, not the number of threads.
std::int64_t rows_of_part(const Geometry& g) {
  const std::int64_t images = g.rows / g.groups, image = g.groups * g.columns;
  const std::int64_t for_size = std::max<std::int64_t>(1, (std::int64_t{1} << 15) / image);
  return std::max(for_size, (images + 63) / 64) * g.groups;
}

/// What backward works on.
template <typename T>
struct Backward {
  Geometry g;
  const T *x, *grad_y;
  T* grad_x;  // null: not wanted
  const float *mean, *inverse_std;
  std::vector<float> weight;

  /// The rows [begin, end), and sums over them.
  void run(std::int64_t begin, std::int64_t end, float* weight_sums, float* bias_sums) const {
    RunReader<T> read_x(g.columns), read_grad(g.columns);
    RunWriter<T> write(g.columns);
    const auto add = g.repeats == 1 ? add_column_gradients : add_run_gradients;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * g.columns, first = g.first_parameter(row);
      const float *const from = read_x(x + at, g.columns), *const gradient = read_grad(grad_y + at, g.columns);
      const Statistics s{mean[row], inverse_std[row]};
      const RowSums sums = add(g, from, s, weight.data() + first, gradient, weight_sums + first, bias_sums + first);
      if (grad_x == nullptr) continue;
      write(grad_x + at, g.columns,
            [&](float* to) { propagate(g, from, s, weight.data() + first, gradient, sums, to); });
    }
  }
};

/// Adds up sums of parts, [parts][2][parameters], in order.
void add_parts(const std::vector<float>& parts, const Geometry& g, const Out& grad_weight, const Out& grad_bias) {
  const auto count = static_cast<std::size_t>(g.parameters);
  detail::ChannelValues weight_sums(count), bias_sums(count);
  for (std::size_t part = 0; part < parts.size(); part += 2 * count) {
    for (std::size_t p = 0; p < count; ++p) {
      weight_sums[p] += static_cast<double>(parts[part + p]);
      bias_sums[p] += static_cast<double>(parts[part + count + p]);
    }
  }
  detail::store_channels(weight_sums, grad_weight);
  detail::store_channels(bias_sums, grad_bias);
}

}  // namespace

void row_norm_forward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const RowNormOptions& options, const Out& y, const Out& mean, const Out& inverse_std) {
  const Geometry g(x, options);
  const std::vector<float> weights = load_parameters(weight, g.parameters, 1.0f),
                           biases = load_parameters(bias, g.parameters, 0.0f);
  float *const means = mean.data<float>(), *const inverses = inverse_std.data<float>();
  dispatch_float(x.dtype(), op, [&]<typename T>(TypeTag<T>) {
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    parallel_for(g.rows, std::max<std::int64_t>(1, 8192 / g.columns), [&](std::int64_t begin, std::int64_t end) {
      RunReader<T> read(g.columns);
      RunWriter<T> write(g.columns);
      for (std::int64_t row = begin; row < end; ++row) {
        const float* const values = read(from + row * g.columns, g.columns);
        const Statistics s = statistics_of(values, g.columns, options.eps);
        means[row] = s.mean;
        inverses[row] = s.inverse_std;
        const std::int64_t first = g.first_parameter(row);
        write(to + row * g.columns, g.columns,
              [&](float* out) { normalise(g, values, s, weights.data() + first, biases.data() + first, out); });
      }
    });
  });
}

void row_norm_backward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& inverse_std, const RowNormOptions& options, const Tensor& grad_y,
                       const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  const Geometry g(x, options);
  const std::int64_t rows = rows_of_part(g), count = (g.rows + rows - 1) / rows;
  std::vector<float> parts(static_cast<std::size_t>(2 * count * g.parameters));
  dispatch_float(x.dtype(), op, [&]<typename T>(TypeTag<T>) {
    const Backward<T> backward{g,
                               x.data<T>(),
                               grad_y.data<T>(),
                               grad_x.defined() ? grad_x.data<T>() : nullptr,
                               mean.data<float>(),
                               inverse_std.data<float>(),
                               load_parameters(weight, g.parameters, 1.0f)};
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        float* const sums = parts.data() + 2 * part * g.parameters;
        backward.run(part * rows, std::min(g.rows, (part + 1) * rows), sums, sums + g.parameters);
      }
    });
  });
  add_parts(parts, g, grad_weight, grad_bias);
}

}  // namespace tandem::kernels::cpu
