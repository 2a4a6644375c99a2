// Where ticks are, and what they say.
#include "tandem/train/plot/ticks.h"

#include "tests/support/catch.h"

#include "tandem/core/error.h"

#include <cmath>
#include <limits>

using namespace tandem::train::plot;

namespace {

std::vector<std::string> texts(const std::vector<double>& ticks, double step, Unit unit = Unit::none) {
  std::vector<std::string> all;
  for (const double tick : ticks) all.push_back(tick_text(tick, step, unit));
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("plot: linear ticks are multiples of 1, 2 and 5") {
  CHECK(texts(linear_ticks(0.0, 1.0), tick_step(0.0, 1.0, 5)) == Texts{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(linear_ticks(0.013, 0.094), tick_step(0.013, 0.094, 5)) == Texts{"0.02", "0.04", "0.06", "0.08"});
  CHECK(texts(linear_ticks(-1.0, 1.0, 4), tick_step(-1.0, 1.0, 4)) == Texts{"-1.0", "-0.5", "0.0", "0.5", "1.0"});
  CHECK(texts(linear_ticks(62.0, 100.0), 10.0, Unit::percent) == Texts{"70 %", "80 %", "90 %", "100 %"});
  CHECK(texts(linear_ticks(0.0, 50000.0), 10000.0) == Texts{"0", "10k", "20k", "30k", "40k", "50k"});
  CHECK(texts(linear_ticks(1.0, 30.0), tick_step(1.0, 30.0, 5)) == Texts{"10", "20", "30"});
}

TEST_CASE("plot: ticks of a range that is rounding do not run away") {
  const double one = 1.0, next = std::nextafter(1.0, 2.0);
  CHECK(linear_ticks(one, next).size() <= 12);
  CHECK(linear_ticks(1e300, 1.5e300).size() >= 2);
}

TEST_CASE("plot: logarithmic ticks are 1, 2 and 5 times powers, or powers, or linear") {
  CHECK(log_ticks(0.09, 3.0) == std::vector<double>{0.1, 0.2, 0.5, 1.0, 2.0});
  const std::vector<double> powers = log_ticks(1e-6, 1e6);
  REQUIRE(powers.size() == 7);  // every second one of 13
  CHECK(powers[0] == Approx(1e-6));
  CHECK(powers[1] == Approx(1e-4));
  CHECK(log_ticks(3.0, 4.0).size() >= 2);
}

TEST_CASE("plot: logarithmic ticks of bytes are powers of two") {
  CHECK(log_ticks_of_bytes(3.0, 40.0) == std::vector<double>{4.0, 8.0, 16.0, 32.0});
  CHECK(texts(log_ticks_of_bytes(4.0, 0x1p28), 1.0, Unit::bytes) ==
        Texts{"16 B", "256 B", "4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB"});
  CHECK(texts(log_ticks_of_bytes(1.0, 0x1p40, 5), 1.0, Unit::bytes) ==
        Texts{"1 B", "1 KiB", "1 MiB", "1 GiB", "1 TiB"});
  CHECK(log_ticks_of_bytes(5.0, 7.0).size() >= 2);
}

TEST_CASE("plot: ticks that are close differ, whatever their size and unit") {
  constexpr double kMiB = 0x1p20;
  CHECK(texts({100.0 * kMiB, 100.02 * kMiB}, 0.02 * kMiB, Unit::bytes) == Texts{"100 MiB", "100.02 MiB"});
  CHECK(texts({1000.0, 1100.0}, 100.0, Unit::bytes) == Texts{"1000 B", "1.07 KiB"});
  CHECK(texts({1.0001e-5, 1.0002e-5}, 1e-9) == Texts{"1.0001e-05", "1.0002e-05"});
  CHECK(texts({1.00005e16, 1.0001e16}, 5e11) == Texts{"1.00005e+16", "1.0001e+16"});
  CHECK(texts({1e-5, 2e-5}, 1e-5) == Texts{"1e-05", "2e-05"});
  CHECK(texts({0.0, 1e-20, 1.5e20}, 1e-20, Unit::percent) == Texts{"0 %", "1e-20 %", "1.5e+20 %"});
  CHECK(texts({1e-15, 2e-15}, 1e-15, Unit::seconds) == Texts{"1e-15 s", "2e-15 s"});
  CHECK(texts({0x1p140}, 0x1p140, Unit::bytes) == Texts{"1.27e+30 TiB"});
}

TEST_CASE("plot: bounds that make no axis are refused") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(linear_ticks(1.0, 1.0), tandem::Error);
  CHECK_THROWS_AS(linear_ticks(nan, 1.0), tandem::Error);
  CHECK_THROWS_AS(linear_ticks(0.0, infinity), tandem::Error);
  CHECK_THROWS_AS(linear_ticks(-1.7e308, 1.7e308), tandem::Error);
  CHECK_THROWS_AS(log_ticks(0.0, 1.0), tandem::Error);
  CHECK_THROWS_AS(log_ticks_of_bytes(0.0, 1.0), tandem::Error);
}

TEST_CASE("plot: numbers for people") {
  CHECK(number_text(0.0312) == "0.0312");
  CHECK(number_text(241898) == "241,898");
  CHECK(number_text(-1234567) == "-1,234,567");
  CHECK(number_text(999.4) == "999.4");
  CHECK(number_text(92.45, Unit::percent) == "92.45 %");
  CHECK(number_text(100.0, Unit::percent) == "100 %");
  CHECK(number_text(1.5 * (1 << 30), Unit::bytes) == "1.5 GiB");
  CHECK(number_text(1 << 20, Unit::bytes) == "1 MiB");
  CHECK(number_text(512, Unit::bytes) == "512 B");
  CHECK(number_text(0.0042, Unit::seconds) == "4.2 ms");
  CHECK(number_text(125.0, Unit::seconds) == "2 min 5 s");
  CHECK(number_text(3600.0 * 26 + 61, Unit::seconds) == "26 h 1 min");
  CHECK(number_text(std::nan("")) == "\xE2\x80\x93");
  // What is rounded to 1000 or 1024 of a unit is 1 of the next; nothing is nothing.
  CHECK(number_text(0.9994, Unit::seconds) == "999 ms");
  CHECK(number_text(0.9996, Unit::seconds) == "1 s");
  CHECK(number_text(9.996e-4, Unit::seconds) == "1 ms");
  CHECK(number_text(1023.96 * 1024, Unit::bytes) == "1 MiB");
  CHECK(number_text(1023.9 * 1024, Unit::bytes) == "1023.9 KiB");
  CHECK(number_text(999.96) == "1,000");
  CHECK(number_text(0.0, Unit::seconds) == "0 s");
  CHECK(number_text(-0.001, Unit::percent) == "0.00 %");
  CHECK(number_text(1e300, Unit::percent) == "1e+300 %");
  CHECK(number_text(1e300, Unit::seconds) == "1e+300 s");
  CHECK(number_text(0x1p140, Unit::bytes) == "1.268e+30 TiB");
}
