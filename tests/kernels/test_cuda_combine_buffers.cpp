// Elements of several buffers on CUDA, combined, against loops over whole numbers.
#include "tandem/kernels/reduce/combine_buffers.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/whole_numbers.h"

#include "tandem/core/has_cuda.h"
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"

#include <algorithm>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

using kernels::Combination;

double element(int buffer, std::int64_t index) { return static_cast<double>((buffer * 3 + index * 5) % 7 - 3); }

double combined(Combination how, int buffers, std::int64_t index) {
  double total = element(0, index);
  for (int buffer = 1; buffer < buffers; ++buffer) {
    const double next = element(buffer, index);
    total = how == Combination::sum       ? total + next
            : how == Combination::product ? total * next
            : how == Combination::min     ? std::min(total, next)
                                          : std::max(total, next);
  }
  return total;
}

Tensor typed(const std::vector<double>& values, DType dtype) {
  const Tensor result = Tensor::empty({static_cast<std::int64_t>(values.size())}, {.dtype = dtype});
  dispatch_all(dtype, "typed", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < values.size(); ++i) Out(result).data<T>()[i] = T(static_cast<float>(values[i]));
  });
  return result.to(kGpu);
}

}  // namespace

TEST_CASE("buffers are combined from any element on, into any place", "[cuda]") {
  if (!has_gpu()) return;
  if constexpr (kHasCuda) {
    constexpr int kBuffers = 3;
    constexpr std::int64_t kLength = 301;
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32}) {
      std::vector<Tensor> buffers;
      std::vector<std::int64_t> addresses;
      for (int buffer = 0; buffer < kBuffers; ++buffer) {
        std::vector<double> values;
        for (std::int64_t i = 0; i < kLength; ++i) values.push_back(element(buffer, i));
        buffers.push_back(typed(values, dtype));
        addresses.push_back(reinterpret_cast<std::intptr_t>(buffers.back().raw_data()));
      }
      const Tensor table = Tensor::from(addresses, {kBuffers}).to(kGpu);
      for (const Combination how : {Combination::sum, Combination::product, Combination::min, Combination::max}) {
        for (const std::int64_t first : {0, 1, 16}) {
          for (const std::int64_t count : {0, 1, 15, 16, 200, 285}) {
            for (const std::int64_t skipped : {0, 1}) {
              CAPTURE(name_of(dtype), static_cast<int>(how), first, count, skipped);
              const Tensor all = typed(std::vector<double>(static_cast<std::size_t>(count + skipped + 1), 77.0), dtype);
              const Tensor output = all.narrow(0, skipped, count);
              kernels::cuda::combine_buffers(current_stream(kGpu),
                                             {.buffers = static_cast<const void* const*>(table.raw_data()),
                                              .buffer_count = kBuffers,
                                              .begin = first * size_of(dtype),
                                              .count = count,
                                              .dtype = dtype},
                                             how, 1.0, Out(output).raw_data());
              std::vector<double> expected;
              for (std::int64_t i = 0; i < count; ++i) expected.push_back(combined(how, kBuffers, first + i));
              CHECK(output.to_vector<double>() == expected);
              CHECK(all.to_vector<double>().back() == 77.0);
            }
          }
        }
      }
    }
  }
}
