// Trying the smallest share before training begins.
#include "tandem/train/smallest_part.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"

namespace tandem::train {

namespace {

/// What the model says to a training forward of `count` examples like the loader's, or nothing.
std::string problem_with_examples(layers::Module& model, const data::Loader& loader, const ForwardFunction& forward,
                                  std::int64_t count) {
  const layers::ModeScope same_modes(model);
  const layers::NoObservers unseen(model);
  const autograd::NoGrad no_grad;
  const layers::SameBuffers same_buffers(model);
  if (!model.training()) model.train();
  try {
    if (const std::optional<data::Batch> batch = loader.zeros(count)) run_forward(forward, model, *batch);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

void check_smallest_part(layers::Module& model, const data::Loader& loader, const ForwardFunction& forward) {
  const data::LoaderOptions& options = loader.options();
  const data::DistributedSampler& sampler = loader.sampler();
  const data::BatchPart smallest = sampler.smallest_part(options.global_batch_size, options.drop_last);
  if (smallest.count != 1) return;
  const std::string problem = problem_with_examples(model, loader, forward, 1);
  // What two examples do not help either is no matter of batches.
  if (problem.empty() || !problem_with_examples(model, loader, forward, 2).empty()) return;
  const bool full = smallest.global_count == options.global_batch_size;
  fail(
      "{} examples in batches of {} on {} rank{} leave a rank 1 example of a batch of {}, and the network cannot be "
      "trained "
      "on one ({}); choose another batch size, {}",
      sampler.size(), options.global_batch_size, sampler.world_size(), sampler.world_size() == 1 ? "" : "s",
      smallest.global_count, problem, full ? "or fewer ranks" : "or leave out that last batch (drop_last)");
}

}  // namespace tandem::train
