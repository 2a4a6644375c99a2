// The file is JSON: {"format", "version", "groups": [{"key", "start", "overhead", "shared_cores", "within_host",
// "between_hosts", "combine", "corrections"}]}; each of the three before the last is a curve, [[bytes, seconds], ...],
// and a correction {"algorithm", "ranks", "hosts", "points": [[bytes, factor], ...]}. Older files have no corrections.
#include "tandem/train/message_costs_file.h"

#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/transports/simulated/network_model.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/train/measured_file.h"
#include "tandem/train/process_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;
using comm::CostCurve;
using comm::CostPoint;
using comm::MessageCosts;

constexpr std::int64_t kMostBytes = 1 << 20;  // a group takes about 5 KiB
constexpr MeasuredFormat kFormat{"tandem message costs", 1, "file of message costs", "--tune-comm", kMostBytes};

struct Curve {
  const char* name;
  CostCurve MessageCosts::* member;
};
constexpr Curve kCurves[] = {{"within_host", &MessageCosts::within_host},
                             {"between_hosts", &MessageCosts::between_hosts},
                             {"combine", &MessageCosts::combine}};

Json to_json(const std::string& key, const MessageCosts& costs) {
  Json json{{"key", key}, {"start", costs.start}, {"overhead", costs.overhead}, {"shared_cores", costs.shared_cores}};
  for (const Curve& curve : kCurves) {
    Json points = Json::array();
    for (const CostPoint& point : (costs.*curve.member).points()) points.push_back({point.bytes, point.seconds});
    json[curve.name] = points;
  }
  Json& corrections = json["corrections"] = Json::array();
  for (const comm::Correction& correction : costs.corrections) {
    Json points = Json::array();
    for (const auto& [bytes, factor] : correction.points) points.push_back({bytes, factor});
    corrections.push_back({{"algorithm", correction.algorithm},
                           {"ranks", correction.ranks},
                           {"hosts", correction.hosts},
                           {"points", points}});
  }
  return json;
}

std::int64_t whole_number(const Json& json, std::int64_t most) {
  const bool is_small = json.is_number_unsigned() ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                                  : json.is_number_integer() && json.get<std::int64_t>() >= -most;
  require(is_small, "{} is no whole number up to {}", json.dump(), most);
  return json.get<std::int64_t>();
}

/// nlohmann-json goes through anything as if it were a list.
void require_list(const Json& json, const char* name) { require(json.is_array(), "'{}' is no list", name); }

/// [[bytes, number], ...] as a list of `Point`.
template <typename Point>
std::vector<Point> points_of(const Json& json, const char* name) {
  require_list(json, name);
  std::vector<Point> points;
  for (const Json& point : json) {
    require(point.size() == 2, "'{}' has a point {}", name, point.dump());
    points.push_back({whole_number(point.at(0), std::numeric_limits<std::int64_t>::max()), point.at(1).get<double>()});
  }
  return points;
}

comm::Correction correction_of(const Json& json) {
  constexpr std::int64_t kMostRanks = 1 << 20;
  return {.algorithm = json.at("algorithm").get<std::string>(),
          .ranks = static_cast<int>(whole_number(json.at("ranks"), kMostRanks)),
          .hosts = static_cast<int>(whole_number(json.at("hosts"), kMostRanks)),
          .points = points_of<comm::CorrectionPoint>(json.at("points"), "corrections")};
}

MessageCosts from_json(const Json& json) {
  constexpr std::int64_t kMostCores = 1 << 20;
  MessageCosts costs;
  costs.start = json.at("start").get<double>();
  costs.overhead = json.at("overhead").get<double>();
  costs.shared_cores = static_cast<int>(whole_number(json.at("shared_cores"), kMostCores));
  for (const Curve& curve : kCurves) {
    std::vector<CostPoint> points = points_of<CostPoint>(json.at(curve.name), curve.name);
    require(!points.empty(), "'{}' has no points", curve.name);
    costs.*curve.member = CostCurve(std::move(points));
  }
  if (json.contains("corrections")) {
    require_list(json.at("corrections"), "corrections");
    for (const Json& correction : json.at("corrections")) costs.corrections.push_back(correction_of(correction));
  }
  comm::check_costs(costs);
  return costs;
}

const Json& groups_of(const Json& json) {
  const Json& groups = json.at("groups");
  require_list(groups, "groups");
  return groups;
}

bool is_of(const Json& group, const std::string& key) {
  return group.is_object() && group.contains("key") && group.at("key") == key;
}

}  // namespace

std::string message_costs_key(comm::ProcessGroup& group) {
  std::set<std::string> processors;
  std::string mine = comm::place_text(group.node()) + ";";
  for (const DeviceDescription& description : list_devices())
    if (description.device == Device{}) mine += description.name;
  const std::vector<std::string> all = group.all_gather_bytes(mine);
  for (const std::string& theirs : all) processors.insert(theirs.substr(theirs.find(';') + 1));
  std::vector<std::string> places;
  for (const auto& [node, host] : comm::cores_by_host(all))
    places.push_back(host.cores.empty() ? fmt::format("{}", host.ranks)
                                        : fmt::format("{} on {} cores", host.ranks, host.cores.size()));
  std::string key =
      fmt::format("backend {}, ranks {}, {}", group.name(), fmt::join(places, " + "), fmt::join(processors, " and "));
  if (const std::string network = group.network(); !network.empty()) key += fmt::format(", simulated {}", network);
  for (const auto& [name, version] : build_versions()) key += fmt::format(", {} {}", name, version);
  return group.all_gather_bytes(key).front();
}

LoadedCosts load_message_costs(const std::string& path, const std::string& key) {
  LoadedCosts loaded;
  loaded.problem = read_measured_file(path, kFormat, [&](const Json& json) {
    for (const Json& group : groups_of(json))
      if (is_of(group, key)) loaded.costs = from_json(group);
  });
  if (!loaded.problem.empty()) loaded.costs.reset();
  return loaded;
}

bool can_hold_message_costs(const std::string& path) { return can_hold_measured(path, kFormat); }

void save_message_costs(const std::string& path, const std::string& key, const MessageCosts& costs) {
  require(can_hold_message_costs(path), "{}: holds something else, or is of a newer program: name another file", path);
  Json groups = Json::array();
  read_measured_file(path, kFormat, [&](const Json& json) {  // what is damaged has none
    for (const Json& group : groups_of(json))
      if (!is_of(group, key)) groups.push_back(group);
  });
  groups.push_back(to_json(key, costs));
  write_measured_file(path, kFormat, {{"groups", groups}});
}

std::string describe(const MessageCosts& costs, const comm::ProcessGroup& group) {
  constexpr std::int64_t kSmall = 4, kSegment = 128 * 1024;
  const auto text_of = [](const CostCurve& curve) {
    return fmt::format("4 B in {:.1f} us, 128 KiB in {:.1f} us", curve.at(kSmall) * 1e6, curve.at(kSegment) * 1e6);
  };
  bool has_neighbours = group.local_size() > 1, has_hosts = group.local_size() < group.size();
  if (!group.network().empty()) {
    const comm::NetworkModel network = comm::parse_network_model(group.network());
    has_neighbours = network.ranks_per_host > 1;
    has_hosts = network.hosts > 1;
  }
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
