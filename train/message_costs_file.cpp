// The file is JSON: {"format", "version", "groups": [{"key", "start", "shared_cores", "within_host": [[bytes, seconds],
// ...], "between_hosts": ..., "combine": ...}]}.
#include "tandem/train/message_costs_file.h"

#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/train/measured_file.h"
#include "tandem/train/process_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;
using comm::CostCurve;
using comm::CostPoint;
using comm::MessageCosts;

constexpr std::int64_t kMostBytes = 1 << 20;  // a group takes about a KiB
constexpr MeasuredFormat kFormat{"tandem message costs", 1, "file of message costs", "--tune-comm", kMostBytes};

struct Curve {
  const char* name;
  CostCurve MessageCosts::* member;
};
constexpr Curve kCurves[] = {{"within_host", &MessageCosts::within_host},
                             {"between_hosts", &MessageCosts::between_hosts},
                             {"combine", &MessageCosts::combine}};

Json to_json(const std::string& key, const MessageCosts& costs) {
  Json json{{"key", key}, {"start", costs.start}, {"shared_cores", costs.shared_cores}};
  for (const Curve& curve : kCurves) {
    Json points = Json::array();
    for (const CostPoint& point : (costs.*curve.member).points()) points.push_back({point.bytes, point.seconds});
    json[curve.name] = points;
  }
  return json;
}

MessageCosts from_json(const Json& json) {
  MessageCosts costs;
  costs.start = json.at("start").get<double>();
  require(std::isfinite(costs.start) && costs.start >= 0.0, "'start' is {}", costs.start);
  costs.shared_cores = json.at("shared_cores").get<int>();
  require(costs.shared_cores >= 0, "'shared_cores' is {}", costs.shared_cores);
  for (const Curve& curve : kCurves) {
    std::vector<CostPoint> points;
    for (const Json& point : json.at(curve.name))
      points.push_back({point.at(0).get<std::int64_t>(), point.at(1).get<double>()});
    require(!points.empty(), "'{}' has no points", curve.name);
    costs.*curve.member = CostCurve(std::move(points));
  }
  return costs;
}

}  // namespace

std::string message_costs_key(comm::ProcessGroup& group) {
  std::string processor;
  for (const DeviceDescription& description : list_devices())
    if (description.device == Device{}) processor = description.name;
  std::map<int, int> ranks_of_host;
  std::string first;
  for (const std::string& theirs : group.all_gather_bytes(fmt::format("{} {}", group.node(), processor))) {
    ++ranks_of_host[std::stoi(theirs)];
    if (first.empty()) first = theirs.substr(theirs.find(' ') + 1);
  }
  std::vector<int> counts;
  for (const auto& [node, count] : ranks_of_host) counts.push_back(count);
  std::string key = fmt::format("backend {}, ranks {}, {}", group.name(), fmt::join(counts, " + "), first);
  for (const auto& [name, version] : build_versions()) key += fmt::format(", {} {}", name, version);
  return group.all_gather_bytes(key).front();
}

LoadedCosts load_message_costs(const std::string& path, const std::string& key) {
  LoadedCosts loaded;
  loaded.problem = read_measured_file(path, kFormat, [&](const Json& json) {
    for (const Json& group : json.at("groups"))
      if (group.at("key").get<std::string>() == key) loaded.costs = from_json(group);
  });
  if (!loaded.problem.empty()) loaded.costs.reset();
  return loaded;
}

bool can_hold_message_costs(const std::string& path) { return can_hold_measured(path, kFormat); }

void save_message_costs(const std::string& path, const std::string& key, const MessageCosts& costs) {
  Json groups = Json::array();
  const std::string problem = read_measured_file(path, kFormat, [&](const Json& json) {
    for (const Json& group : json.at("groups"))
      if (group.at("key").get<std::string>() != key) groups.push_back(group);
  });
  if (!problem.empty()) groups = Json::array();
  groups.push_back(to_json(key, costs));
  write_measured_file(path, kFormat, {{"groups", groups}});
}

std::string describe(const MessageCosts& costs, const comm::ProcessGroup& group) {
  constexpr std::int64_t kSmall = 4, kSegment = 128 * 1024;
  const auto text_of = [](const CostCurve& curve) {
    return fmt::format("4 B in {:.1f} us, 128 KiB in {:.1f} us", curve.at(kSmall) * 1e6, curve.at(kSegment) * 1e6);
  };
  const bool has_neighbours = group.local_size() > 1, has_hosts = group.local_size() < group.size();
  return fmt::format("{}{}{}{}; 128 KiB are added in {:.1f} us", has_neighbours ? text_of(costs.within_host) : "",
                     has_neighbours && has_hosts ? "; " : "", has_hosts ? "to another host " : "",
                     has_hosts ? text_of(costs.between_hosts) : "", costs.combine.at(kSegment) * 1e6);
}

std::string describe(const std::vector<comm::AlgorithmChoice>& choices) {
  std::string text;
  for (const auto& [bytes, algorithm] : choices)
    text += bytes == 0 ? fmt::format("by {}", algorithm)
                       : fmt::format(", from {} on by {}", format_memory(bytes), algorithm);
  return text;
}

}  // namespace tandem::train
