// Whether the numbers of a confusion matrix can be read on each shade, on light, dark and printed pages.
#include "tests/support/catch.h"

#include "tandem/train/plot/heat_map.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/report/style.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace tandem::train;

namespace {

using Rgb = std::array<double, 3>;

Rgb rgb_of(const std::string& hex) {
  Rgb rgb{};
  for (std::size_t i = 0; i < 3; ++i) rgb.at(i) = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
  return rgb;
}

Rgb blended(const Rgb& below, const Rgb& above, double opacity) {
  Rgb rgb{};
  for (std::size_t i = 0; i < 3; ++i) rgb.at(i) = (1.0 - opacity) * below.at(i) + opacity * above.at(i);
  return rgb;
}

/// Relative luminance, as the Web Content Accessibility Guidelines define it.
double luminance(const Rgb& rgb) {
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
}

double contrast(const Rgb& a, const Rgb& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

/// A colour of the page, by the last of the style sheet's blocks that has it, which begin with these words.
Rgb colour_in(const std::vector<const char*>& blocks, const plot::Colour& colour) {
  std::string hex = colour.value;
  const std::string css(report::style_sheet());
  for (const char* const block : blocks) {
    const std::size_t begin = css.find(block);
    REQUIRE(begin != std::string::npos);
    const std::string text = css.substr(begin, css.find('}', begin) - begin);
    const std::string name = "--" + colour.name + ": ";
    if (!colour.name.empty() && text.find(name) != std::string::npos)
      hex = text.substr(text.find(name) + name.size(), 7);
  }
  return rgb_of(hex);
}

/// What is drawn, in order.
class Recorder final : public plot::Canvas {
 public:
  void line(std::span<const plot::Point>, const plot::Stroke&) override {}
  void polygon(std::span<const plot::Point>, const plot::Fill&) override {}
  void circle(plot::Point, double, const plot::Fill&, const std::string&) override {}
  void rectangles(std::span<const plot::Box> boxes, const plot::Fill& fill, const std::string&) override {
    for (const plot::Box& box : boxes) fills.emplace_back(box, fill);
  }
  void text(plot::Point at, const std::string&, const plot::TextStyle& style) override {
    texts.emplace_back(at, style.colour);
  }

  std::vector<std::pair<plot::Box, plot::Fill>> fills;
  std::vector<std::pair<plot::Point, plot::Colour>> texts;
};

/// The least contrast of a text that stands on a cell.
double least_contrast(const Recorder& drawn, const std::vector<const char*>& blocks) {
  double least = HUGE_VAL;
  for (const auto& [at, colour] : drawn.texts) {
    Rgb below = colour_in(blocks, plot::kPaper);
    std::size_t fills = 0;
    for (const auto& [box, fill] : drawn.fills) {
      const bool is_on = at.x > box.x && at.x < box.x + box.width && at.y > box.y && at.y < box.y + box.height;
      if (!is_on) continue;
      below = blended(below, colour_in(blocks, fill.colour), fill.opacity);
      ++fills;
    }
    if (fills > 1) least = std::min(least, contrast(below, colour_in(blocks, colour)));
  }
  return least;
}

}  // namespace

TEST_CASE("report: numbers in a confusion matrix can be read on every shade") {
  for (std::int64_t count = 1; count < 20; ++count) {
    const plot::HeatMap map{{"a", "b"}, {{count, 20 - count}, {0, 20}}, "label", "prediction"};
    Recorder drawn;
    draw_heat_map(drawn, {0.0, 0.0, 300.0, 300.0}, map);
    CAPTURE(count);
    const std::vector<const char*> light{":root {"}, dark{":root {", "dark) { :root {"},
        print{":root {", "print { :root {"}, printed_dark{":root {", "dark) { :root {", "print { :root {"};
    for (const auto& blocks : {light, dark, print, printed_dark}) {
      const double least = least_contrast(drawn, blocks);
      CHECK((least >= 4.5 && least < 22.0));
    }
  }
}
