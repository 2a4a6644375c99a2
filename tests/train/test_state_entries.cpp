// Each entry of a trainer's state, and each number of those that have several, is needed: without it, a run that goes
// on ends otherwise.
#include "tests/train/resumed_run.h"

#include "tandem/train/metrics.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

NamedTensors copy_of(const NamedTensors& state) {
  NamedTensors copy;
  for (const auto& [name, tensor] : state) copy.emplace_back(name, tensor.detach().clone());
  return copy;
}

/// What `name` is in a run that has not begun; zeros where that has no such entry.
Tensor at_first(const NamedTensors& beginning, const std::string& name, const Tensor& tensor) {
  for (const auto& [own, value] : beginning) {
    if (own == name) return value.detach().clone();
  }
  return Tensor::zeros(tensor.shape(), tensor.options());
}

bool is_same_end(const Trace& end, const Trace& whole) {
  const bool same_losses = end.losses.size() <= whole.losses.size() &&
                           std::equal(end.losses.rbegin(), end.losses.rend(), whole.losses.rbegin());
  return end.state == whole.state && end.last.skipped_steps == whole.last.skipped_steps && same_losses &&
         end.last.train_loss == whole.last.train_loss && end.last.train_metrics == whole.last.train_metrics;
}

/// Goes on from states of one run in which something has been forgotten.
class Forgetting {
 public:
  /// The states behind the steps from `first` on, but for the last, as rank 0 leaves them in `states`, which all ranks
  /// of `group` have in common. They call everything alike.
  Forgetting(const Settings& settings, comm::ProcessGroup& group, std::int64_t first, std::vector<NamedTensors>& states)
      : settings_(settings), group_(group) {
    Run run(settings, group);
    whole_ = trace_of(run, [&](std::int64_t step) {
      const NamedTensors state = run.trainer->state_dict();
      if (step >= first && group.rank() == 0) states.push_back(copy_of(state));
    });
    if (group.rank() == 0) states.pop_back();
    train::max_over_ranks(0.0, group);  // from here on they are there
    for (const NamedTensors& state : states) states_.push_back(copy_of(state));
    Run fresh(settings, group, 99);
    beginning_ = copy_of(fresh.trainer->state_dict());
    for (const auto& [name, parameter] : fresh.model.named_parameters()) parameters_.push_back("model." + name);
  }

  /// The entries that a state may lack without harm, but for those that need not be noticed. With `numbers`, of the
  /// entry trainer.best_epoch each number.
  std::vector<std::string> unnoticed(bool numbers) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : states_.front()) {
      if (is_exempt(name)) continue;
      if (!is_noticed(name, -1)) names.push_back(name);
      for (std::int64_t i = 0; numbers && name == "trainer.best_epoch" && i < tensor.numel(); ++i) {
        if (!is_noticed(name, i)) names.push_back(fmt::format("{}[{}]", name, i));
      }
    }
    return names;
  }

  /// Whether some run that goes on without it ends otherwise; of the whole entry for a `number` below 0.
  bool is_noticed(const std::string& name, std::int64_t number) {
    return std::any_of(states_.begin(), states_.end(),
                       [&](const NamedTensors& state) { return is_noticed_in(state, name, number); });
  }

  const Trace& whole() const { return whole_; }

 private:
  /// What another run must have alike is refused where it differs; masters are copied to their parameters.
  bool is_exempt(const std::string& name) const {
    if (name == "trainer.skipped_steps" && settings_.init_scale == 0.0) return true;  // there are none
    // Batch norm's counts are not averaged, but copied with the next step.
    if (name.starts_with("ema.") && name.ends_with("num_batches_tracked")) return true;
    const bool has_masters = settings_.dtype != DType::f32;
    return name == "trainer.seed" || name == "trainer.global_batch_size" || name == "trainer.accumulation" ||
           name == "trainer.images_per_epoch" ||
           (has_masters && std::find(parameters_.begin(), parameters_.end(), name) != parameters_.end());
  }

  bool is_noticed_in(NamedTensors state, const std::string& name, std::int64_t number) {
    for (auto& [own, tensor] : state) {
      if (own != name) continue;
      const Tensor forgotten = at_first(beginning_, name, tensor);
      if (number < 0) {
        tensor = forgotten;
      } else {
        auto values = tensor.to_vector<double>();
        values[static_cast<std::size_t>(number)] = forgotten.to_vector<double>()[static_cast<std::size_t>(number)];
        tensor = Tensor::from(values, tensor.shape());
      }
    }
    bool differs = true;
    try {
      Run other(settings_, group_, 99);
      other.trainer->load_state_dict(state);
      differs = !is_same_end(trace_of(other, {}), whole_);
    } catch (const Error&) {  // on all ranks alike
    }
    return train::max_over_ranks(differs ? 1.0 : 0.0, group_) > 0.0;
  }

  Settings settings_;
  comm::ProcessGroup& group_;
  Trace whole_;
  std::vector<NamedTensors> states_;
  NamedTensors beginning_;
  std::vector<std::string> parameters_;
};

}  // namespace

TEST_CASE("a state that had forgotten any one entry would show in the end, or be refused") {
  const Settings settings =
      GENERATE(Settings{}, Settings{.adam = true}, Settings{.dtype = DType::f16, .init_scale = 4e5},
               Settings{.adam = true, .dtype = DType::bf16}, Settings{.ema = 0.9},
               Settings{.dtype = DType::f16, .init_scale = 4e5, .ema = 0.9}, Settings{.lookahead = 3},
               Settings{.dtype = DType::f16, .init_scale = 4e5, .lookahead = 2});
  CAPTURE(settings.adam, name_of(settings.dtype), settings.ema, settings.lookahead);
  comm::ProcessGroup group(comm::make_self_backend());
  std::vector<NamedTensors> states;
  Forgetting forgetting(settings, group, 5, states);  // within the second epoch
  CHECK(forgetting.unnoticed(false) == std::vector<std::string>());
  CHECK_FALSE(forgetting.is_noticed("none", -1));
  const auto has = [&](const std::string& name) { return forgetting.whole().state.count(name) == 1; };
  CHECK(has("trainer.ema_updates") == (settings.ema > 0.0));
  CHECK(has("ema.0.weight") == (settings.ema > 0.0));
  CHECK(has("trainer.lookahead_steps") == (settings.lookahead > 0));
  CHECK(has("lookahead.0.weight") == (settings.lookahead > 0));
  CHECK_FALSE(has("lookahead.1.num_batches_tracked"));
}

TEST_CASE("a state that had forgotten any number that early stopping goes by would show in the end") {
  // At this rate the test accuracy stays as it is: the second and third epoch are no better, and the third is the last.
  const Settings settings{.local = false, .epochs = 5, .lr = 1e-5, .stopping = {.patience = 2}};
  comm::ProcessGroup group(comm::make_self_backend());
  std::vector<NamedTensors> states;
  Forgetting forgetting(settings, group, 9, states);
  CHECK(forgetting.whole().last.stopped_early);
  CHECK(forgetting.whole().losses.size() == 12);
  CHECK(forgetting.unnoticed(true) == std::vector<std::string>());
  CHECK_FALSE(forgetting.is_noticed("none", -1));
}

TEST_CASE("a state of two ranks that had forgotten any one entry would show in the end, or be refused", "[threads]") {
  const Settings settings = GENERATE(Settings{}, Settings{.dtype = DType::f16, .init_scale = 4e5, .ema = 0.9},
                                     Settings{.dtype = DType::f16, .init_scale = 4e5, .lookahead = 2});
  CAPTURE(name_of(settings.dtype), settings.lookahead);
  std::vector<std::vector<std::string>> unnoticed(2);
  std::vector<char> noticed_nothing(2);
  std::vector<NamedTensors> states;
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    Forgetting forgetting(settings, group, 5, states);
    unnoticed[rank] = forgetting.unnoticed(false);
    noticed_nothing[rank] = forgetting.is_noticed("none", -1) ? 0 : 1;
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(unnoticed[rank] == std::vector<std::string>());
    CHECK(noticed_nothing[rank] == 1);
  }
}
