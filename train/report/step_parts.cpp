#include "tandem/train/report/step_parts.h"

#include "tandem/train/plot/svg.h"
#include "tandem/train/report/step_drawing.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::train::report {

namespace {

constexpr double kWide = 1020.0, kNarrow = 340.0;

bool has_phase(const StepTrace& step, std::string_view name) {
  return std::ranges::any_of(step.ranks, [&](const StepOfRank& rank) {
    return std::ranges::any_of(rank.work, [&](const StepSpan& span) { return span.depth == 0 && span.name == name; });
  });
}

}  // namespace

std::string_view step_style() {
  return ".named-key { display: inline-block; margin-right: 18px; } .card svg { max-width: none; } .narrow-only { "
         "display: none; }\n"
         "@media screen and (max-width: 720px) { .wide-only { display: none; } .narrow-only { display: block; } }\n";
}

void add_picture(HtmlWriter& html, const std::string& description, double height, const DrawOfWidth& draw) {
  for (const auto& [kind, width] : {std::pair{"wide-only", kWide}, std::pair{"narrow-only", kNarrow}}) {
    html.open("div", {{"class", kind}});
    html.markup(plot::svg_picture({width, height}, description, plot::SvgKind::inline_,
                                  [&, width = width](plot::Canvas& canvas) { draw(canvas, width); }));
    html.close();
  }
}

void add_keys(HtmlWriter& html, const std::vector<std::pair<std::string, std::string>>& keys) {
  html.open("p", {{"class", "note"}});
  for (const auto& [name, text] : keys) {
    html.open("span", {{"class", "named-key"}});
    html.element("span", "", {{"class", "key"}, {"style", fmt::format("background: var(--{})", colour_of(name).name)}});
    html.text(text);
    html.close();
  }
  html.close();
}

void add_step_picture(HtmlWriter& html, const StepTrace& step) {
  add_picture(html, "What each rank computes and exchanges over the time of the step", height_of_step(step),
              [&](plot::Canvas& canvas, double width) { draw_step(canvas, step, width); });
  std::vector<std::pair<std::string, std::string>> keys;
  for (const char* const phase : {"data", "forward", "backward", "communication", "optimizer"})
    if (has_phase(step, phase))
      keys.emplace_back(phase, phase == std::string_view("communication") ? "communication and buckets" : phase);
  add_keys(html, keys);
}

}  // namespace tandem::train::report
