// Dropout beyond the op table: the mask is a function of key and index alone.
#include "tandem/kernels/dropout/dropout.h"
#include "tests/kernels/image_support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Tensor dropped(const Tensor& x, double p, const RandomKey& key) {
  const Tensor y = poisoned_like(x);
  kernels::dropout_forward(x, p, key, Out(y));
  return y;
}

const RandomKey kKey{.seed = 0x123456789abcdefULL, .stream = RandomStream::dropout, .step = 7};

}  // namespace

TEST_CASE("an element is dropped if its random word is below p") {
  const Tensor x = Tensor::full({1001}, 1.0), y = dropped(x, 0.25, kKey);
  for (std::int64_t i = 0; i < 1001; ++i) {
    const bool kept = kKey.uniform(static_cast<std::uint64_t>(i)) >= 0.25f;
    CHECK(y.data<float>()[i] == (kept ? 1.0f / 0.75f : 0.0f));
  }
}

TEST_CASE("images are counted in the order N, H, W, C, however they are stored") {
  const Tensor last = random_images({3, 5, 7, 11}, 1), first = last.contiguous(Layout::row_major);
  const Tensor y = dropped(last, 0.5, kKey);
  CHECK(dropped(first, 0.5, kKey).to_vector<float>() == y.to_vector<float>());
  const Tensor flat =
      dropped(last.permute(std::vector<int>{0, 2, 3, 1}).contiguous().view({3 * 5 * 7 * 11}), 0.5, kKey);
  CHECK(std::memcmp(flat.raw_data(), y.raw_data(), static_cast<std::size_t>(4 * y.numel())) == 0);
}

TEST_CASE("about p of the elements are dropped, others in each step and stream") {
  const double p = GENERATE(0.1, 0.5, 0.9);
  const std::int64_t count = 1 << 18;
  const Tensor x = Tensor::full({count}, 1.0), y = dropped(x, p, kKey);
  RandomKey next = kKey;
  ++next.step;
  const Tensor z = dropped(x, p, next);
  double zeros = 0.0, both = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool here = y.data<float>()[i] == 0.0f, there = z.data<float>()[i] == 0.0f;
    zeros += here ? 1.0 : 0.0;
    both += here && there ? 1.0 : 0.0;
  }
  const auto near = [&](double hits, double share) {
    const auto n = static_cast<double>(count);
    return std::abs(hits - n * share) <= 5.0 * std::sqrt(n * share * (1.0 - share));  // five standard deviations
  };
  CHECK(near(zeros, p));
  CHECK(near(both, p * p));
}

TEST_CASE("p of 0 keeps all, p of 1 none, whatever they hold") {
  const Tensor x = Tensor::from(std::vector<float>{1.0f, -2.0f, std::nanf(""), INFINITY}, {4});
  CHECK(same_bits(dropped(x, 0.0, kKey), x));
  CHECK(dropped(x, 1.0, kKey).to_vector<float>() == std::vector<float>(4, 0.0f));
}

TEST_CASE("dropout works in place, gives backward the same mask, and does not depend on threads") {
  const Tensor x = random_images({4, 16, 33, 9}, 2);
  const Tensor y = dropped(x, 0.3, kKey), in_place = x.clone(), grad_x = poisoned_like(x);
  kernels::dropout_forward(in_place, 0.3, kKey, Out(in_place));
  CHECK(same_bits(in_place, y));
  kernels::dropout_backward(x, 0.3, kKey, Out(grad_x));
  CHECK(same_bits(grad_x, y));
  const ThreadScope scope(3);
  CHECK(same_bits(dropped(x, 0.3, kKey), y));
}

TEST_CASE("a step in memory is added to that of the key") {
  const Tensor x = random_images({2, 8, 5, 3}, 2), y = poisoned_like(x), grad_x = poisoned_like(x);
  RandomKey rest = kKey;
  rest.step = 0xfffffff0u;
  const Tensor step = Tensor::from<std::int64_t>({7 + 0x10}, {1});  // 2^32 more than kKey's
  kernels::dropout_forward(x, 0.3, rest, Out(y), step);
  CHECK(same_bits(y, dropped(x, 0.3, kKey)));
  kernels::dropout_backward(x, 0.3, rest, Out(grad_x), step);
  CHECK(same_bits(grad_x, y));
  CHECK_FALSE(same_bits(dropped(x, 0.3, rest), y));
  for (const Tensor& bad : {Tensor::zeros({1}), Tensor::zeros({2}, {.dtype = DType::i64})})
    CHECK_THAT(error_of([&] { kernels::dropout_forward(x, 0.3, rest, Out(y), bad); }),
               ContainsText("dropout: the step must be one i64 on cpu, got"));
}
