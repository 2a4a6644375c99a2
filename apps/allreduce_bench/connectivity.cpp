#include "apps/allreduce_bench/connectivity.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace tandem::allreduce_bench {

namespace {

const std::string& host_of(const comm::Connectivity& all, int rank) {
  return all.hosts[static_cast<std::size_t>(rank)];
}

}  // namespace

std::string json_lines(const comm::Connectivity& all) {
  std::string text;
  for (const comm::PairReport& pair : pairs_of(all)) {
    nlohmann::ordered_json json = {{"from", pair.from}, {"to", pair.to}};
    json["from_host"] = host_of(all, pair.from);
    json["to_host"] = host_of(all, pair.to);
    json["reached"] = nullptr;
    if (pair.reach != comm::Reach::unknown) json["reached"] = pair.reach == comm::Reach::yes;
    const bool is_timed = pair.speed.seconds > 0.0;
    json["latency_seconds"] = nullptr;
    json["bandwidth"] = nullptr;
    if (is_timed) json["latency_seconds"] = pair.speed.seconds;
    if (is_timed) json["bandwidth"] = pair.speed.bytes_per_second;
    text += json.dump() + "\n";
  }
  return text;
}

std::string csv_report(const comm::Connectivity& all) {
  std::string text = "from,to,from_host,to_host,reached,latency_seconds,bandwidth\n";
  for (const comm::PairReport& pair : pairs_of(all)) {
    const std::string_view reached = pair.reach == comm::Reach::unknown ? ""
                                     : pair.reach == comm::Reach::yes   ? "1"
                                                                        : "0";
    text += fmt::format("{},{},{},{},{}", pair.from, pair.to, host_of(all, pair.from), host_of(all, pair.to), reached);
    text += pair.speed.seconds > 0.0 ? fmt::format(",{:.6g},{:.6g}\n", pair.speed.seconds, pair.speed.bytes_per_second)
                                     : ",,\n";
  }
  return text;
}

}  // namespace tandem::allreduce_bench
