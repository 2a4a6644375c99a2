// Its output is an object a line.
#include "apps/study/bench_run.h"

#include "tandem/train/report/json_fields.h"

#include <cmath>
#include <sstream>

namespace tandem::study {

train::report::NumberTable bench_figures(const std::string& output) {
  using train::report::Json;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;
    const Json json = train::parse_json(line);
    const Json* const in_place = train::report::find_field(json, "in_place");
    if (in_place == nullptr) continue;
    const double seconds = train::report::number_field(*in_place, "seconds");
    if (!std::isfinite(seconds)) continue;
    return {{"all_reduce_seconds", seconds}, {"bus_bandwidth", train::report::number_field(*in_place, "busbw")}};
  }
  return {};
}

}  // namespace tandem::study
