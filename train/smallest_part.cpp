// Trying the smallest share before training begins.
#include "tandem/train/smallest_part.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"

#include <fmt/format.h>

#include <string_view>

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
  const bool full = smallest.global_count == options.global_batch_size, is_canonical = sampler.micro_batches() > 0;
  const int parts = is_canonical ? sampler.micro_batches() : sampler.world_size();
  const std::string_view part = is_canonical ? "micro-batch" : "rank";
  fail(
      "{} examples in batches of {} on {} {}{} leave a {} 1 example of a batch of {}, and the network cannot be "
      "trained "
      "on one ({}); choose another batch size, {}",
      sampler.size(), options.global_batch_size, parts, part,
      parts == 1     ? ""
      : is_canonical ? "es"
                     : "s",
      part, smallest.global_count, problem,
      full ? fmt::format("or fewer {}{}", part, is_canonical ? "es" : "s")
           : "or leave out that last batch (drop_last)");
}

}  // namespace tandem::train
