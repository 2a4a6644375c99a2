// Winograd convolution: how images are cut into tiles, and which products these need.
#include "tandem/kernels/conv/winograd/blocks.h"
#include "tandem/kernels/conv/winograd/choice.h"
#include "tests/support/catch.h"

#include <set>
#include <tuple>

using tandem::kernels::ConvGeometry;
namespace winograd = tandem::kernels::winograd;

namespace {

ConvGeometry outputs(std::int64_t n, std::int64_t p, std::int64_t q) {
  ConvGeometry g{};
  g.n = n, g.p = p, g.q = q;
  return g;
}

/// Of all frequencies, those that tiles [begin, end) have within reach, counted one by one.
template <int kOutputs>
std::int64_t within_reach(const winograd::Tiles<kOutputs>& tiles, int row, int column, std::int64_t begin,
                          std::int64_t end) {
  constexpr int kLast = kOutputs + 1;
  std::int64_t count = 0;
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const winograd::Reach reach = tiles.place(tile).reach;
    count += (row < kLast || reach.last_row) && (column < kLast || reach.last_column);
  }
  return count;
}

template <int kOutputs>
void check_tiles(const ConvGeometry& g) {
  INFO(g.n << " images of " << g.p << " x " << g.q << " outputs, tiles of " << kOutputs);
  constexpr int kSize = kOutputs + 2;
  const winograd::Tiles<kOutputs> tiles(g);
  const winograd::ProductsPerImage products(g, kOutputs);

  // Each tile of each image comes once, and only one that an edge cuts leaves out frequencies.
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> places;
  for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
    const auto at = tiles.place(tile);
    REQUIRE((at.image >= 0 && at.image < g.n && at.row >= 0 && at.row < g.p && at.column >= 0 && at.column < g.q));
    REQUIRE((at.row % kOutputs == 0 && at.column % kOutputs == 0));
    CHECK(at.reach.last_row == (!products.leaves_out() || at.row + kOutputs <= g.p));
    CHECK(at.reach.last_column == (!products.leaves_out() || at.column + kOutputs <= g.q));
    places.insert({at.image, at.row, at.column});
  }
  const std::int64_t down = (g.p + kOutputs - 1) / kOutputs, across = (g.q + kOutputs - 1) / kOutputs;
  CHECK(tiles.count() == g.n * down * across);
  CHECK(static_cast<std::int64_t>(places.size()) == tiles.count());

  // A frequency's range holds the tiles that need it, and no other, whatever block of tiles is looked at.
  std::int64_t all = 0;
  for (int f = 0; f < kSize * kSize; ++f) {
    const int row = f / kSize, column = f % kSize;
    all += tiles.needing(row, column, 0, tiles.count()).count();
    for (std::int64_t begin = 0; begin < tiles.count(); ++begin)
      for (std::int64_t end = begin; end <= tiles.count(); ++end) {
        const auto range = tiles.needing(row, column, begin, end);
        REQUIRE((begin <= range.begin && range.begin <= range.end && range.end <= end));
        REQUIRE(range.count() == within_reach(tiles, row, column, begin, end));
        REQUIRE(range.count() == within_reach(tiles, row, column, range.begin, range.end));
      }
  }
  CHECK(all == g.n * products.done());
}

}  // namespace

TEST_CASE("winograd: tiles cover the images, and each frequency is multiplied for those that need it") {
  for (const std::int64_t n : {1, 2})
    for (std::int64_t p = 1; p <= 9; ++p)
      for (const std::int64_t q : {1, 2, 3, 4, 5, 7, 8}) {
        check_tiles<2>(outputs(n, p, q));
        check_tiles<4>(outputs(n, p, q));
      }
}

TEST_CASE("winograd: images of many tiles, few of which an edge cuts, leave out nothing") {
  CHECK_FALSE(winograd::ProductsPerImage(outputs(1, 31, 29), 4).leaves_out());
  check_tiles<4>(outputs(1, 31, 29));
  CHECK_FALSE(winograd::ProductsPerImage(outputs(1, 19, 17), 2).leaves_out());
  check_tiles<2>(outputs(1, 19, 17));
}

TEST_CASE("winograd: products of an image leave out those that no output needs") {
  const auto done = [](std::int64_t p, std::int64_t q, std::int64_t tile) {
    return winograd::ProductsPerImage(outputs(1, p, q), tile).done();
  };
  CHECK(done(8, 8, 4) == 12 * 12);
  CHECK(done(7, 8, 4) == 11 * 12);
  CHECK(done(3, 5, 4) == 5 * 11);
  CHECK(done(2, 1, 2) == 4 * 3);
  CHECK(done(17, 13, 2) == 35 * 27);  // a sixteenth fewer than 36 * 28, just enough
  CHECK(done(19, 19, 4) == 29 * 29);
  CHECK(done(23, 23, 4) == 36 * 36);  // 35 * 35 would be 5 % fewer
  CHECK(done(31, 31, 4) == 48 * 48);
  // What decides between the tiles: F(2x2, 3x3) where F(4x4, 3x3) would multiply more often.
  CHECK(winograd::prefers_large_tiles(outputs(1, 3, 3)));
  CHECK(winograd::prefers_large_tiles(outputs(1, 5, 5)));
  CHECK_FALSE(winograd::prefers_large_tiles(outputs(1, 2, 2)));
  CHECK_FALSE(winograd::prefers_large_tiles(outputs(1, 1, 7)));
  CHECK_FALSE(winograd::prefers_large_tiles(outputs(1, 2, 8)));
  CHECK_FALSE(winograd::prefers_large_tiles(outputs(1, 8, 2)));
}
