// Words to numbers and back.
#include "tandem/comm/transports/simulated/network_model.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/random.h"
#include "tandem/core/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace tandem::comm {

namespace {

struct Unit {
  std::string_view name;
  double size;
};

/// How many there are in a second, from the largest: numbers are divided by it, as 1e-6 is no number of a computer.
constexpr std::array kTimes = {Unit{"s", 1.0}, Unit{"ms", 1e3}, Unit{"us", 1e6}, Unit{"ns", 1e9}};
constexpr std::array kPrefixes = {Unit{"", 1.0},         Unit{"K", 1e3},           Unit{"M", 1e6},
                                  Unit{"G", 1e9},        Unit{"T", 1e12},          Unit{"Ki", 1024.0},
                                  Unit{"Mi", 1048576.0}, Unit{"Gi", 1073741824.0}, Unit{"Ti", 1099511627776.0}};
constexpr std::array kKeys = {"alpha", "beta", "local-alpha", "local-beta", "hosts", "link", "jitter", "seed", "lose"};

/// Characters of the number that the text begins with: digits with a point, and an exponent, as to_text() writes it.
std::size_t number_length(std::string_view text) {
  const std::size_t mantissa = std::min(text.find_first_not_of("0123456789."), text.size());
  if (!text.substr(mantissa).starts_with('e')) return mantissa;
  const std::string_view sign = text.substr(mantissa + 1, 1);
  const std::size_t exponent = mantissa + (sign == "-" || sign == "+" ? 2 : 1);
  const std::size_t end = std::min(text.find_first_not_of("0123456789", exponent), text.size());
  return end > exponent ? end : mantissa;
}

/// The number before the unit, and the unit.
std::pair<double, std::string_view> split_unit(std::string_view key, std::string_view text) {
  const std::size_t digits = number_length(text);
  const auto number = parse_number<double>(text.substr(0, digits));
  require(number && std::isfinite(*number), "network: {}={} does not begin with a number", key, text);
  return {*number, text.substr(digits)};
}

/// Of what takes longer, sums over many messages would not be numbers.
constexpr double kMostSeconds = 1e6, kLeastBytesPerSecond = 1.0 / 8.0;

double time_of(std::string_view key, std::string_view text) {
  const auto [number, name] = split_unit(key, text);
  const auto* const unit = std::ranges::find(kTimes, name, &Unit::name);
  require(unit != kTimes.end(), "network: {}={} is no time; write it as 50us, with ns, us, ms or s", key, text);
  require(number / unit->size <= kMostSeconds, "network: {}={} must be at most {:.0f} s", key, text, kMostSeconds);
  return number / unit->size;
}

double bytes_per_second_of(std::string_view key, std::string_view text) {
  auto [number, name] = split_unit(key, text);
  const bool is_bits = name.ends_with("bit");
  const bool has_unit = is_bits || name.ends_with('B');
  if (has_unit) name.remove_suffix(is_bits ? 3 : 1);
  const auto* const prefix = std::ranges::find(kPrefixes, name, &Unit::name);
  require(has_unit && prefix != kPrefixes.end(),
          "network: {}={} is no bandwidth; write it as 10Gbit or 1.25GB (per second)", key, text);
  const double result = number * prefix->size / (is_bits ? 8.0 : 1.0);
  require(result >= kLeastBytesPerSecond && std::isfinite(result),
          "network: {}={} must be 1bit (per second) or more, and finite", key, text);
  return result;
}

template <typename T>
T whole_number(std::string_view key, std::string_view text, T least, T most, std::string_view whole) {
  const auto number = parse_number<T>(text);
  require(number && *number >= least && *number <= most, "network: {}={}: '{}' is no whole number from {} to {}", key,
          whole, text, least, most);
  return *number;
}

constexpr int kMostRanks = 4096;

void read_hosts(NetworkModel& model, std::string_view text) {
  const std::size_t cross = std::min(text.find('x'), text.size());
  model.hosts = whole_number("hosts", text.substr(0, cross), 1, kMostRanks, text);
  model.ranks_per_host = cross == text.size() ? 1 : whole_number("hosts", text.substr(cross + 1), 1, kMostRanks, text);
  require(model.hosts <= kMostRanks / model.ranks_per_host, "network: hosts={} are more than {} ranks", text,
          kMostRanks);
}

LostLink lost_link(std::string_view text) {
  const std::size_t at = std::min(text.find('@'), text.size()), dash = text.find('-');
  require(dash < at, "network: lose={} names no two ranks; write it as 3-4 or 3-4@2ms", text);
  LostLink link;
  link.from = whole_number("lose", text.substr(0, dash), 0, kMostRanks - 1, text);
  link.to = whole_number("lose", text.substr(dash + 1, at - dash - 1), 0, kMostRanks - 1, text);
  require(link.from != link.to, "network: lose={}: a rank sends nothing to itself", text);
  if (at < text.size()) link.seconds = time_of("lose", text.substr(at + 1));
  return link;
}

void read_word(NetworkModel& model, std::string_view key, std::string_view value) {
  if (key == "alpha") {
    model.between_hosts.latency = time_of(key, value);
  } else if (key == "beta") {
    model.between_hosts.bytes_per_second = bytes_per_second_of(key, value);
  } else if (key == "local-alpha") {
    model.within_host.latency = time_of(key, value);
  } else if (key == "local-beta") {
    model.within_host.bytes_per_second = bytes_per_second_of(key, value);
  } else if (key == "hosts") {
    read_hosts(model, value);
  } else if (key == "link") {
    require(value == "shared" || value == "own", "network: link={} is neither shared nor own", value);
    model.is_link_shared = value == "shared";
  } else if (key == "jitter") {
    model.jitter = time_of(key, value);
  } else if (key == "seed") {
    model.seed = whole_number<std::uint64_t>(key, value, 0, std::numeric_limits<std::uint64_t>::max(), value);
  } else if (key == "lose") {
    model.lost.push_back(lost_link(value));
  } else {
    fail("network: {}", unknown_name("word", key, kKeys));
  }
}

/// In the largest unit of which there is one.
std::string time_text(double seconds) {
  const auto* const unit = std::ranges::find_if(kTimes, [&](const Unit& each) { return seconds * each.size >= 1.0; });
  const Unit& chosen = unit == kTimes.end() ? kTimes.back() : *unit;
  return fmt::format("{:.10g}{}", seconds * chosen.size, chosen.name);
}

std::string bandwidth_text(double bytes_per_second) {
  for (const Unit& prefix : {Unit{"T", 1e12}, Unit{"G", 1e9}, Unit{"M", 1e6}, Unit{"K", 1e3}})
    if (bytes_per_second >= prefix.size) return fmt::format("{:.10g}{}B", bytes_per_second / prefix.size, prefix.name);
  return fmt::format("{:.10g}B", bytes_per_second);
}

}  // namespace

std::vector<int> NetworkModel::node_of_rank() const {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks(); ++rank) nodes.push_back(host_of(rank));
  return nodes;
}

bool NetworkModel::is_lost(int from, int to, double seconds) const {
  return std::ranges::any_of(
      lost, [&](const LostLink& link) { return link.from == from && link.to == to && seconds >= link.seconds; });
}

double NetworkModel::jitter_of(int from, int to, std::uint64_t index) const {
  if (jitter == 0.0) return 0.0;
  const int link = from * kMostRanks + to;
  const RandomKey key{.seed = seed, .stream = RandomStream::network, .step = static_cast<std::uint32_t>(link)};
  return jitter * static_cast<double>(key.uniform(index));
}

NetworkModel parse_network_model(std::string_view text) {
  NetworkModel model;
  std::set<std::string_view> given;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    require(equals != std::string_view::npos, "network: '{}' has no '='; write it as alpha=50us beta=10Gbit hosts=8x8",
            word);
    const std::string_view key = word.substr(0, equals);
    require(given.insert(key).second || key == "lose", "network: {} is given twice; leave one out", key);
    read_word(model, key, word.substr(equals + 1));
  }
  for (const LostLink& link : model.lost)
    require(model.hosts == 0 || std::max(link.from, link.to) < model.ranks(),
            "network: lose={}-{} names a rank beyond the {} of hosts={}x{}", link.from, link.to, model.ranks(),
            model.hosts, model.ranks_per_host);
  return model;
}

std::string to_text(const NetworkModel& model) {
  std::string text =
      fmt::format("alpha={} beta={} local-alpha={} local-beta={}", time_text(model.between_hosts.latency),
                  bandwidth_text(model.between_hosts.bytes_per_second), time_text(model.within_host.latency),
                  bandwidth_text(model.within_host.bytes_per_second));
  if (model.hosts > 0) text += fmt::format(" hosts={}x{}", model.hosts, model.ranks_per_host);
  if (model.is_link_shared) text += " link=shared";
  if (model.jitter > 0.0) text += fmt::format(" jitter={} seed={}", time_text(model.jitter), model.seed);
  for (const LostLink& link : model.lost)
    text += fmt::format(" lose={}-{}@{}", link.from, link.to, time_text(link.seconds));
  return text;
}

}  // namespace tandem::comm
