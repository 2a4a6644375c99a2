// The rows.
#include "apps/allreduce_bench/collectives.h"

#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

namespace tandem::allreduce_bench {

namespace {

using comm::ProcessGroup;
using comm::ReduceOp;

double one(int) { return 1.0; }
double others(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double twice_others(int ranks) { return 2.0 * others(ranks); }

using Expected = std::vector<ExpectedPart>;

Expected reduced(const PartPlace& place) { return {{ExpectedPart::kReduction, 0, place.part}}; }
Expected of_root(const PartPlace& place) { return {{0, 0, place.part}}; }
Expected nothing(const PartPlace&) { return {}; }

/// Everybody's part from `begin` on, by rank.
Expected of_each(const PartPlace& place, std::int64_t begin) {
  Expected parts;
  for (int rank = 0; rank < place.ranks; ++rank) parts.push_back({rank, begin, place.part});
  return parts;
}

Expected gathered(const PartPlace& place) { return of_each(place, 0); }

std::int64_t begin_of_mine(const PartPlace& place) { return place.rank * place.part; }

/// Rows for (or from) each rank.
std::vector<std::int64_t> rows_of_each(PartPlace place) {
  std::vector<std::int64_t> rows;
  for (place.rank = 0; place.rank < place.ranks; ++place.rank) rows.push_back(rows_of(place));
  return rows;
}

Expected rows_gathered(const PartPlace& place) {
  Expected parts;
  for (const std::int64_t rows : rows_of_each(place)) parts.push_back({static_cast<int>(parts.size()), 0, rows});
  return parts;
}

/// Every rank has as many rows for a rank as any other.
Expected rows_from_each(const PartPlace& place) {
  const std::vector<std::int64_t> rows = rows_of_each(place);
  const std::int64_t begin = std::accumulate(rows.begin(), rows.begin() + place.rank, std::int64_t{0});
  Expected parts;
  for (int rank = 0; rank < place.ranks; ++rank) parts.push_back({rank, begin, rows_of(place)});
  return parts;
}

void run_all_to_all_rows(ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
  const PartPlace place{group.rank(), group.size(), buffers.input.numel() / group.size()};
  buffers.made = {group.all_to_all_rows(buffers.input, rows_of_each(place))};
}

int next(const ProcessGroup& group) { return (group.rank() + 1) % group.size(); }
int previous(const ProcessGroup& group) { return (group.rank() + group.size() - 1) % group.size(); }

void run_all_reduce(ProcessGroup& group, Buffers& buffers, bool in_place, ReduceOp op) {
  if (in_place) return group.all_reduce(Out(buffers.input), op);
  group.all_reduce(buffers.input, Out(buffers.output), op);
}

/// Each rank sends to the next and receives from the one before, as nccl-tests' sendrecv_perf does.
void run_send_receive(ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
  const auto received = group.receive_async(Out(buffers.output), previous(group));
  const auto sent = group.send_async(buffers.input, next(group));
  sent->wait();
  received->wait();
}

constexpr std::array<BenchCollective, 12> kCollectives{{
    {"all_reduce", "of each rank's tensor", Extent::part, Extent::part, true, true, true, "2(n-1)/n", twice_others,
     run_all_reduce, reduced},
    {"broadcast", "of each rank's tensor", Extent::part, Extent::none, false, false, true, "1", one,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp) { group.broadcast(Out(buffers.input)); }, of_root},
    {"reduce", "of each rank's tensor", Extent::part, Extent::none, true, false, true, "1", one,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp op) { group.reduce(Out(buffers.input), 0, op); },
     [](const PartPlace& place) {
       return place.rank == 0 ? reduced(place) : Expected{{place.rank, 0, place.part}};  // others keep their elements
     }},
    {"all_gather", "of the whole result", Extent::part, Extent::all, false, true, false, "(n-1)/n", others,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
       group.all_gather_async(buffers.input, Out(buffers.output))->wait();
     },
     gathered},
    {"all_gather_rows", "of the whole result", Extent::rows, Extent::none, false, true, false, "(n-1)/n", others,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp) { buffers.made = group.all_gather_rows(buffers.input); },
     rows_gathered},
    {"gather", "of the whole result, on the root", Extent::part, Extent::all, false, true, false, "(n-1)/n", others,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
       group.gather_async(buffers.input, Out(buffers.output))->wait();
     },
     [](const PartPlace& place) { return place.rank == 0 ? gathered(place) : Expected{}; }},
    {"scatter", "of all parts, on the root", Extent::all, Extent::part, false, true, false, "(n-1)/n", others,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp) { group.scatter(buffers.input, Out(buffers.output)); },
     [](const PartPlace& place) { return Expected{{0, begin_of_mine(place), place.part}}; }},
    {"reduce_scatter", "of each rank's input", Extent::all, Extent::part, true, true, false, "(n-1)/n", others,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp op) {
       group.reduce_scatter_async(buffers.input, Out(buffers.output), op)->wait();
     },
     [](const PartPlace& place) { return Expected{{ExpectedPart::kReduction, begin_of_mine(place), place.part}}; }},
    {"all_to_all", "of each rank's tensor", Extent::all, Extent::all, false, true, false, "(n-1)/n", others,
     [](ProcessGroup& group, Buffers& buffers, bool, ReduceOp) {
       group.all_to_all_async(buffers.input, Out(buffers.output))->wait();
     },
     [](const PartPlace& place) { return of_each(place, begin_of_mine(place)); }},
    {"all_to_all_rows", "of each rank's tensor", Extent::all_rows, Extent::none, false, true, false, "(n-1)/n", others,
     run_all_to_all_rows, rows_from_each},
    {"send_receive", "of each rank's message", Extent::part, Extent::part, false, true, false, "1", one,
     run_send_receive,
     [](const PartPlace& place) { return Expected{{(place.rank + place.ranks - 1) % place.ranks, 0, place.part}}; }},
    {"barrier", "", Extent::none, Extent::none, false, true, false, "", [](int) { return 0.0; },
     [](ProcessGroup& group, Buffers&, bool, ReduceOp) { group.barrier(); }, nothing},
}};

bool can_be_called(const BenchCollective& collective, int ranks) {
  return ranks > 1 || collective.run != run_send_receive;
}

}  // namespace

std::span<const BenchCollective> bench_collectives() { return kCollectives; }

std::vector<std::string> bench_collective_names() {
  std::vector<std::string> names;
  for (const BenchCollective& collective : kCollectives) names.emplace_back(collective.name);
  return names;
}

std::vector<const BenchCollective*> find_collectives(const std::vector<std::string>& names, int ranks) {
  std::vector<const BenchCollective*> found;
  const auto add = [&](const BenchCollective& collective) {
    if (std::ranges::find(found, &collective) == found.end()) found.push_back(&collective);
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (const BenchCollective& collective : kCollectives)
        if (can_be_called(collective, ranks)) add(collective);
      continue;
    }
    const auto* const row = std::ranges::find(kCollectives, name, &BenchCollective::name);
    if (row == kCollectives.end()) {
      std::vector<std::string> choices = bench_collective_names();
      choices.emplace_back("all");
      fail("{}", unknown_name("collective", name, choices));
    }
    require(can_be_called(*row, ranks), "{} needs two ranks or more: a message goes to another rank", name);
    add(*row);
  }
  return found;
}

bool is_all_reduce(const BenchCollective& collective) { return collective.run == run_all_reduce; }

std::vector<std::int64_t> part_sizes(const BenchCollective& collective, std::int64_t least, std::int64_t most,
                                     std::int64_t factor, int ranks, std::int64_t element_bytes) {
  if (!collective.has_bytes()) return {0};
  const std::int64_t parts = collective.is_cut() ? ranks : 1;
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = least; bytes <= most; bytes *= factor) {
    const std::int64_t part = std::max<std::int64_t>(1, bytes / (parts * element_bytes));
    if (sizes.empty() || sizes.back() != part) sizes.push_back(part);
  }
  return sizes;
}

Shape shape_of(Extent extent, const PartPlace& place) {
  switch (extent) {
    case Extent::all:
      return {place.ranks, place.part};
    case Extent::rows:
      return {rows_of(place)};
    case Extent::all_rows:
      return {place.ranks * place.part};
    case Extent::none:
    case Extent::part:
      break;
  }
  return {place.part};
}

std::int64_t rows_of(const PartPlace& place) {
  const bool is_even = place.rank % 2 == 0;
  if (is_even && place.rank + 1 == place.ranks) return place.part;
  return is_even ? place.part + place.part / 2 : place.part - place.part / 2;
}

Tensor Buffers::result(bool in_place) const {
  if (in_place) return input;
  if (made.empty()) return output;
  std::int64_t count = 0;
  for (const Tensor& each : made) count += each.numel();
  const Tensor all = Tensor::empty({count}, made.front().options());
  std::int64_t at = 0;
  for (const Tensor& each : made) {
    Out(all.narrow(0, at, each.numel())).copy_from(each);
    at += each.numel();
  }
  return all;
}

}  // namespace tandem::allreduce_bench
