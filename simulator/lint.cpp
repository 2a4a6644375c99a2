// Gathering the accesses of 32 lanes into requests, and counting what they move.
#include "tandem/simulator/lint.h"

#include "tandem/simulator/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <unordered_map>

namespace tandem::simulator {

namespace {

struct Request {
  std::array<std::uintptr_t, kWarpSize> address{};
  std::uint32_t lanes = 0;
  std::uint32_t bytes = 0;
  bool shared = false;
  bool writes = false;
};

struct Totals {
  std::uint64_t requests = 0, moved = 0, ideal = 0;
};

struct Lint {
  const void* kernel = nullptr;
  // The n-th time that each lane of a warp comes to a place is one request.
  std::unordered_map<std::uint64_t, std::uint32_t> visits;               // by place and thread
  std::unordered_map<std::uint64_t, std::vector<Request>> requests;      // by place and warp
  std::map<std::tuple<const void*, SiteId, bool, bool>, Totals> totals;  // shared, writes
  std::map<const void*, std::uint64_t> launches;

  ~Lint() {
    const std::string& file = settings().lint_file;
    if (file.empty() || totals.empty()) return;
    std::FILE* const out = std::fopen(file.c_str(), "a");
    if (out == nullptr) return;
    for (const LintEntry& entry : lint_entries()) {
      const std::string line =
          fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", entry.kernel, entry.site.text(), entry.shared ? "shared" : "global",
                      entry.requests, entry.moved, entry.ideal);
      std::fwrite(line.data(), 1, line.size(), out);
    }
    std::fclose(out);
  }
};

Lint& lint() {
  settings();
  static Lint the_lint;
  return the_lint;
}

template <typename Values>
std::uint64_t count_distinct(Values& values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::uint64_t>(std::unique(values.begin(), values.end()) - values.begin());
}

/// Sectors of 32 bytes that the lanes touch, and how many the same distinct bytes would fill.
void count_sectors(const Request& request, Totals& totals) {
  std::vector<std::uintptr_t> sectors, starts;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((request.lanes >> lane & 1u) == 0) continue;
    starts.push_back(request.address[lane]);
    for (std::uintptr_t sector = request.address[lane] / 32; sector <= (request.address[lane] + request.bytes - 1) / 32;
         ++sector)
      sectors.push_back(sector);
  }
  totals.moved += count_distinct(sectors);
  totals.ideal += (count_distinct(starts) * request.bytes + 31) / 32;
}

/// Turns that 32 banks take: lanes go together 128 bytes at a time (all lanes for 4 bytes, half of them for 8, a
/// quarter for 16), and the same word serves all that want it.
void count_wavefronts(const Request& request, Totals& totals) {
  const unsigned lanes_at_once = request.bytes <= 4 ? 32 : std::max(1u, 128 / request.bytes);
  for (unsigned first = 0; first < kWarpSize; first += lanes_at_once) {
    std::array<std::vector<std::uintptr_t>, 32> words;
    bool any = false;
    for (unsigned lane = first; lane < std::min(first + lanes_at_once, kWarpSize); ++lane) {
      if ((request.lanes >> lane & 1u) == 0) continue;
      any = true;
      for (std::uintptr_t word = request.address[lane] / 4; word <= (request.address[lane] + request.bytes - 1) / 4;
           ++word)
        words[word % 32].push_back(word);
    }
    if (!any) continue;
    std::uint64_t turns = 1;
    for (auto& bank : words) turns = std::max(turns, count_distinct(bank));
    totals.moved += turns;
    totals.ideal += 1;
  }
}

}  // namespace

bool detail::lint_on = false;

void start_lint(const void* kernel) {
  detail::lint_on = settings().lint;
  if (!detail::lint_on) return;
  lint().kernel = kernel;
  ++lint().launches[kernel];
}

void count_request(std::uintptr_t address, std::size_t bytes, bool shared, bool writes, SiteId where) {
  Lint& l = lint();
  const Thread& self = engine().current();
  // A copy from global to shared memory is a request to each, at one place.
  const std::uint64_t place = (std::uint64_t{where} << 1 | (shared ? 1u : 0u)) << 16;
  const std::uint32_t visit = l.visits[place | self.linear]++;
  if (bytes == 0) return;
  std::vector<Request>& requests = l.requests[place | self.warp()];
  if (requests.size() <= visit) requests.resize(visit + 1);
  Request& request = requests[visit];
  request.address[self.lane()] = address;
  request.lanes |= 1u << self.lane();
  request.bytes = static_cast<std::uint32_t>(bytes);
  request.shared = shared;
  request.writes = writes;
}

void count_request_of(const std::uintptr_t* addresses, unsigned count, std::size_t bytes, bool shared, bool writes,
                      SiteId where) {
  Request request;
  request.bytes = static_cast<std::uint32_t>(bytes);
  for (unsigned i = 0; i < count; ++i) {
    request.address[i] = addresses[i];
    request.lanes |= 1u << i;
  }
  Totals& totals = lint().totals[{lint().kernel, where, shared, writes}];
  ++totals.requests;
  shared ? count_wavefronts(request, totals) : count_sectors(request, totals);
}

void finish_block_of_lint() {
  if (!lint_is_on()) return;
  Lint& l = lint();
  for (const auto& [key, requests] : l.requests) {
    for (const Request& request : requests) {
      if (request.lanes == 0) continue;
      Totals& totals = l.totals[{l.kernel, static_cast<SiteId>(key >> 17), request.shared, request.writes}];
      ++totals.requests;
      request.shared ? count_wavefronts(request, totals) : count_sectors(request, totals);
    }
  }
  l.requests.clear();
  l.visits.clear();
}

void finish_lint() {
  if (!lint_is_on()) return;
  detail::lint_on = false;
  lint().requests.clear();
  lint().visits.clear();
}

std::vector<LintEntry> lint_entries() {
  std::vector<LintEntry> entries;
  for (const auto& [key, totals] : lint().totals) {
    const auto& [kernel, site, shared, writes] = key;
    entries.push_back(
        {function_name(kernel), site_of(site), shared, writes, totals.requests, totals.moved, totals.ideal});
  }
  return entries;
}

std::vector<std::pair<std::string, std::uint64_t>> lint_launches() {
  std::vector<std::pair<std::string, std::uint64_t>> result;
  for (const auto& [kernel, count] : lint().launches) result.emplace_back(function_name(kernel), count);
  return result;
}

void reset_lint() {
  lint().totals.clear();
  lint().launches.clear();
}

}  // namespace tandem::simulator
