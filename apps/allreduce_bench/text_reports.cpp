// For programs: JSON and CSV.
#include "apps/allreduce_bench/reports.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tandem::allreduce_bench {

namespace {

/// In quotes where it has to be.
std::string field(const std::string& text) { return text.find(',') == std::string::npos ? text : '"' + text + '"'; }

std::string number(double value) { return fmt::format("{:.6g}", value); }

/// Of one form: seconds, least seconds, two bandwidths and the share of the roofline.
std::string form_fields(const BenchRow& row, const std::optional<BenchTime>& time, int ranks) {
  if (!time) return ",,,,";
  const bool has_rates = row.collective->has_bytes();
  return fmt::format("{},{},{},{},{}", number(time->median), number(time->least),
                     has_rates ? number(row.algorithm_bandwidth(*time)) : "",
                     has_rates ? number(row.bus_bandwidth(*time, ranks)) : "",
                     time->of_roofline > 0.0 ? number(time->of_roofline) : "");
}

}  // namespace

std::string json_line(const BenchRow& row, const BenchOptions& options, int ranks) {
  const BenchCollective& collective = *row.collective;
  const auto form = [&](const std::optional<BenchTime>& time) -> nlohmann::ordered_json {
    if (!time) return nullptr;
    nlohmann::ordered_json json = {{"seconds", time->median}, {"least_seconds", time->least}};
    if (collective.has_bytes()) {
      json["algbw"] = row.algorithm_bandwidth(*time);
      json["busbw"] = row.bus_bandwidth(*time, ranks);
    }
    if (time->of_roofline > 0.0) json["of_roofline"] = time->of_roofline;
    return json;
  };
  nlohmann::ordered_json json = {{"collective", collective.name}};
  if (collective.has_bytes()) json["dtype"] = name_of(options.dtype);
  if (collective.reduces) json["op"] = name_of(options.op);
  json["bytes"] = row.bytes;
  json["ranks"] = ranks;
  json["backend"] = row.backend;
  json["shared"] = row.shared;
  json["out_of_place"] = form(row.out_of_place);
  json["in_place"] = form(row.in_place);
  json["wrong"] = row.wrong;
  if (row.predicted > 0.0) json["predicted_seconds"] = row.predicted;
  if (!row.chosen.empty()) json["chosen"] = row.chosen;
  if (options.network) json["network"] = to_text(*options.network);
  return json.dump();
}

std::string csv_report(std::span<const BenchRow> rows, const BenchOptions& options, int ranks) {
  std::string text = "collective,dtype,op,bytes,ranks,backend,shared";
  for (const char* const form : {"out_of_place", "in_place"})
    text += fmt::format(",{0}_seconds,{0}_least_seconds,{0}_algbw,{0}_busbw,{0}_of_roofline", form);
  text += ",wrong,predicted_seconds,chosen,network\n";
  for (const BenchRow& row : rows) {
    const BenchCollective& collective = *row.collective;
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", collective.name,
                    collective.has_bytes() ? name_of(options.dtype) : "", collective.reduces ? name_of(options.op) : "",
                    row.bytes, ranks, field(row.backend), row.shared ? 1 : 0, form_fields(row, row.out_of_place, ranks),
                    form_fields(row, row.in_place, ranks), row.wrong, row.predicted > 0.0 ? number(row.predicted) : "",
                    row.chosen, options.network ? field(to_text(*options.network)) : "");
  }
  return text;
}

}  // namespace tandem::allreduce_bench
