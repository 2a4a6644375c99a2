// Tags, and what stands behind them.
#include "tandem/train/writers/tensorboard/run_events.h"

#include "tandem/autograd/variable.h"

#include <cmath>

namespace tandem::train {
namespace {

/// A code block, for Markdown would take apart what stands in it.
std::string code(const std::string& text) { return "```toml\n" + text + "```\n"; }

std::string summary_of(const RunRecord& run) {
  std::string text = fmt::format("{} ({} parameters) on {}, {} x {} on {}\n\n", run.model, run.model_parameters,
                                 run.dataset, run.world_size, run.device, run.host);
  for (const auto& [name, version] : run.versions) text += fmt::format("* {}: {}\n", name, version);
  return text;
}

/// What runs are compared by.
std::vector<std::string> metrics_of(const RunRecord& run) {
  std::vector<std::string> tags{"loss/test", "accuracy/test", "loss/train"};
  if (run.validation_images > 0) tags.insert(tags.end(), {"loss/validation", "accuracy/validation"});
  return tags;
}

/// What was not evaluated is NaN.
bool is_tested(const EpochRecord& r) { return has_figures(r.test_loss, r.test_accuracy, r.test_metrics); }

}  // namespace

RunEvents::RunEvents(const std::string& folder, const RunRecord& run, const TensorBoardOptions& options)
    : writer_(folder, options) {
  writer_.add_hparams(run.config, metrics_of(run));
  writer_.add_text("run/settings", code(to_toml(run.config)), options.first_step);
  writer_.add_text("run/environment", summary_of(run), options.first_step);
  writer_.flush();
}

void RunEvents::write(const StepRecord& r) {
  writer_.add_scalar("loss/step", r.loss, r.step);
  writer_.add_scalar("learning_rate/step", r.lr, r.step);
  if (r.loss_scale != 1.0) writer_.add_scalar("loss_scale/step", r.loss_scale, r.step);
}

void RunEvents::write(const EpochRecord& r, std::int64_t step) {
  const auto add = [&](const std::string& tag, double value) { writer_.add_scalar(tag, value, step); };
  // What was not evaluated, or not counted, is NaN; a loss of training that is none has diverged.
  const auto add_known = [&](const std::string& tag, double value) {
    if (!std::isnan(value)) add(tag, value);
  };
  add("loss/train", r.train_loss);
  add_known("loss/validation", r.validation_loss);
  add_known("accuracy/train", r.train_accuracy);
  add_known("accuracy/validation", r.validation_accuracy);
  for (const auto& [name, value] : r.train_metrics) add(name + "/train", value);
  for (const auto& [name, value] : r.validation_metrics) add(name + "/validation", value);
  write_test(r, step);
  last_epoch_ = {step, is_tested(r)};
  add("learning_rate/epoch", r.lr);
  add("speed/images_per_second", r.images_per_second);
  add("speed/epoch_seconds", r.seconds);
  add("memory/peak_bytes", static_cast<double>(r.peak_memory_bytes));
  if (r.skipped_steps > 0) add("loss_scale/skipped_steps", static_cast<double>(r.skipped_steps));
  write_costs(r, step);
  for (const LayerNorms& layer : r.layers) {
    add("gradient_norm/" + layer.name, layer.gradient_norm);
    add("update_norm/" + layer.name, layer.update_norm);
    add("weight_norm/" + layer.name, layer.weight_norm);
  }
  for (const DeadRelus& relu : r.dead_relus) add("dead_relus/" + relu.name, relu.percent());
  writer_.flush();
}

void RunEvents::write_result(const EpochRecord& last, std::int64_t step) {
  // What was written already, by this session or by the one that this session found finished, is not written twice.
  if (step != last_epoch_.step || last_epoch_.is_tested) return;
  write_test(last, step);
  writer_.flush();
}

void RunEvents::write_test(const EpochRecord& r, std::int64_t step) {
  if (!std::isnan(r.test_loss)) writer_.add_scalar("loss/test", r.test_loss, step);
  if (!std::isnan(r.test_accuracy)) writer_.add_scalar("accuracy/test", r.test_accuracy, step);
  for (const auto& [name, value] : r.test_metrics) writer_.add_scalar(name + "/test", value, step);
}

void RunEvents::write_costs(const EpochRecord& r, std::int64_t step) {
  const auto add = [&](const std::string& tag, double value) { writer_.add_scalar(tag, value, step); };
  if (r.time) {
    for (const auto& [name, phase] : kPhases) add(fmt::format("time/{}_seconds", name), (*r.time).*phase);
  }
  for (const auto& [kind, bytes] : r.memory) add(fmt::format("memory/{}_bytes", kind), static_cast<double>(bytes));
  if (!r.exchange) return;
  const auto bytes = static_cast<double>(r.exchange->bytes);
  add("communication/bytes_per_step", bytes / static_cast<double>(r.exchange->steps));
  add("communication/early_share", static_cast<double>(r.exchange->early_bytes) / bytes);
  add("communication/bytes_per_second", bytes / r.exchange->seconds);
  add("communication/waited_seconds", r.exchange->waited_seconds);
}

void RunEvents::write_histograms(const layers::Module& model, std::int64_t step) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    writer_.add_histogram("weights/" + name, parameter.detach(), step);
    if (const Tensor gradient = autograd::grad(parameter); gradient.defined()) {
      writer_.add_histogram("gradients/" + name, gradient, step);
    }
  }
  writer_.flush();
}

void RunEvents::finish(bool success) {
  writer_.end_session(success);
  writer_.flush();
}

}  // namespace tandem::train
