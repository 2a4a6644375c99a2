// Loop nests of CUDA kernels: what is merged, and how nests with too many elements for a 32-bit index are cut up.
#include "tandem/kernels/device/nest.h"
#include "tests/support/catch.h"

#include <vector>

using namespace tandem;
using device::HostNest;

namespace {

/// Where the `index`-th element of an operand stands; the plain way.
std::int64_t offset_of(const device::Nest<2>& nest, int operand, std::int64_t index) {
  std::int64_t offset = 0;
  for (int dim = 0; dim < nest.rank; ++dim) {
    offset += index % nest.sizes[dim] * nest.steps[operand][dim];
    index /= nest.sizes[dim];
  }
  return offset;
}

}  // namespace

TEST_CASE("nests merge dimensions that follow each other in all operands", "[nest]") {
  const Shape shape{2, 3, 4, 5};
  const Strides rows = dense_strides(shape, Layout::row_major), last = dense_strides(shape, Layout::channels_last);
  const HostNest<2> same(shape, {last, last}), other(shape, {rows, last}), broadcast(shape, {last, {0, 1, 0, 0}});
  CHECK(same.is_dense());
  CHECK(same.sizes() == Shape{120});
  CHECK_FALSE(other.is_dense());
  CHECK(other.sizes() == Shape{2, 3, 20});
  CHECK(broadcast.sizes() == Shape{40, 3});
  CHECK(broadcast.steps(1) == Strides{0, 1});
  CHECK(HostNest<1>({1, 1}, {Strides{7, 9}}).is_dense());
  CHECK(HostNest<1>({}, {Strides{}}).count() == 1);
  CHECK_FALSE(HostNest<1>({3}, {Strides{2}}).is_dense());
}

TEST_CASE("parts of a nest cover every element once, however small they must be", "[nest]") {
  const Shape shape{3, 2, 7};
  const HostNest<2> nest(shape, {Strides{14, 7, 1}, Strides{1, 3, 6}});
  for (const std::int64_t most : {1, 2, 5, 6, 13, 41, 42, 100}) {
    INFO(most << " elements at most");
    std::vector<int> visits(42);
    int wrong = 0;
    nest.for_each_part(
        [&](const device::Nest<2>& part, const std::array<std::int64_t, 2>& starts) {
          CHECK(part.count <= most);
          for (unsigned i = 0; i < part.count; ++i) {
            const std::int64_t first = starts[0] + offset_of(part, 0, i), second = starts[1] + offset_of(part, 1, i);
            ++visits[static_cast<std::size_t>(first)];
            wrong += second != first / 14 + first / 7 % 2 * 3 + first % 7 * 6;
          }
        },
        most);
    CHECK(wrong == 0);
    CHECK(std::all_of(visits.begin(), visits.end(), [](int n) { return n == 1; }));
  }
}

TEST_CASE("nests of more than 2^31 elements come in parts with 64-bit starts", "[nest]") {
  constexpr std::int64_t kRows = std::int64_t{1} << 32;
  const HostNest<2> nest({kRows, 3}, {Strides{3, 1}, Strides{0, 1}});
  std::int64_t covered = 0, last_start = 0;
  nest.for_each_part([&](const device::Nest<2>& part, const std::array<std::int64_t, 2>& starts) {
    CHECK(part.count <= 0x7fffffffu);
    CHECK(starts[0] == covered);
    covered += part.count;
    last_start = starts[0];
  });
  CHECK(covered == 3 * kRows);
  CHECK(last_start > kRows);
}
