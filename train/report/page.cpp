// Head, foot and the parts that recur.
#include "tandem/train/report/page.h"

#include "tandem/train/plot/svg.h"
#include "tandem/train/report/style.h"

namespace tandem::train::report {

void begin_page(HtmlWriter& html, const std::string& title, std::string_view style, Scripts scripts) {
  html.open("html", {{"lang", "en"}});
  html.open("head");
  html.empty_element("meta", {{"charset", "utf-8"}});
  // Nothing is loaded.
  const std::string allowed = scripts == Scripts::of_this_page ? "; script-src 'unsafe-inline'" : "";
  html.empty_element("meta", {{"http-equiv", "Content-Security-Policy"},
                              {"content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:" + allowed}});
  html.empty_element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  html.empty_element("link", {{"rel", "icon"}, {"href", "data:,"}});
  html.element("title", title);
  html.open("style");
  html.markup(style_sheet());
  html.markup(style);
  html.close();
  html.close();
  html.open("body");
  html.open("main");
}

std::string end_page(HtmlWriter& html, std::string_view foot) {
  html.element("footer", foot);
  html.close();
  html.close();
  html.close();
  return html.take();
}

void begin_card(HtmlWriter& html, const char* kind) { html.open("div", {{"class", kind}}); }

void add_chart(HtmlWriter& html, const plot::LineChart& chart) {
  const plot::Size size{kChartWidth, 226.0 + plot::height_of_names(chart, kChartWidth)};
  plot::LineChart untitled = chart;
  untitled.title.clear();
  begin_card(html);
  html.element("h3", chart.title);
  html.markup(plot::svg_picture(size, chart.title, plot::SvgKind::inline_, [&](plot::Canvas& canvas) {
    draw_line_chart(canvas, {0.0, 0.0, size.width, size.height}, untitled);
  }));
  html.close();
}

void add_pairs(HtmlWriter& html, const TextTable& table) {
  html.open("div", {{"class", "pairs"}});
  for (const auto& [name, value] : table) {
    html.open("div");
    html.element("span", name);
    html.element("b", value);
    html.close();
  }
  html.close();
}

void add_problems(HtmlWriter& html, const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  html.open("div", {{"class", "banner"}});
  html.element("p", "Not all of the run could be read:");
  for (const std::string& problem : problems) html.element("p", problem);
  html.close();
}

}  // namespace tandem::train::report
