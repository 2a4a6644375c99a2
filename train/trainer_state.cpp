// Where a Trainer's run is, as tensors by name, and back.
#include "tandem/comm/agreement.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/core/describe.h"
#include "tandem/train/state_copy.h"
#include "tandem/train/trainer.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

namespace tandem::train {
namespace {

constexpr std::string_view kModel = "model.", kOptimizer = "optimizer.", kScaler = "scaler.", kEma = "ema.",
                           kLookahead = "lookahead.", kTrainer = "trainer.";
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

void append(NamedTensors& state, std::string_view prefix, const NamedTensors& part) {
  for (const auto& [name, tensor] : part) state.emplace_back(fmt::format("{}{}", prefix, name), tensor);
}

/// The tensors under a prefix, without it.
NamedTensors part_of(const NamedTensors& state, std::string_view prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(prefix)) part.emplace_back(name.substr(prefix.size()), tensor);
  }
  return part;
}

Tensor scalar(std::int64_t value) { return Tensor::from<std::int64_t>({value}, {}); }

/// What makes the rest of a run another one if it differs.
struct Setting {
  std::string_view name, meaning;
  std::int64_t value;
};

std::vector<Setting> settings_of(const data::Loader& loader, const TrainerOptions& options) {
  return {{"seed", "the seed", static_cast<std::int64_t>(options.seed)},
          {"global_batch_size", "a global batch size of", loader.options().global_batch_size},
          {"accumulation", "micro-batches per step of", options.accumulation},
          {"images_per_epoch", "images in an epoch of", loader.images_per_epoch()}};
}

/// In the state of a run in canonical mode only.
constexpr std::string_view kMicroBatches = "micro_batches";
/// In the state of a run of so many steps that has done the last one, in the middle of an epoch, and has not counted
/// that epoch for the best one yet.
constexpr std::string_view kUncounted = "uncounted";
/// In the state of a run of several ranks that has done a step.
constexpr std::string_view kGradientOrder = "gradient_order";

/// The small entries of a state, those of the run itself.
class Entries {
 public:
  explicit Entries(const NamedTensors& state) : entries_(part_of(state, kTrainer)) {}

  bool has(std::string_view name) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == name; });
  }

  /// Removes the entry of this name, which must be there once.
  Tensor take(std::string_view name) {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == name; });
    require(found != entries_.end() && found->second.defined(),
            "trainer: the state has no trainer.{}: it is no Trainer's state_dict(), or not all of one", name);
    const Tensor tensor = found->second;
    entries_.erase(found);
    return tensor;
  }

  std::int64_t take_integer(std::string_view name) {
    const Tensor value = take(name);
    require(value.dtype() == DType::i64 && value.numel() == 1,
            "trainer: trainer.{} of the state must be one i64, got {}", name, value);
    return value.to_vector<std::int64_t>().front();
  }

  std::int64_t take_count(std::string_view name, std::int64_t most = kNoLimit) {
    const std::int64_t count = take_integer(name);
    require(count >= 0 && count <= most, "trainer: trainer.{} of the state is {}, which is not in [0, {}]", name, count,
            most);
    return count;
  }

  void check_all_taken() const {
    require(entries_.empty(), "trainer: the state has an entry trainer.{}, which this Trainer does not know",
            entries_.empty() ? "" : entries_.front().first);
  }

 private:
  NamedTensors entries_;
};

/// Throws Error for names that are double or under none of the prefixes.
void check_names(const NamedTensors& state) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : state) {
    const bool known = name.starts_with(kModel) || name.starts_with(kOptimizer) || name.starts_with(kScaler) ||
                       name.starts_with(kEma) || name.starts_with(kLookahead) || name.starts_with(kTrainer);
    require(known, "trainer: the state has an entry {}, which no Trainer writes", name);
    require(names.insert(name).second, "trainer: the state has two entries {}", name);
  }
}

/// A line for each tensor.
std::string hashes_of(const NamedTensors& state) {
  std::string lines;
  for (const auto& [name, tensor] : state)
    lines += fmt::format("{}={:016x}\n", name, tensor.defined() ? comm::hash_tensor(tensor) : 0);
  return lines;
}

/// This rank's sums of the epoch in work. Another number of ranks than then gives them all to rank 0, and canonical
/// mode to every rank.
Scores scores_of(const Tensor& sums, std::size_t metrics, const comm::ProcessGroup& group, bool is_canonical) {
  const auto columns = static_cast<std::int64_t>(3 + metrics);
  require(sums.dtype() == DType::f64 && sums.rank() == 2 && sums.size(0) > 0 && sums.size(1) == columns,
          "trainer: trainer.epoch_sums of the state must be f64[ranks, {}], for the loss and {} metrics, got {}",
          columns, metrics, sums);
  const std::vector<double> values = sums.to_vector<double>();
  constexpr double kMostImages = 0x1p53;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_count = i % (3 + metrics) == 1 || i % (3 + metrics) == 2;
    require(!is_count || (values[i] >= 0.0 && values[i] <= kMostImages && values[i] == std::floor(values[i])),
            "trainer: trainer.epoch_sums of the state has {} in the place of a count of images", values[i]);
  }
  const bool same_ranks = sums.size(0) == group.size();
  std::vector<double> mine(3 + metrics, 0.0);
  for (std::int64_t rank = 0; rank < sums.size(0); ++rank) {
    const int owner = same_ranks ? static_cast<int>(rank) : 0;
    if (owner != group.rank() && !is_canonical) continue;
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += values[static_cast<std::size_t>(rank) * mine.size() + i];
  }
  return Scores::from_numbers(mine);
}

}  // namespace

/// What a state says of the run itself.
struct Trainer::Position {
  std::int64_t epochs = 0, epoch_step = 0, step = 0, forward_passes = 0, skipped_steps = 0;
  Scores scores{};  // of this rank
  BestEpoch best;
  std::int64_t ema_updates = 0, lookahead_steps = 0;
  bool is_uncounted = false;
  std::vector<std::int64_t> gradient_order{};
};

/// What each rank has added up in the epoch in work: f64[ranks, 3 + metrics]; in canonical mode all together, in one
/// row. Collective.
Tensor Trainer::epoch_sums() const {
  const std::vector<double> mine = epoch_scores_.all().to_numbers(options_.metrics.size());
  if (canonical_) return Tensor::from(mine, {1, static_cast<std::int64_t>(mine.size())});
  return parts_.group.all_gather(Tensor::from(mine, {static_cast<std::int64_t>(mine.size())}));
}

NamedTensors Trainer::state_dict() const {
  NamedTensors state;
  append(state, kModel, full_state_dict(parts_.model, parts_.optimizer));
  append(state, kOptimizer, parts_.optimizer.state_dict());
  append(state, kScaler, parts_.scaler.state_dict());
  if (ema_) {
    append(state, kEma, ema_->averages());
    append(state, kTrainer, {{"ema_updates", scalar(ema_->updates())}});
  }
  if (lookahead_) {
    append(state, kLookahead, lookahead_->slow_weights());
    append(state, kTrainer, {{"lookahead_steps", scalar(lookahead_->steps_taken())}});
  }
  append(state, kTrainer,
         {{"epochs", scalar(epochs_done_)},
          {"epoch_steps", scalar(epoch_step_)},
          {"steps", scalar(step_)},
          {"forward_passes", scalar(random_state_->step())},
          {"skipped_steps", scalar(skipped_steps())},
          {"best_epoch", best_epoch_.state()},
          {"epoch_sums", epoch_sums()}});
  if (uncounted_step_ == step_) append(state, kTrainer, {{std::string(kUncounted), scalar(1)}});
  for (const Setting& setting : settings_of(parts_.train_loader, options_))
    append(state, kTrainer, {{std::string(setting.name), scalar(setting.value)}});
  if (const int count = parts_.train_loader.sampler().micro_batches(); count > 0)
    append(state, kTrainer, {{std::string(kMicroBatches), scalar(count)}});
  if (const std::vector<std::int64_t>& order = parts_.replicas.gradient_order(); !order.empty())
    append(state, kTrainer, {{std::string(kGradientOrder), Tensor::from(order, {std::ssize(order)})}});
  return state;
}

Trainer::Position Trainer::position_of(const NamedTensors& state) const {
  check_names(state);
  Entries entries(state);
  for (const Setting& setting : settings_of(parts_.train_loader, options_)) {
    const std::int64_t saved = entries.take_integer(setting.name);
    require(saved == setting.value,
            "trainer: the state is of a run with {0} {1}, and this one has {2}: set it to {1}, or load the model's "
            "weights alone and begin another run",
            setting.meaning, saved, setting.value);
  }
  const std::int64_t micro_batches = parts_.train_loader.sampler().micro_batches(),
                     saved = entries.has(kMicroBatches) ? entries.take_integer(kMicroBatches) : 0;
  require(saved == micro_batches,
          "trainer: the state is of a run with {} micro-batches in canonical mode, and this one has {} (0: none): set "
          "them (RankShare::micro_batches) as they were, or load the model's weights alone and begin another run",
          saved, micro_batches);
  Position position{.best = best_epoch_};
  position.epochs = entries.take_count("epochs");
  position.epoch_step = entries.take_count("epoch_steps", steps_per_epoch());
  position.step = entries.take_count("steps");
  position.forward_passes = entries.take_count("forward_passes", std::numeric_limits<std::uint32_t>::max());
  position.skipped_steps = entries.take_count("skipped_steps", position.step);
  position.scores =
      scores_of(entries.take("epoch_sums"), options_.metrics.size(), parts_.group, canonical_.has_value());
  position.best.load_state(entries.take("best_epoch"));
  const auto has_any = [&](std::string_view prefix) {
    return std::any_of(state.begin(), state.end(), [&](const auto& entry) { return entry.first.starts_with(prefix); });
  };
  const bool has_averages = has_any(kEma), has_slow_weights = has_any(kLookahead);
  require(has_averages == ema_.has_value(),
          "trainer: the state is of a run {} an average of the weights, and this one "
          "{}: set the decay (ema) as it was, or load the model's weights alone and begin another run",
          has_averages ? "with" : "without", has_averages ? "has none" : "keeps one");
  if (ema_) position.ema_updates = entries.take_count("ema_updates", position.step);
  require(
      has_slow_weights == lookahead_.has_value(),
      "trainer: the state is of a run {} slow weights (lookahead), and this one {}: set lookahead as it was, or load "
      "the model's weights alone and begin another run",
      has_slow_weights ? "with" : "without", has_slow_weights ? "has none" : "keeps some");
  if (lookahead_) position.lookahead_steps = entries.take_count("lookahead_steps", position.step);
  if (entries.has(kUncounted)) position.is_uncounted = entries.take_count(kUncounted, 1) > 0;
  if (entries.has(kGradientOrder)) {
    const Tensor order = entries.take(kGradientOrder);
    require(order.dtype() == DType::i64 && order.rank() == 1, "trainer: trainer.{} of the state must be i64[n], got {}",
            kGradientOrder, order);
    // Of other parameters, as where layers were frozen, it says nothing; nor to one rank.
    if (parts_.group.size() > 1 && static_cast<std::size_t>(order.numel()) == parts_.replicas.gradient_count()) {
      position.gradient_order = order.to_vector<std::int64_t>();
      parts_.replicas.check_gradient_order(position.gradient_order);
    }
  }
  entries.check_all_taken();
  return position;
}

void Trainer::take_position(const Position& position) {
  epochs_done_ = position.epochs;
  epoch_step_ = position.epoch_step;
  step_ = position.step;
  uncounted_step_ = position.is_uncounted ? step_ : -1;
  epoch_scores_.reset(position.scores);
  best_epoch_ = position.best;
  skipped_before_ = position.skipped_steps - parts_.scaler.skipped_steps();
  random_state_->set_step(static_cast<std::uint32_t>(position.forward_passes));
  parts_.replicas.set_gradient_order(position.gradient_order);
  lr_ = parts_.optimizer.lr();  // of the state: nobody has set it meanwhile
  if (step_ > 0) set_lr_of_step(step_ - 1);
  parts_.optimizer.begin_step(step_);
  skipped_in_a_row_.reset();
  epoch_start_.reset();
  epoch_seconds_before_ = 0.0;
  is_resumed_ = true;
}

void Trainer::load_state_dict(const NamedTensors& state) {
  if (parts_.group.size() > 1) comm::check_same(parts_.group, "the trainer's state", hashes_of(state));
  const auto load = [&](const NamedTensors& model, const NamedTensors& optimizer, const NamedTensors& scaler) {
    parts_.model.load_state_dict(model);
    parts_.optimizer.load_state_dict(optimizer);
    parts_.scaler.load_state_dict(scaler);
  };
  const auto load_averages = [&](const NamedTensors& averages, std::int64_t updates) {
    if (ema_) ema_->load(averages, updates);
    if (lookahead_) lookahead_->load(averages, updates);  // no run has both
  };
  // What is there now, for the case that the parts do not fit on some rank.
  const NamedTensors model = clones_of(parts_.model.state_dict()), optimizer = clones_of(parts_.optimizer.state_dict()),
                     scaler = parts_.scaler.state_dict(),
                     averages = ema_         ? clones_of(ema_->averages())
                                : lookahead_ ? clones_of(lookahead_->slow_weights())
                                             : NamedTensors();
  const std::int64_t updates = ema_ ? ema_->updates() : lookahead_ ? lookahead_->steps_taken() : 0;
  Position position{.best = best_epoch_};
  try {
    comm::run_agreed(parts_.group, [&] {
      position = position_of(state);
      load(part_of(state, kModel), part_of(state, kOptimizer), part_of(state, kScaler));
      load_averages(part_of(state, ema_ ? kEma : kLookahead), ema_ ? position.ema_updates : position.lookahead_steps);
    });
  } catch (...) {
    load(model, optimizer, scaler);
    load_averages(averages, updates);
    throw;
  }
  parts_.optimizer.zero_grad();
  if (step_graph_) step_graph_->drop();
  take_position(position);
}

}  // namespace tandem::train
