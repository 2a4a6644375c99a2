// Rounds, times and checks.
#include "apps/allreduce_bench/bench.h"

#include "apps/allreduce_bench/predictions.h"
#include "apps/allreduce_bench/roofline.h"
#include "apps/allreduce_bench/values.h"
#include "tandem/comm/agreement.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace tandem::allreduce_bench {

namespace {

using comm::ProcessGroup;
using comm::ReduceOp;

/// Who has its turn at one size: a group with its tensors, or the roofline.
struct Contender {
  BenchRow row;
  const NamedGroup* named;
  Buffers buffers;
  const Roofline* roofline = nullptr;
  std::array<std::vector<double>, 2> seconds = {};  // out of place and in place, by round

  ProcessGroup& group() const { return *named->group; }
  bool has_form(bool in_place) const { return in_place ? row.collective->in_place : row.collective->out_of_place; }
  void run(bool in_place, ReduceOp op) {
    if (roofline != nullptr) return roofline->run(in_place, op);
    row.collective->run(group(), buffers, in_place, op);
  }
};

Tensor plain_tensor(const Shape& shape, DType dtype) {
  const Tensor tensor = Tensor::empty(shape, {.dtype = dtype});
  Out(tensor).fill(0.0);  // so that it has pages of its own
  return tensor;
}

/// Seconds that so many take, one after another, on the slowest rank.
double time_of(Contender& contender, bool in_place, ReduceOp op, std::int64_t repeats) {
  contender.group().barrier();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) contender.run(in_place, op);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const Tensor slowest = Tensor::full({1}, elapsed.count(), {.dtype = DType::f64});
  contender.group().all_reduce(Out(slowest), ReduceOp::max);
  return slowest.item();
}

/// Seconds of one. A turn is short where bytes are many or a backend is slow.
double turn_of(Contender& contender, bool in_place, ReduceOp op) {
  constexpr std::int64_t kMostBytes = std::int64_t{16} << 20, kMostRepeats = 200;
  constexpr double kMostSeconds = 0.1;
  const double warm_up = time_of(contender, in_place, op, 1);
  const std::int64_t by_bytes = std::clamp<std::int64_t>(kMostBytes / (contender.row.bytes + 1), 1, kMostRepeats);
  const auto repeats =
      static_cast<std::int64_t>(std::clamp(kMostSeconds / warm_up, 1.0, static_cast<double>(by_bytes)));
  return time_of(contender, in_place, op, repeats) / static_cast<double>(repeats);
}

std::optional<BenchTime> summary(std::vector<double> seconds) {
  if (seconds.empty()) return std::nullopt;
  std::ranges::sort(seconds);
  return BenchTime{seconds[seconds.size() / 2], seconds.front()};
}

/// Of a tensor for each part: elements that are in another one than they must be, or lack one.
std::int64_t misplaced(const std::vector<Tensor>& made, std::span<const ExpectedPart> parts) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < std::max(made.size(), parts.size()); ++i)
    count += std::abs((i < made.size() ? made[i].numel() : 0) - (i < parts.size() ? parts[i].count : 0));
  return count;
}

/// On all ranks together. The roofline's ranks do not wait for each other: that is done here.
std::int64_t wrong_of(Contender& contender, const PartPlace& place, ReduceOp reduction) {
  const BenchCollective& collective = *contender.row.collective;
  const ReduceOp op = collective.reduces ? reduction : ReduceOp::sum;  // factors of products are alike on many ranks
  ProcessGroup& group = contender.group();
  const std::vector<ExpectedPart> expected = collective.expected(place);
  std::int64_t wrong = 0;
  for (const bool in_place : {false, true}) {
    if (!contender.has_form(in_place) || !collective.has_bytes()) continue;
    fill_input(contender.buffers.input, place.rank, op);
    if (!in_place && contender.buffers.output.defined()) fill_with_wrong_values(contender.buffers.output);
    group.barrier();
    contender.run(in_place, op);
    group.barrier();
    wrong += count_wrong(contender.buffers.result(in_place), expected, place.ranks, op);
    if (collective.input == Extent::rows) wrong += misplaced(contender.buffers.made, expected);
  }
  const Tensor total = Tensor::full({1}, static_cast<double>(wrong), {.dtype = DType::i64});
  group.all_reduce(Out(total));
  return static_cast<std::int64_t>(total.item());
}

/// Of one collective and one size.
class Match {
 public:
  /// Collective: makes the tensors.
  Match(const BenchCollective& collective, const PartPlace& place, const BenchOptions& options,
        const std::vector<NamedGroup>& groups)
      : place_(place), op_(options.op) {
    const bool all_reduces = is_all_reduce(collective);
    const std::int64_t parts = collective.is_cut() ? place.ranks : 1;
    BenchRow row{.collective = &collective, .bytes = parts * place.part * size_of(options.dtype)};
    const auto both = [&](const auto& make) {
      return Buffers{collective.input == Extent::none ? Tensor() : make(shape_of(collective.input, place)),
                     collective.output == Extent::none ? Tensor() : make(shape_of(collective.output, place))};
    };
    const auto plain = [&](const Shape& shape) { return plain_tensor(shape, options.dtype); };
    const Buffers own = both(plain);  // for all groups by turns: they have warm-ups
    for (const NamedGroup& named : groups) {
      if (named.is_algorithm && !all_reduces) continue;
      row.backend = named.name;
      contenders_.push_back({row, &named, own});
      if (!named.has_shared_tensors() || !all_reduces) continue;
      contenders_.push_back(
          {row, &named, both([&](const Shape& shape) { return named.group->shared_zeros(shape, options.dtype); })});
      contenders_.back().row.shared = true;
    }
    if (!options.roofline || !all_reduces) return;
    roofline_ = std::make_unique<Roofline>(*groups.front().group, place.part, options.dtype);
    row.backend = kRoofline;
    row.shared = true;
    contenders_.push_back({row, &groups.front(), roofline_->buffers(), roofline_.get()});
  }

  void play_round() {
    for (Contender& contender : contenders_)
      for (const bool in_place : {false, true})
        if (contender.has_form(in_place))
          contender.seconds[in_place ? 1 : 0].push_back(turn_of(contender, in_place, op_));
  }

  std::vector<Contender>& end() {
    for (Contender& contender : contenders_) {
      contender.row.out_of_place = summary(contender.seconds[0]);
      contender.row.in_place = summary(contender.seconds[1]);
      contender.row.wrong = wrong_of(contender, place_, op_);
    }
    if (roofline_) {
      const BenchRow limit = contenders_.back().row;
      for (Contender& contender : contenders_) {
        contender.row.out_of_place->of_roofline = limit.out_of_place->median / contender.row.out_of_place->median;
        contender.row.in_place->of_roofline = limit.in_place->median / contender.row.in_place->median;
      }
    }
    return contenders_;
  }

 private:
  PartPlace place_;
  ReduceOp op_;
  std::unique_ptr<Roofline> roofline_;
  std::vector<Contender> contenders_;
};

}  // namespace

void run_bench(const std::vector<NamedGroup>& groups, const BenchOptions& options,
               const std::function<void(const BenchRow&)>& show) {
  ProcessGroup& first = *groups.front().group;
  if (options.roofline) comm::run_agreed(first, [&] { check_one_host(first.size(), first.local_size()); });
  std::optional<Predictor> predictor;
  if (options.predicts || options.network) predictor.emplace(groups);
  const std::int64_t element_bytes = size_of(options.dtype);
  for (const BenchCollective* const collective : options.collectives) {
    for (const std::int64_t part :
         part_sizes(*collective, options.min_bytes, options.max_bytes, options.factor, first.size(), element_bytes)) {
      Match match(*collective, {first.rank(), first.size(), part}, options, groups);
      for (std::int64_t round = 0; round < options.rounds; ++round) match.play_round();
      for (Contender& contender : match.end()) {
        if (predictor && is_all_reduce(*collective) && contender.roofline == nullptr)
          predictor->predict(contender.row, *contender.named);
        if (first.rank() == 0) show(contender.row);
      }
    }
  }
}

}  // namespace tandem::allreduce_bench
