// Charts of figures that are not as one would wish, on both backends.
#include "tandem/train/plot/bars.h"
#include "tandem/train/plot/heat_map.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/markup.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/png.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/plot/text_width.h"

#include "tests/support/catch.h"

#include "tandem/core/error.h"

#include <cmath>
#include <limits>

using namespace tandem::train::plot;
using tandem::test::ContainsText;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// The SVG; it must have no figure that is none, and cairo must draw the same.
std::string drawn(const LineChart& chart, Size size = {400.0, 250.0}) {
  const Drawing draw = [&](Canvas& canvas) { draw_line_chart(canvas, {0.0, 0.0, size.width, size.height}, chart); };
  std::string svg = svg_picture(size, chart.title, SvgKind::file, draw);
  CHECK(count_of(svg, "nan") == 0);
  CHECK(count_of(svg, "inf") == 0);
  CHECK(svg.ends_with("</svg>\n"));
  if (has_png_pictures()) CHECK(png_picture(size, 1.0, draw).starts_with("\x89PNG"));
  return svg;
}

LineChart chart_of(std::vector<double> y, bool logarithmic = false) {
  std::vector<double> x;
  for (std::size_t i = 0; i < y.size(); ++i) x.push_back(static_cast<double>(i));
  LineChart chart;
  chart.y.logarithmic = logarithmic;
  chart.series.push_back({"loss", kTest, x, std::move(y)});
  return chart;
}

/// Lines that are as wide as those of series.
std::size_t lines_in(const std::string& svg) { return count_of(svg, "stroke-width=\"2\""); }

}  // namespace

TEST_CASE("plot: a line is broken where a figure is none, and a lone figure is a dot") {
  const std::string svg = drawn(chart_of({1.0, 2.0, kNan, 3.0, kInf, 2.0, 1.0, -kInf}));
  CHECK(lines_in(svg) == 2);
  CHECK(count_of(svg, "<circle") == 1);
  CHECK_THAT(svg, ContainsText(">loss</text>"));
}

TEST_CASE("plot: nothing, one point and one figure again and again are drawn") {
  CHECK(lines_in(drawn(chart_of({}))) == 0);
  CHECK(count_of(drawn(chart_of({7.0})), "<circle") == 1);
  CHECK(lines_in(drawn(chart_of({0.25, 0.25, 0.25}))) == 1);
  CHECK(lines_in(drawn(chart_of({0.0, 0.0}))) == 1);
  CHECK(lines_in(drawn(chart_of({kNan, kNan}))) == 0);
  CHECK(lines_in(drawn(chart_of({1e308, -1e308, 1.0, 2.0}))) == 1);
  CHECK(lines_in(drawn(LineChart{})) == 0);
}

TEST_CASE("plot: a logarithmic axis leaves out what is not positive") {
  const std::string svg = drawn(chart_of({1.0, 0.1, 0.0, -3.0, 0.01, 0.001}, true));
  CHECK(lines_in(svg) == 2);
  for (const char* const tick : {">0.001</text>", ">0.1</text>", ">1</text>"}) CHECK_THAT(svg, ContainsText(tick));
  CHECK(lines_in(drawn(chart_of({0.0, -1.0}, true))) == 0);
}

TEST_CASE("plot: an axis of bytes has round numbers of its unit") {
  LineChart chart = chart_of({0.0, 60.0 * 1024 * 1024});
  chart.y.unit = Unit::bytes;
  for (const char* const tick : {">20 MiB</text>", ">40 MiB</text>", ">60 MiB</text>"})
    CHECK_THAT(drawn(chart), ContainsText(tick));
}

TEST_CASE("plot: a million points become a small picture") {
  std::vector<double> y(1'000'000);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(static_cast<double>(i));
  CHECK(drawn(chart_of(std::move(y))).size() < 60'000);
}

TEST_CASE("plot: bands, and tables that do not fit are refused") {
  LineChart chart = chart_of({1.0, 2.0, 3.0});
  chart.series[0].low = {0.5, kNan, kNan};
  chart.series[0].high = {1.5, 2.5, 3.5};
  CHECK(count_of(drawn(chart), "fill-opacity=\"0.15\"") == 0);  // one point makes no area
  chart.series[0].low = {0.5, 1.5, 2.5};
  CHECK(count_of(drawn(chart), "fill-opacity=\"0.15\"") == 1);
  chart.series[0].high.pop_back();
  CHECK_THROWS_AS(drawn(chart), tandem::Error);
}

TEST_CASE("plot: names stand apart, are cut, and go into a legend where there are many") {
  LineChart chart;
  for (int i = 0; i < 3; ++i)
    chart.series.push_back({std::string(i == 0 ? 500 : 3, 'w'), series_colour(0), {0.0, 1.0}, {0.0, 1.0}});
  const std::string svg = drawn(chart);
  CHECK_THAT(svg, ContainsText("w\xE2\x80\xA6</text>"));
  CHECK(svg.find(std::string(40, 'w')) == std::string::npos);
  for (int i = 0; i < 40; ++i)
    chart.series.push_back(
        {"run " + std::to_string(i), series_colour(static_cast<std::size_t>(i)), {0.0, 1.0}, {0.0, 1.0}});
  CHECK_THAT(drawn(chart), ContainsText(">and 20 more</text>"));
}

TEST_CASE("plot: a legend shows dashes where a colour comes again") {
  LineChart chart;
  for (std::size_t i = 0; i < 9; ++i)
    chart.series.push_back({"layer " + std::to_string(i), series_colour(i), {0.0, 1.0}, {0.0, 1.0}});
  const std::size_t squares = count_of(drawn(chart), "<rect");
  CHECK(count_of(drawn(chart), "stroke-dasharray") == 0);
  chart.series[8].dashed = true;
  CHECK(count_of(drawn(chart), "stroke-dasharray") == 2);  // of the line and of its name
  CHECK(count_of(drawn(chart), "<rect") == squares - 1);
}

TEST_CASE("plot: a logarithmic axis of close figures has ticks that differ") {
  LineChart chart = chart_of({1.2, 1.8}, true);
  for (const char* const tick : {">1.2</text>", ">1.4</text>", ">1.6</text>", ">1.8</text>"})
    CHECK_THAT(drawn(chart), ContainsText(tick));
  chart = chart_of({1.101, 1.103}, true);
  chart.y.unit = Unit::seconds;
  CHECK_THAT(drawn(chart), ContainsText(">1.102 s</text>"));
  chart = chart_of({5.0, 40.0}, true);
  for (const char* const tick : {">5</text>", ">10</text>", ">20</text>"}) CHECK_THAT(drawn(chart), ContainsText(tick));
}

TEST_CASE("plot: a logarithmic axis takes figures whose quotient no double holds") {
  LineChart chart = chart_of({1e-250, 1.0, 1e250}, true);
  CHECK(lines_in(drawn(chart)) == 1);
  chart.x.logarithmic = true;
  chart.series[0].x = {1e-250, 1.0, 1e250};
  CHECK(lines_in(drawn(chart)) == 1);
  CHECK_NOTHROW(drawn(chart_of({1.1e-300, 9e299}, true)));
}

TEST_CASE("plot: where ticks have not room enough, the powers of ten stay") {
  LineChart chart;
  chart.x.logarithmic = true;
  chart.series.push_back({"loss", kTest, {1024.0, 4194304.0}, {1.0, 2.0}});
  const std::string svg = drawn(chart);
  for (const char* const tick : {">10k</text>", ">100k</text>", ">1M</text>"}) CHECK_THAT(svg, ContainsText(tick));
}

TEST_CASE("plot: of series with one colour, the second is dashed") {
  for (std::size_t i = 0; i < 8; ++i) CHECK_FALSE(is_series_dashed(i));
  for (std::size_t i = 8; i < 16; ++i) CHECK(is_series_dashed(i));
  CHECK(series_colour(8).value == series_colour(0).value);
}

TEST_CASE("plot: whole numbers at an axis have no decimals") {
  LineChart chart = chart_of({3.0, 2.0, 1.0, 0.5});
  chart.x.whole = true;
  const std::string svg = drawn(chart);
  for (const char* const tick : {">0</text>", ">1</text>", ">2</text>", ">3</text>"})
    CHECK_THAT(svg, ContainsText(tick));
  CHECK(svg.find(">2.0</text>") == std::string::npos);
}

TEST_CASE("plot: text is escaped, and what is no text is replaced") {
  CHECK(escaped("<script>&\"'") == "&lt;script&gt;&amp;&quot;&#39;");
  CHECK(escaped("a\tb\nc") == "a\tb\nc");
  CHECK(escaped(std::string("a\0b\x1b", 4)) ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD");
  CHECK(escaped("\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80") == "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(escaped("\xC3") == "\xEF\xBF\xBD");
  CHECK(escaped("\xED\xA0\x80").find('\xED') == std::string::npos);  // half of a pair of UTF-16
  CHECK(escaped("\xC0\xAF").find('\xC0') == std::string::npos);      // a longer way to write '/'
  LineChart chart = chart_of({1.0, 2.0});
  chart.title = "<script>alert(1)</script>\xFF";
  const std::string svg = drawn(chart);
  CHECK(count_of(svg, "<script") == 0);
  CHECK_THAT(svg, ContainsText("&lt;script&gt;"));
}

TEST_CASE("plot: in a page, colours are variables; in a file, they are not") {
  const Drawing draw = [](Canvas& canvas) { canvas.rectangle({1.0, 2.0, 3.0, 4.0}, {kTraining}); };
  CHECK_THAT(svg_picture({9.0, 9.0}, "", SvgKind::inline_, draw), ContainsText("fill=\"var(--train, #2f6fbb)\""));
  const std::string file = svg_picture({9.0, 9.0}, "", SvgKind::file, draw);
  CHECK_THAT(file, ContainsText("fill=\"#2f6fbb\""));
  CHECK(file.find("var(") == std::string::npos);
}

TEST_CASE("plot: bars, stacks and heat maps take figures that are none") {
  const BarChart bars{{{"a", kNan, "?"}, {"b", -1.0, "-1"}, {"c", 2.0, "2"}}, kTest, 0.0};
  StackedChart stacks;
  stacks.layers = {{"a", kTest, {1.0, kNan, 2.0}}, {"b", kTraining, {1.0, 1.0, -3.0}}};
  HeatMap map{{"x", "y"}, {{3, 1}, {0, 0}}, "label", "prediction"};
  const std::string svg = svg_picture({400.0, 400.0}, "", SvgKind::file, [&](Canvas& canvas) {
    draw_bar_chart(canvas, {0.0, 0.0, 400.0, 100.0}, bars);
    draw_stacked_chart(canvas, {0.0, 100.0, 400.0, 100.0}, stacks);
    draw_stacked_chart(canvas, {0.0, 100.0, 400.0, 100.0}, {});
    draw_heat_map(canvas, {0.0, 200.0, 200.0, 200.0}, map);
  });
  CHECK(count_of(svg, "nan") == 0);
  CHECK(count_of(svg, "<title>c: 2</title>") == 1);
  CHECK(count_of(svg, "<title>a: ") == 2);
  map.counts.pop_back();
  CHECK_THROWS_AS(svg_picture({9.0, 9.0}, "", SvgKind::file,
                              [&](Canvas& canvas) { draw_heat_map(canvas, {0.0, 0.0, 200.0, 200.0}, map); }),
                  tandem::Error);
}

TEST_CASE("plot: a bar shows how far its value varies where that is told") {
  const auto lines_of = [](double deviation) {
    const BarChart bars{{{"a", 3.0, "3", deviation}, {"b", 4.0, "4"}}, kTest, 0.0};
    return count_of(svg_picture({400.0, 60.0}, "", SvgKind::file,
                                [&](Canvas& canvas) { draw_bar_chart(canvas, {0.0, 0.0, 400.0, 60.0}, bars); }),
                    "fill=\"none\" stroke");
  };
  CHECK(lines_of(0.0) == 0);
  CHECK(lines_of(kNan) == 0);
  CHECK(lines_of(2.0) == 1);
}

TEST_CASE("plot: of many columns, neighbours are drawn as one") {
  StackedChart stacks;
  stacks.layers = {{"a", kTest, std::vector<double>(100'000, 1.0)}};
  const std::string svg = svg_picture({400.0, 200.0}, "", SvgKind::file, [&](Canvas& canvas) {
    draw_stacked_chart(canvas, {0.0, 0.0, 400.0, 200.0}, stacks);
  });
  CHECK(count_of(svg, "<rect") < 130);
}

TEST_CASE("plot: text that is cut fits") {
  CHECK(cut_to_width("short", 12.0, 100.0) == "short");
  const std::string cut = cut_to_width(std::string(200, 'x'), 12.0, 100.0);
  CHECK(text_width(cut, 12.0) <= 100.0 + 12.0 * 0.4);
  CHECK(cut.ends_with("\xE2\x80\xA6"));
  CHECK(cut_to_width("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC", 12.0, 30.0).find("\xC3\xE2") ==
        std::string::npos);
}

TEST_CASE("plot: pictures as PNG, or the reason why there are none") {
  const Drawing draw = [](Canvas& canvas) { canvas.text({1.0, 9.0}, "\xFF text", {kInk}); };
  if (has_png_pictures()) {
    CHECK(png_picture({30.0, 20.0}, 2.0, draw).substr(16, 8) == std::string("\0\0\0\x3c\0\0\0\x28", 8));
  } else {
    CHECK_THROWS_WITH(png_picture({30.0, 20.0}, 2.0, draw), ContainsText("libcairo2-dev"));
  }
}
