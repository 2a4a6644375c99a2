// What a recorded batch of an evaluation is.
#include "tandem/train/evaluation_graph.h"

#include "tandem/core/describe.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/core/work_graph.h"
#include "tandem/layers/random_draws.h"

#include <utility>

namespace tandem::train {

std::string EvaluationGraph::obstacle(layers::Module& model, const Scoring& scoring) {
  for (const Tensor& parameter : model.parameters())  // buffers that count are on the CPU anyway
    if (!WorkGraph::can_record(parameter.device())) return "the model is on the CPU";
  return scoring.metrics_of_own() > 0 ? "metrics of the program's own are computed by the host" : "";
}

EvaluationGraph::EvaluationGraph(layers::Module& model, Scoring scoring, CudaGraph mode, bool keeps_outputs)
    : RecordedWork(model, mode, "the evaluation"),
      model_(model),
      scoring_(std::move(scoring)),
      sums_(scoring_),
      keeps_outputs_(keeps_outputs) {
  if (const std::string reason = obstacle(model_, scoring_); !reason.empty()) refuse(reason);
}

void EvaluationGraph::refuse(std::string_view reason) {
  if (is_cancelled()) return require_recordable();
  cancel(reason);
}

void EvaluationGraph::start() {
  sums_.reset();
  sums_.forget_bad_step();
  batches_ = 0;
  look_at_model();
}

void EvaluationGraph::add_circumstances(std::vector<std::uintptr_t>& all) const {
  for (const Tensor& tensor : {sums_.sums(), fixed_output_})
    all.push_back(tensor.defined() ? reinterpret_cast<std::uintptr_t>(tensor.raw_data()) : 0);
}

/// Recorded work has memory for outputs that is not its own: made by the operations' last batch of its shapes.
void EvaluationGraph::keep(const data::Batch& batch, const Tensor& output) {
  const bool fits = fixed_output_.defined() && output.shape() == fixed_output_.shape() &&
                    output.dtype() == fixed_output_.dtype() && output.device() == fixed_output_.device();
  if (!WorkGraph::is_recording()) {
    const MemoryTagScope tag(MemoryTag::workspace);
    output_ = output.detach();
    if (!is_recorded() && !fits && has_recorded_shapes(batch)) fixed_output_ = empty_like(output_);
    return;
  }
  require(fits, "the model gives {}, and gave {} for other batches of this shape", describe(output),
          fixed_output_.defined() ? describe(fixed_output_) : "none");
  fixed_output_.copy_from_async(output.detach());
}

void EvaluationGraph::compute(const data::Batch& batch) {
  const std::int64_t draws = layers::random_draws();
  const Tensor output = scoring_.output(model_, batch);
  const Tensor loss = scoring_.loss(output, batch.labels);
  if (keeps_outputs_) keep(batch, output);
  if (layers::random_draws() != draws) {  // known before a recording, which would draw some as well
    constexpr std::string_view kReason =
        "the model draws random numbers, and a launch would draw the same for each batch";
    require(!WorkGraph::is_recording(), "{}", kReason);
    refuse(kReason);
  }
  if (!sums_.add_on_device(loss, output, batch.labels, batch.count()))
    sums_.add(scoring_.begin_reading(loss, output, batch.labels), batch.count());
}

bool EvaluationGraph::add(data::DeferredBatch batch) {
  const Tensor labels = batch.labels();
  const std::int64_t examples = batch.count();
  sums_.begin_step();
  const bool is_launch = take_batch(std::move(batch), examples, [this](const data::Batch& given) { compute(given); });
  if (is_launch) sums_.add_launched(labels);
  if (is_launch) output_ = fixed_output_;
  sums_.read_earlier_steps();
  sums_.end_step(++batches_);
  return is_launch;
}

}  // namespace tandem::train
