// Lines of many points keep their shape.
#include "tandem/train/plot/thin.h"

#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>

using namespace tandem::train::plot;

TEST_CASE("plot: thinning keeps first, lowest, highest and last of a column, in order") {
  const std::vector<Point> points{{0.0, 5.0}, {0.2, 9.0}, {0.3, 6.0}, {0.5, 1.0}, {0.7, 4.0}, {0.9, 3.0}, {1.1, 7.0}};
  const std::vector<Point> kept = thinned(points);
  REQUIRE(kept.size() == 5);
  const double x[] = {0.0, 0.2, 0.5, 0.9, 1.1};
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].x == x[i]);
}

TEST_CASE("plot: a spike among a million points stays") {
  std::vector<Point> points;
  for (int i = 0; i < 1'000'000; ++i) points.push_back({400.0 * i / 1e6, std::sin(i * 0.01)});
  points[654'321].y = 50.0;
  points[123'456].y = -50.0;
  const std::vector<Point> kept = thinned(points);
  CHECK(kept.size() <= 4 * 400);
  const auto count = [&](double y) {
    return std::count_if(kept.begin(), kept.end(), [&](Point p) { return p.y == y; });
  };
  CHECK(count(50.0) == 1);
  CHECK(count(-50.0) == 1);
}

TEST_CASE("plot: few points stay as they are, and none are none") {
  CHECK(thinned({}).empty());
  const std::vector<Point> nowhere{{std::nan(""), 1.0}, {std::nan(""), 2.0}};
  CHECK(thinned(nowhere).size() == 2);
  const std::vector<Point> two{{3.0, 1.0}, {3.0, 1.0}};
  CHECK(thinned(two).size() == 2);
}
