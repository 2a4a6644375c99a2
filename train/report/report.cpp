// The page of one run, part by part.
#include "tandem/train/report/report.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/plot/png.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/comparison.h"
#include "tandem/train/report/curves.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>

namespace tandem::train {
namespace report {

std::string report_page(const RunData& run) {
  HtmlWriter html;
  begin_page(html, title_of(run));
  add_summary(html, run);
  add_verdict(html, run);
  add_curves(html, run);
  add_evaluation(html, run);
  add_worst_images(html, run);
  add_filters(html, run);
  add_layers(html, run);
  add_performance(html, run);
  add_scaling(html, run);
  add_profile(html, run);
  add_circumstances(html, run);
  return end_page(html);
}

}  // namespace report

ReportFiles write_report(const std::string& run_dir) {
  const report::RunData run = report::read_run(run_dir);
  const auto path_of = [&](const char* name) { return (std::filesystem::path(run_dir) / name).string(); };
  ReportFiles files{path_of("report.html"), path_of("curves.svg"), "", run.problems};
  if (const double seconds = report::seconds_of(run); run.is_whole && std::isfinite(seconds)) files.seconds = seconds;
  const auto draw = [&](plot::Canvas& canvas) { report::draw_curves(canvas, run); };
  layers::write_file(files.svg, plot::svg_picture(report::kCurvesSize, "Loss and accuracy of " + report::title_of(run),
                                                  plot::SvgKind::file, draw));
  if (plot::has_png_pictures()) {
    files.png = path_of("curves.png");
    layers::write_file(files.png, plot::png_picture(report::kCurvesSize, 2.0, draw));
  }
  layers::write_file(files.page, report::report_page(run));
  return files;
}

std::string reason_of_no_run(const std::string& folder) { return report::reason_of_no_run(folder); }

std::string write_comparison(const std::vector<std::string>& run_dirs, const std::string& path, int columns,
                             std::string* problem) {
  std::vector<report::RunData> runs;
  std::set<std::filesystem::path> seen;
  for (const std::string& folder : run_dirs) {
    std::error_code unknown;
    const auto place = std::filesystem::canonical(folder, unknown);
    if (unknown || seen.insert(place).second) runs.push_back(report::read_run(folder));
  }
  try {
    layers::write_file(path, report::comparison_page(runs));
  } catch (const Error& error) {
    if (problem == nullptr) throw;
    *problem = error.what();
  }
  return report::comparison_text(runs, columns);
}

}  // namespace tandem::train
