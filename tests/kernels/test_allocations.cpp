// How often a kernel asks for memory: not more often for more rows.
#include "tandem/kernels/norm/batch_norm.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_COUNTS_ALLOCATIONS 0  // sanitizers have an operator new of their own
#elif defined(__has_feature)
#define TANDEM_COUNTS_ALLOCATIONS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TANDEM_COUNTS_ALLOCATIONS 1
#endif

#if TANDEM_COUNTS_ALLOCATIONS

using namespace tandem;
using namespace tandem::test;

namespace {
thread_local std::int64_t allocations = 0;
}

// This program's own: the standard's other forms call these two.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t /*bytes*/) noexcept { std::free(block); }

TEST_CASE("batch norm asks for memory as often for many rows as for few") {
  const ThreadScope one_thread(1);
  const auto counted = [](std::int64_t images) {
    const Tensor x = random_images({images, 8, 32, 32}, 1), grad_y = random_images(x.shape(), 2), y = empty_like(x);
    const Tensor weight = Tensor::full({8}, 1.5), bias = Tensor::full({8}, -0.25), mean = empty_like(weight),
                 inverse_std = empty_like(weight), grad_x = empty_like(x), grad_weight = empty_like(weight);
    const std::int64_t before = allocations;
    kernels::batch_norm_forward_train(x, weight, bias, {}, {}, {}, Out(y), Out(mean), Out(inverse_std));
    kernels::batch_norm_backward(x, weight, bias, mean, inverse_std, {}, grad_y, Out(grad_x), Out(grad_weight), {});
    return allocations - before;
  };
  const std::int64_t few = counted(1), many = counted(64);  // 2 and 64 blocks of rows
  INFO(few << " and " << many);
  CHECK(few > 0);
  CHECK(many == few);
}

#endif
