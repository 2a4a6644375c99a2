// The layouts behind the tensor-core convolutions, exhaustively: no two lanes that go together meet in a bank, and what
// ldmatrix hands to a lane is what mma.m16n8k16 wants of it.
#include "tandem/core/half.h"
#include "tandem/kernels/conv/implicit_gemm/tile_layout.h"
#include "tests/support/catch.h"

#include <array>
#include <set>
#include <utility>
#include <vector>

namespace tandem::test {
namespace {

using namespace kernels::cuda::implicit_gemm;

constexpr int kBankGroups = 8;  // vectors of 16 bytes that all banks hold together

template <int kVectors>
void check_swizzle() {
  constexpr int kLines = 64;
  std::set<int> places;
  for (int line = 0; line < kLines; ++line)
    for (int vector = 0; vector < kVectors; ++vector) places.insert(device::swizzled<kVectors>(line, vector));
  CHECK(places.size() == std::size_t{kLines * kVectors});
  CHECK(*places.rbegin() == kLines * kVectors - 1);
  for (int first = 0; first < kLines * kVectors; first += kBankGroups) {  // eight neighbours
    std::set<int> groups;
    for (int i = first; i < first + kBankGroups; ++i)
      groups.insert(device::swizzled<kVectors>(i / kVectors, i % kVectors) % kBankGroups);
    CHECK(groups.size() == std::size_t{kBankGroups});
  }
  for (int vector = 0; vector < kVectors; ++vector) {  // eight lines
    for (int first = 0; first < kLines; first += kBankGroups) {
      std::set<int> groups;
      for (int line = first; line < first + kBankGroups; ++line)
        groups.insert(device::swizzled<kVectors>(line, vector) % kBankGroups);
      CHECK(groups.size() == std::size_t{kBankGroups});
    }
  }
}

/// What stands where in a tile: row * kStepDepth + depth.
template <typename T, typename Layout, int kSize>
std::vector<int> contents() {
  std::vector<int> tile(std::size_t{kSize} * kStepDepth<T>, -1);
  for (int row = 0; row < kSize; ++row) {
    for (int depth = 0; depth < kStepDepth<T>; ++depth) {
      const int line = Layout::kAlongDepth ? row : depth, along = Layout::kAlongDepth ? depth : row;
      tile[static_cast<std::size_t>(Layout::place(line, along / kVectorSize<T>) + along % kVectorSize<T>)] =
          row * kStepDepth<T> + depth;
    }
  }
  return tile;
}

/// The two numbers of `lane` after ldmatrix of matrix number `matrix`, whose row i begins at row_start(i).
template <typename RowStart>
std::pair<int, int> loaded(const std::vector<int>& tile, int lane, bool transposed, RowStart&& row_start) {
  const int g = lane / 4, t = lane % 4 * 2;
  const auto at = [&](int row, int column) { return tile[static_cast<std::size_t>(row_start(row) + column)]; };
  return transposed ? std::pair{at(t, g), at(t + 1, g)} : std::pair{at(g, t), at(g, t + 1)};
}

template <int kSize, bool kAlongDepth>
void check_halves() {
  using Layout = TileLayout<Half, kSize, kAlongDepth>;
  const std::vector<int> tile = contents<Half, Layout, kSize>();
  const auto check = [&](int row, int depth, auto&& place, auto&& wanted_row, auto&& wanted_depth) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::set<int> groups;
      for (int i = 0; i < 8; ++i) groups.insert(place(matrix * 8 + i, row, depth) / kVectorSize<Half> % kBankGroups);
      CHECK(groups.size() == std::size_t{kBankGroups});
      for (int lane = 0; lane < 32; ++lane) {
        const auto [low, high] =
            loaded(tile, lane, !kAlongDepth, [&](int i) { return place(matrix * 8 + i, row, depth); });
        const int expected = (row + wanted_row(matrix, lane)) * kStepDepth<Half> + depth + wanted_depth(matrix, lane);
        CHECK(low == expected);
        CHECK(high == expected + 1);
      }
    }
  };
  for (int row = 0; row < kSize; row += 16) {
    for (int depth = 0; depth < kStepDepth<Half>; depth += 16) {
      check(
          row, depth, Layout::left, [](int matrix, int lane) { return lane / 4 + matrix % 2 * 8; },
          [](int matrix, int lane) { return lane % 4 * 2 + matrix / 2 * 8; });
      check(
          row, depth, Layout::right, [](int matrix, int lane) { return lane / 4 + matrix / 2 * 8; },
          [](int matrix, int lane) { return lane % 4 * 2 + matrix % 2 * 8; });
    }
  }
}

/// f32 along depth, by ldmatrix: a lane gets the 32 bits of row lane / 4, number lane % 4.
template <int kSize>
void check_floats_along_depth() {
  using Layout = TileLayout<float, kSize, true>;
  const std::vector<int> tile = contents<float, Layout, kSize>();
  for (int row = 0; row < kSize; row += 16) {
    for (int depth = 0; depth < kStepDepth<float>; depth += 8) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        for (int lane = 0; lane < 32; ++lane) {
          const auto got = [&](auto&& place) {
            return tile[static_cast<std::size_t>(place(matrix * 8 + lane / 4, row, depth) + lane % 4)];
          };
          const auto wanted = [&](int down, int deeper) {
            return (row + lane / 4 + down * 8) * kStepDepth<float> + depth + lane % 4 + deeper * 4;
          };
          CHECK(got(Layout::left) == wanted(matrix % 2, matrix / 2));
          CHECK(got(Layout::right) == wanted(matrix / 2, matrix % 2));
        }
      }
    }
  }
}

/// f32 across depth, number by number: 32 lanes are in 32 banks.
template <int kSize>
void check_floats_across() {
  using Layout = TileLayout<float, kSize, false>;
  const std::vector<int> tile = contents<float, Layout, kSize>();
  for (int row = 0; row < kSize; row += 8) {
    for (int depth = 0; depth < kStepDepth<float>; depth += 4) {
      std::set<int> banks;
      for (int lane = 0; lane < 32; ++lane) {
        const int place = Layout::transposed(lane, row, depth);
        CHECK(Layout::transposed(lane, row % 32, depth) + row / 32 * 32 == place);
        CHECK(tile[static_cast<std::size_t>(place)] == (row + lane / 4) * kStepDepth<float> + depth + lane % 4);
        banks.insert(place % 32);
      }
      CHECK(banks.size() == 32);
    }
  }
}

}  // namespace

TEST_CASE("swizzled tiles keep neighbours and columns out of each other's banks", "[conv]") {
  check_swizzle<4>();
  check_swizzle<8>();
  check_swizzle<16>();
}

TEST_CASE("lanes get the shares of tensor-core operands that the instruction wants", "[conv]") {
  check_halves<32, true>();
  check_halves<64, true>();
  check_halves<128, true>();
  check_halves<32, false>();
  check_halves<64, false>();
  check_halves<128, false>();
  check_floats_along_depth<32>();
  check_floats_along_depth<64>();
  check_floats_along_depth<128>();
  check_floats_across<32>();
  check_floats_across<64>();
  check_floats_across<128>();
}

TEST_CASE("tensor-core tiles are chosen by the sizes", "[conv]") {
  CHECK(choose_tile(1, 8) == Tile::narrow);
  CHECK(choose_tile(1 << 20, 32) == Tile::narrow);
  CHECK(choose_tile(1 << 20, 40) == Tile::tall);
  CHECK(choose_tile(128 * 127, 64) == Tile::small);
  CHECK(choose_tile(128 * 127 + 1, 64) == Tile::tall);
  CHECK(choose_tile(128 * 127, 72) == Tile::tall);  // 254 blocks of 128 x 64
  CHECK(choose_tile(128 * 127 + 1, 72) == Tile::wide);
  CHECK(choose_tile(1 << 20, 128) == Tile::wide);
  CHECK(choose_tile(1 << 20, 192) == Tile::tall);  // a second wide tile would be half empty
  CHECK(choose_tile(64, 256) == Tile::small);
}

TEST_CASE("gradients of weights are cut into parts by the sizes", "[conv]") {
  for (const auto& [rows, columns, pixels] : {std::array{8, 72, 30}, std::array{64, 576, 1 << 19},
                                              std::array{128, 576, 1 << 17}, std::array{256, 2304, 1 << 15}}) {
    const WeightPlan plan = plan_weights(rows, columns, pixels, kStepDepth<Half>);
    const std::int64_t steps = tiles_along(pixels, kStepDepth<Half>);
    INFO(rows << " x " << columns << ", " << pixels << " pixels");
    CHECK(plan.tile == (rows > 64 ? Tile::wide : Tile::small));
    CHECK(plan.parts >= 1);
    CHECK((plan.parts - 1) * plan.part_steps < steps);
    CHECK(plan.parts * plan.part_steps >= steps);
  }
  CHECK(plan_weights(8, 72, 30, 64).parts == 1);
  CHECK(plan_weights(64, 576, 1 << 19, 64).parts == 28);  // 9 tiles: 252 blocks
  CHECK(plan_weights(8, 72, 64 * 4, 64).parts == 2);
  CHECK(plan_weights(8, 72, 64 * 4, kStepDepth<float>).parts == 4);
}

}  // namespace tandem::test
