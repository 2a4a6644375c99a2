// Hooks that look at everything.
#include "tandem/train/nan_finder.h"

#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tandem/train/nan_scan.h"

#include <functional>
#include <map>
#include <utility>

namespace tandem::train {
namespace {

/// `tensor`, whose gradient `look` is given as backward passes it.
Tensor watch_gradient(const Tensor& tensor, std::function<void(const Tensor&)> look) {
  if (!autograd::should_record({tensor})) return tensor;
  const auto producer = autograd::producer_of(tensor);  // what layers do for each other, they go on doing
  return autograd::record(
      "watch", {tensor}, tensor.detach(),
      [look = std::move(look)](const autograd::BackwardContext& context) {
        look(context.grad_output());
        return std::vector<Tensor>{context.grad_output()};
      },
      producer);
}

std::string parent_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

}  // namespace

/// What this rank has seen.
struct NanFinder::State {
  Trainer& trainer;
  std::map<std::string, layers::Module*> modules;
  std::optional<NanFinding> found;         // what ends the run
  std::optional<NanFinding> overflow;      // in backward, of the step in work, which may be skipped for it
  std::optional<NanFinding> last_skipped;  // why the last step was skipped, if it was
  std::int64_t forwards = 0;               // of the model, since the step began
  std::int64_t skipped_before = 0;         // steps, when the one in work began

  explicit State(Trainer& of) : trainer(of), skipped_before(of.parts().scaler.skipped_steps()) {
    for (const auto& [name, module] : of.parts().model.named_modules()) modules.emplace(name, module);
  }

  bool is_training() const { return trainer.parts().model.training(); }
  bool may_skip() const { return !trainer.parts().scaler.state_dict().empty(); }

  NanFinding finding(NanPlace place, const std::string& layer, const Tensor& tensor) const {
    NanFinding result = scan(tensor);
    result.place = place;
    result.in_evaluation = !is_training() && place != NanPlace::weight;
    result.step = trainer.steps_done() + (result.in_evaluation ? 0 : 1);
    result.rank = trainer.parts().group.rank();
    result.layer = layer;
    if (const auto module = modules.find(layer); module != modules.end())
      result.description = module->second->describe();
    return result;
  }

  void look_at_input(const std::string& layer, const Tensor& input) {
    const bool is_model = layer.empty();
    if (is_model && is_training()) ++forwards;
    if (found || is_finite(input)) return;
    // What reaches a layer and was finite before, its parent has made.
    found = finding(is_model ? NanPlace::model_input : NanPlace::layer_input, layer, input);
    if (is_model && is_training()) found->examples = examples_of(input);
  }

  void look_at_output(const std::string& layer, const Tensor& input, const Tensor& output) {
    if (found || is_finite(output)) return;
    found = bad_parameter(NanPlace::weight);  // which somebody has changed since the step before
    if (found) return;
    found = finding(NanPlace::output, layer, output);
    found->largest_input = largest(input);
  }

  void look_at_gradient(NanPlace place, const std::string& layer, const Tensor& gradient,
                        const std::string& tensor = "") {
    if (found || overflow || is_finite(gradient)) return;
    NanFinding result = finding(place, layer, gradient);
    result.tensor = tensor;
    (may_skip() ? overflow : found) = std::move(result);
  }

  /// Numbers in the data set of the rows that are not finite.
  std::vector<std::int64_t> examples_of(const Tensor& input) const {
    data::Loader& loader = trainer.parts().train_loader;
    const data::DistributedSampler& sampler = loader.sampler();
    const std::int64_t in_epoch = trainer.steps_done() - trainer.epochs_done() * trainer.steps_per_epoch();
    const bool is_canonical = sampler.micro_batches() > 0;  // each forward is of a part of the step's only batch
    const std::int64_t batch = is_canonical ? in_epoch : in_epoch * trainer.options().accumulation + forwards - 1;
    const std::int64_t size = loader.options().global_batch_size;
    if (in_epoch < 0 || batch >= sampler.batches(size)) return {};
    if (is_canonical && (forwards < 1 || forwards > sampler.local_micro_batches())) return {};
    const data::BatchPart part =
        is_canonical ? sampler.micro_part(batch, size, static_cast<int>(forwards - 1)) : sampler.part(batch, size);
    const auto order = sampler.order(static_cast<std::uint32_t>(trainer.epochs_done()));
    std::vector<std::int64_t> examples;
    for (const std::int64_t row : bad_rows(input)) {
      if (row < part.count && examples.size() < 8)
        examples.push_back(order[static_cast<std::size_t>(part.begin + row)]);
    }
    return examples;
  }

  /// Behind a step: what it has left, and whether its overflow was meant to be.
  void end_step() {
    const std::int64_t skips = trainer.parts().scaler.skipped_steps();
    const bool was_skipped = skips > std::exchange(skipped_before, skips);
    last_skipped.reset();
    forwards = 0;
    if (!overflow) overflow = bad_parameter(NanPlace::exchanged_gradient);
    if (!overflow) overflow = bad_parameter(NanPlace::update);
    if (overflow) overflow->step = trainer.steps_done();
    if (!found) (was_skipped ? last_skipped : found) = overflow;
    overflow.reset();
  }

  /// The first parameter (or its gradient) or buffer that is not finite.
  std::optional<NanFinding> bad_parameter(NanPlace place) const {
    const bool gradients = place == NanPlace::exchanged_gradient;
    NamedTensors tensors = trainer.parts().model.named_parameters();
    for (auto& [name, tensor] : tensors) tensor = gradients ? autograd::grad(tensor) : tensor.detach();
    const std::size_t parameters = tensors.size();
    if (!gradients) {
      const NamedTensors buffers = trainer.parts().model.named_buffers();
      tensors.insert(tensors.end(), buffers.begin(), buffers.end());
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto& [name, tensor] = tensors[i];
      const bool is_buffer = i >= parameters;
      if (is_finite(tensor) || (is_buffer && scan(tensor).nans == 0)) continue;  // infinity may be meant, as in a mask
      NanFinding result = finding(place, parent_of(name), tensor);
      result.tensor = name;
      return result;
    }
    return std::nullopt;
  }
};

NanFinder::NanFinder(Trainer& trainer) : state_(std::make_shared<State>(trainer)) {
  const std::weak_ptr<State> weak = state_;
  State* const state = state_.get();
  for (const auto& named : trainer.parts().model.named_modules()) {
    const std::string& name = named.first;
    handles_.push_back(
        named.second->register_forward_pre_hook([state, name, weak](layers::Module&, const Tensor& input) -> Tensor {
          state->look_at_input(name, input);
          return watch_gradient(input, [weak, name](const Tensor& gradient) {
            if (const auto there = weak.lock()) there->look_at_gradient(NanPlace::input_gradient, name, gradient);
          });
        }));
    handles_.push_back(named.second->register_forward_hook(
        [state, name, weak](layers::Module&, const Tensor& input, const Tensor& output) -> Tensor {
          state->look_at_output(name, input, output);
          return watch_gradient(output, [weak, name](const Tensor& gradient) {
            if (const auto there = weak.lock()) there->look_at_gradient(NanPlace::output_gradient, name, gradient);
          });
        }));
  }
  for (const auto& named : trainer.parts().model.named_parameters()) {
    const std::string& name = named.first;
    autograd::on_gradient_ready(named.second, [weak, name](Tensor gradient) {
      if (const auto there = weak.lock())
        there->look_at_gradient(NanPlace::parameter_gradient, parent_of(name), gradient, name);
      return gradient;
    });
  }
  state_->found = state_->bad_parameter(NanPlace::weight);
}

NanFinder::~NanFinder() {
  for (layers::RemovableHandle& handle : handles_) handle.remove();
}

TrainObserver NanFinder::with(const TrainObserver& observer) {
  TrainObserver result = observer;
  result.progress = [this, inner = observer.progress](const Progress& progress) {
    state_->end_step();
    if (inner) inner(progress);
  };
  result.stop = [this, inner = observer.stop] { return state_->found.has_value() || (inner && inner()); };
  return result;
}

std::optional<NanFinding> NanFinder::first(const EpochRecord& last) {
  const bool counts_skips = last.diverged && last.diverged->skipped_steps > 0;
  std::optional<NanFinding> mine = state_->found;
  if (!mine && counts_skips) mine = state_->last_skipped;
  return first_of_ranks(mine, state_->trainer.parts().group);
}

}  // namespace tandem::train
