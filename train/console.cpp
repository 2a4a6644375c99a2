// Wording and alignment.
#include "train/console.h"

#include "core/number_text.h"
#include "train/progress_format.h"

#include <fmt/core.h>

#include <algorithm>

namespace tandem::train {
namespace {

std::string counted(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", with_separators(count), noun, count == 1 ? "" : "s");
}

std::string setting(const RunRecord& run, const char* name) {
  const auto found = std::find_if(run.config.begin(), run.config.end(), [&](const auto& c) { return c.first == name; });
  if (found == run.config.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : to_toml(found->second);
}

bool is_chosen(const std::string& implementation) { return !implementation.empty() && implementation != "auto"; }

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes) : fmt::format("{:.2f} GiB", mebibytes / 1024);
}

std::string header_text(const RunRecord& run) {
  const std::string version = run.versions.empty() ? "" : " " + run.versions.front().second;
  std::string text = fmt::format("Tandem{} on {}\n", version, run.host);
  text += fmt::format("  model    {}, {}\n", run.model, counted(run.model_parameters, "parameter"));
  text += fmt::format("  data     {}, {} for training, {} for testing\n", run.dataset,
                      counted(run.train_images, "image"), with_separators(run.test_images));
  text += fmt::format("  ranks    {} x {} on {}, backend {}\n", run.world_size, counted(run.threads, "thread"),
                      run.device, run.backend);
  text += fmt::format("  steps    {} of {} per epoch; {}, lr {} ({})\n", with_separators(run.steps_per_epoch),
                      counted(run.global_batch_size, "image"), setting(run, "optimizer"), setting(run, "lr"),
                      setting(run, "schedule"));
  const std::string conv = setting(run, "conv-impl"), gemm = setting(run, "gemm-impl");
  if (is_chosen(conv) || is_chosen(gemm)) text += fmt::format("  code     conv-impl {}, gemm-impl {}\n", conv, gemm);
  return text;
}

std::string epoch_text(const EpochRecord& e, std::int64_t epochs) {
  const auto digits = static_cast<int>(std::to_string(epochs).size());
  return fmt::format("epoch {:>{}}/{}  loss {:5.3f} acc {:4.1f}%  test loss {:5.3f} acc {:4.1f}%  {:>4}  {:>5} img/s",
                     e.epoch, digits, epochs, e.train_loss, e.train_accuracy, e.test_loss, e.test_accuracy,
                     format_duration(e.seconds), format_count(e.images_per_second));
}

std::string summary_text(const ResultRecord& result, const Leftovers& leftovers) {
  const EpochRecord& last = result.last;
  std::string text = fmt::format("test accuracy {:.2f}% (loss {:.4f}) after {} in {}, peak memory {} per rank\n",
                                 last.test_accuracy, last.test_loss, counted(last.epoch, "epoch"),
                                 format_duration(result.total_seconds), format_bytes(last.peak_memory_bytes));
  if (!leftovers.log.empty()) text += fmt::format("  log      {}\n", leftovers.log);
  if (!leftovers.weights.empty()) text += fmt::format("  weights  {}\n", leftovers.weights);
  return text;
}

}  // namespace tandem::train
