// Who reaches whom, in words and tables.
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/doctor/rank_words.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/transports/connectivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace tandem::comm {

namespace {

constexpr std::size_t kMostColumns = 16;

/// "ranks 0, 1 (host alpha), rank 2 (host beta)"
std::string with_hosts(const Connectivity& all, const std::vector<int>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> by_host;
  for (const int rank : ranks) {
    const std::string& host = all.hosts[static_cast<std::size_t>(rank)];
    const auto found = std::ranges::find(by_host, host, &std::pair<std::string, std::vector<int>>::first);
    if (found == by_host.end())
      by_host.emplace_back(host, std::vector{rank});
    else
      found->second.push_back(rank);
  }
  std::string text;
  for (const auto& [host, members] : by_host)
    text += (text.empty() ? "" : ", ") + names_of(members) + (host.empty() ? "" : fmt::format(" (host {})", host));
  return text;
}

std::vector<int> all_ranks(const Connectivity& all) {
  std::vector<int> ranks;
  for (int rank = 0; rank < all.size(); ++rank) ranks.push_back(rank);
  return ranks;
}

/// A square of cells, with the ranks beside it.
std::string table(const std::vector<int>& ranks,
                  const std::function<std::string(std::size_t row, std::size_t column)>& cell) {
  std::string text = "  rank";
  for (const int rank : ranks) text += fmt::format(" {:>7}", rank);
  text += '\n';
  for (std::size_t row = 0; row < ranks.size(); ++row) {
    text += fmt::format("  {:>4}", ranks[row]);
    for (std::size_t column = 0; column < ranks.size(); ++column)
      text += fmt::format(" {:>7}", row == column ? "-" : cell(row, column));
    text += '\n';
  }
  return text;
}

std::string microseconds(const PairSpeed& speed) { return fmt::format("{:.1f}", speed.seconds * 1e6); }
std::string gigabytes(const PairSpeed& speed) { return fmt::format("{:.3g}", speed.bytes_per_second * 1e-9); }

/// Of many: the slowest.
std::string slowest_pairs(const Connectivity& all) {
  std::vector<PairReport> pairs = pairs_of(all);
  std::ranges::sort(pairs, {}, [](const PairReport& pair) { return pair.speed.bytes_per_second; });
  const PairSpeed middle = pairs[pairs.size() / 2].speed;
  std::string text = fmt::format("  {} pairs; that of median bandwidth: {} us, {} GB/s; the slowest:\n", pairs.size(),
                                 microseconds(middle), gigabytes(middle));
  for (std::size_t i = 0; i < std::min(pairs.size(), kMostColumns); ++i)
    text += fmt::format("  {}: {} us, {} GB/s\n", with_hosts(all, {pairs[i].from, pairs[i].to}),
                        microseconds(pairs[i].speed), gigabytes(pairs[i].speed));
  return text;
}

std::string speeds_text(const Connectivity& all) {
  std::string text = fmt::format("all ranks reach each other: {}\n", with_hosts(all, all_ranks(all)));
  if (static_cast<int>(all.measured.size()) < all.size()) text += "between the first ranks of hosts:\n";
  if (all.measured.size() > kMostColumns) return text + slowest_pairs(all);
  text += "a message of 8 bytes, microseconds one way\n";
  text += table(all.measured, [&](std::size_t a, std::size_t b) { return microseconds(all.speeds[a][b]); });
  text += "bandwidth of large messages, GB/s one way\n";
  text += table(all.measured, [&](std::size_t a, std::size_t b) { return gigabytes(all.speeds[a][b]); });
  return text;
}

}  // namespace

std::string text_of(const Connectivity& all) {
  if (all.is_complete()) return speeds_text(all);
  std::string text = "not all ranks reach each other:\n";
  if (static_cast<std::size_t>(all.size()) <= kMostColumns)
    return text + table(all_ranks(all), [&](std::size_t a, std::size_t b) {
             const Reach reach = all.reaches[a][b];
             return std::string(reach == Reach::yes ? "yes" : reach == Reach::no ? "NO" : "?");
           });
  for (int rank = 0; rank < all.size(); ++rank) {
    std::vector<int> missing;
    for (int other = rank + 1; other < all.size(); ++other)
      if (all.reaches[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)] == Reach::no)
        missing.push_back(other);
    if (!missing.empty()) text += fmt::format("  {} and {}\n", with_hosts(all, {rank}), with_hosts(all, missing));
  }
  return text;
}

std::string complaint_of(const Connectivity& all, const ProbeOptions& options) {
  std::vector<int> missing;
  for (int rank = 0; rank < all.size(); ++rank)
    if (all.reaches[static_cast<std::size_t>(all.rank)][static_cast<std::size_t>(rank)] == Reach::no)
      missing.push_back(rank);
  if (missing.empty()) return "";
  return fmt::format("{} gets no answer from {} within {:g} s", with_hosts(all, {all.rank}), with_hosts(all, missing),
                     std::chrono::duration<double>(options.deadline).count());
}

std::vector<PairReport> pairs_of(const Connectivity& all) {
  const std::vector<int> ranks = all.measured.empty() ? all_ranks(all) : all.measured;
  std::vector<PairReport> pairs;
  for (std::size_t a = 0; a < ranks.size(); ++a)
    for (std::size_t b = a + 1; b < ranks.size(); ++b)
      pairs.push_back({ranks[a], ranks[b],
                       all.reaches[static_cast<std::size_t>(ranks[a])][static_cast<std::size_t>(ranks[b])],
                       all.speeds.empty() ? PairSpeed() : all.speeds[a][b]});
  return pairs;
}

Connectivity probe_connectivity(MpiEnvironment& environment, const ProbeOptions& options) {
  return probe_connectivity(detail::make_world_transport(),
                            {environment.rank(), environment.size(), host_name(), environment.launch().local_rank},
                            options);
}

}  // namespace tandem::comm
