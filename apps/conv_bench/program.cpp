// From settings to reports.
#include "apps/conv_bench/program.h"

#include "apps/conv_bench/count.h"
#include "apps/conv_bench/reports.h"
#include "tandem/core/error.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/layers/file.h"
#include "tandem/train/tuning_file.h"

namespace tandem::conv_bench {

namespace {

/// A file that cannot be written is found out before minutes of work, not after.
void check_writable(const std::string& path) {
  if (!path.empty()) layers::AtomicFile probe(path);
}

}  // namespace

int run_program(const BenchSettings& settings, std::FILE* out, std::FILE* problems) {
  check_writable(settings.json_file);
  check_writable(settings.svg_file);
  if (settings.count) return run_count(settings, out, problems);
  kernels::conv_tuner().set_measuring(settings.autotune);
  fmt::print(out, "{}", table_heading(settings));
  const Report report = run_bench(settings, [&](const std::vector<Result>& of_layer, const Report& so_far) {
    fmt::print(out, "{}", table_rows(of_layer));
    std::fflush(out);
    if (settings.json_file.empty()) return;
    BenchSettings now = settings;
    now.ceilings = so_far.ceilings;
    layers::write_file(settings.json_file, json_report(now, so_far));
  });
  fmt::print(out, "{}", table_summary(report.results));
  BenchSettings found = settings;
  found.ceilings = report.ceilings;
  if (found.ceilings.source != settings.ceilings.source) fmt::print(out, "{}", raised_ceilings(settings, report));
  if (settings.autotune) fmt::print(out, "\nchosen by measurement:\n{}", train::tuning_table());
  if (!settings.json_file.empty()) layers::write_file(settings.json_file, json_report(found, report));
  if (!settings.svg_file.empty()) layers::write_file(settings.svg_file, svg_report(found, report.results));
  return tell_problems(report, problems);
}

}  // namespace tandem::conv_bench
