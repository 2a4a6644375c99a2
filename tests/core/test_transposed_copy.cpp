// Copies that change which dimension is dense go by tiles; they are held against one element after the other.
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <array>
#include <vector>

using namespace tandem;

namespace {

/// Element i of a tensor whose numbers all differ as far as the dtype allows.
template <typename T>
std::vector<T> elements(std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = T(static_cast<float>(i % 251));
  return values;
}

template <typename T>
void check_all_orders() {
  const Tensor x = Tensor::from<T>(elements<T>(3 * 70 * 5 * 33), {3, 70, 5, 33});
  const std::vector<T> values = x.to_vector<T>();
  std::array<int, 4> order = {0, 1, 2, 3};
  do {
    const Tensor view = x.permute(order);
    std::vector<T> expected;
    std::array<std::int64_t, 4> at{};
    for (at[0] = 0; at[0] < view.size(0); ++at[0])
      for (at[1] = 0; at[1] < view.size(1); ++at[1])
        for (at[2] = 0; at[2] < view.size(2); ++at[2])
          for (at[3] = 0; at[3] < view.size(3); ++at[3]) {
            std::int64_t place = 0;
            for (std::size_t dim = 0; dim < 4; ++dim) place += at[dim] * view.stride(static_cast<int>(dim));
            expected.push_back(values[static_cast<std::size_t>(place)]);
          }
    const Tensor dense = view.contiguous();
    CHECK(std::equal(expected.begin(), expected.end(), dense.template data<T>()));
    // A part of a larger tensor, with what is around it left alone.
    const Tensor frame =
        Tensor::from<T>(std::vector<T>(static_cast<std::size_t>(x.numel() / view.size(3) * (view.size(3) + 2)), T{7}),
                        {view.size(0), view.size(1), view.size(2), view.size(3) + 2});
    frame.narrow(3, 1, view.size(3)).copy_from(view);
    CHECK(frame.narrow(3, 1, view.size(3)).template to_vector<T>() == expected);
    for (const std::int64_t edge : {std::int64_t{0}, view.size(3) + 1}) {
      const std::vector<T> left = frame.narrow(3, edge, 1).template to_vector<T>();
      CHECK(std::all_of(left.begin(), left.end(), [](T value) { return value == T{7}; }));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace

TEST_CASE("copies of permuted tensors have every element in its place, whatever its size") {
  check_all_orders<double>();
  check_all_orders<float>();
  check_all_orders<Half>();
  check_all_orders<std::uint8_t>();
}
