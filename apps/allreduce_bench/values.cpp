// Values repeat after a prime number of elements, so that a tensor is filled and checked by a short table.
#include "apps/allreduce_bench/values.h"

#include "tandem/core/error.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace tandem::allreduce_bench {

namespace {

using comm::ReduceOp;

constexpr std::int64_t kPeriod = 8191;  // so no part of 2^n elements begins where another does

/// Of products: every so many ranks have a factor at one place. So many of these are 2, whose product f16 has, and
/// those behind are -1.
constexpr std::int64_t kFactorsEvery = 11, kMostTwos = 15;

/// Between ranks' numbers at one place. No equal steps: else an average of three ranks were what the one between them
/// has, and a sum of four the same with the middle ones left out.
std::int64_t step_of(std::int64_t rank) { return 97 * (rank * (rank + 1) / 2); }

/// How many numbers, from 0 on, are put into a tensor: those that the dtype has, and whose sums f32 has. f16 has those
/// of 64 ranks as well.
std::int64_t numbers_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::bf16:
      return 251;
    case DType::f16:
      return 1021;
    default:
      return kPeriod;
  }
}

/// Rounded once: quotients are no numbers of any dtype, and f64 has more of them than f32.
template <typename T>
T element(double value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
  return T(static_cast<float>(value));
}

/// One period of a part's elements, or the whole part where it is shorter.
template <typename T>
std::vector<T> period_of(const ExpectedPart& part, int ranks, ReduceOp op, DType dtype) {
  std::vector<T> period;
  for (std::int64_t i = 0; i < std::min(part.count, kPeriod); ++i) {
    const std::int64_t index = part.begin + i;
    period.push_back(element<T>(part.from == ExpectedPart::kReduction ? reduced_at(ranks, index, op, dtype)
                                                                      : value_at(part.from, index, op, dtype)));
  }
  return period;
}

/// Calls `visit(begin, period)` for each beginning of a period of so many elements.
template <typename T, typename Visit>
void for_each_period(std::int64_t count, const std::vector<T>& period, const Visit& visit) {
  const auto length = static_cast<std::int64_t>(period.size());
  for (std::int64_t begin = 0; begin < count; begin += length)
    visit(begin, std::span(period).first(static_cast<std::size_t>(std::min(length, count - begin))));
}

}  // namespace

double value_at(int rank, std::int64_t index, ReduceOp op, DType dtype) {
  const std::int64_t place = index % kPeriod;
  if (op == ReduceOp::product) {
    if ((rank + place) % kFactorsEvery != 0) return 1.0;
    return rank < kFactorsEvery * kMostTwos ? 2.0 : -1.0;
  }
  return static_cast<double>((step_of(rank) + place * place % kPeriod) % numbers_of(dtype));
}

double reduced_at(int ranks, std::int64_t index, ReduceOp op, DType dtype) {
  double result = value_at(0, index, op, dtype);
  for (int rank = 1; rank < ranks; ++rank) {
    const double value = value_at(rank, index, op, dtype);
    switch (op) {
      case ReduceOp::product:
        result *= value;
        break;
      case ReduceOp::min:
        result = std::min(result, value);
        break;
      case ReduceOp::max:
        result = std::max(result, value);
        break;
      default:
        result += value;
    }
  }
  return op == ReduceOp::average ? result / ranks : result;
}

void fill_input(const Tensor& tensor, int rank, ReduceOp op) {
  dispatch_all(tensor.dtype(), "fill", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const values = Out(tensor).data<T>();
    const std::vector<T> period = period_of<T>({rank, 0, tensor.numel()}, 1, op, tensor.dtype());
    for_each_period(tensor.numel(), period,
                    [&](std::int64_t begin, std::span<const T> part) { std::ranges::copy(part, values + begin); });
  });
}

void fill_with_wrong_values(const Tensor& tensor) { Out(tensor).fill(-1.0); }

std::int64_t count_wrong(const Tensor& tensor, std::span<const ExpectedPart> parts, int ranks, ReduceOp op) {
  return count_wrong({&tensor, 1}, parts, ranks, op);
}

std::int64_t count_wrong(std::span<const Tensor> tensors, std::span<const ExpectedPart> parts, int ranks, ReduceOp op) {
  if (parts.empty() || tensors.empty()) return 0;
  std::int64_t total = 0, wrong = 0;
  for (const ExpectedPart& part : parts) total += part.count;
  for (const Tensor& tensor : tensors)
    require(total == tensor.numel(), "check: parts of {} elements, and a tensor of {}", total, tensor.numel());
  dispatch_all(tensors.front().dtype(), "check", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::int64_t place = 0;
    for (const ExpectedPart& part : parts) {
      const std::vector<T> period = period_of<T>(part, ranks, op, tensors.front().dtype());
      for (const Tensor& tensor : tensors) {
        const T* const values = tensor.data<T>() + place;
        for_each_period(part.count, period, [&](std::int64_t begin, std::span<const T> right) {
          for (std::size_t i = 0; i < right.size(); ++i)
            wrong += values[begin + static_cast<std::int64_t>(i)] != right[i];
        });
      }
      place += part.count;
    }
  });
  return wrong;
}

}  // namespace tandem::allreduce_bench
