// Wording and alignment.
#include "tandem/train/console.h"

#include "tandem/core/memory.h"
#include "tandem/core/number_text.h"
#include "tandem/train/progress_format.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

/// A line of the summary; `what` has at most 8 letters.
std::string labelled(std::string_view what, const std::string& text) { return fmt::format("  {:<8} {}\n", what, text); }

/// The kinds with the most memory; how many the others are.
std::string largest_kinds(TensorMemory memory) {
  constexpr std::size_t kShown = 3;
  std::stable_sort(memory.begin(), memory.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(memory.size(), kShown); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", memory[i].first, format_memory(memory[i].second));
  return memory.size() > kShown ? fmt::format("{}, {} more", text, memory.size() - kShown) : text;
}

/// What averaging gradients over the ranks cost in the last epoch: "947.2 KiB a step, 92 % within backward; waited 0.12
/// of 15.60 ms".
std::string exchange_text(const comm::ExchangeTotals& exchange, const PhaseTimes& time) {
  const auto steps = static_cast<double>(exchange.steps);
  const double seconds = time.data + time.forward + time.backward + time.communication + time.optimizer;
  const double early =
      exchange.bytes > 0 ? static_cast<double>(exchange.early_bytes) / static_cast<double>(exchange.bytes) : 0.0;
  return fmt::format("{} a step, {:.0f} % within backward; waited {:.2f} of {:.2f} ms",
                     format_memory(exchange.bytes / exchange.steps), 100.0 * early,
                     1e3 * exchange.waited_seconds / steps, 1e3 * seconds / steps);
}

/// "1.97x on 2 hosts, 7.63x on 8, 55.1x on 64, predicted for 25 us and 1.1 GB/s".
std::string scaling_text(const Scaling& scaling) {
  std::string text;
  for (const comm::SpeedUp& gain : scaling.predicted) {
    if (gain.ranks != 2 && gain.ranks != 8 && gain.ranks != 64) continue;
    text += fmt::format("{:.3g}x on {}{}, ", gain.factor, gain.ranks, text.empty() ? " hosts" : "");
  }
  return fmt::format("{}predicted for {}{:.4g} us and {:.2g} GB/s", text,
                     scaling.network_is_simulated ? "the simulated " : "", scaling.latency * 1e6,
                     scaling.bytes_per_second * 1e-9);
}

/// A path in the folder without the folder's name.
std::string path_inside(const std::string& path, const std::string& folder) {
  const std::string start = folder.ends_with('/') ? folder : folder + "/";
  return !folder.empty() && path.starts_with(start) ? path.substr(start.size()) : path;
}

/// "epoch 7 by test_accuracy, 82.41%", and why the run ended there.
std::string best_text(const EpochRecord& last) {
  const BestFigure& best = *last.best;
  const std::string value =
      best.by.ends_with("accuracy") ? fmt::format("{:.2f}%", best.value) : format_loss(best.value, 4);
  std::string text = fmt::format("epoch {} by {}, {}", best.epoch, best.by, value);
  if (last.stopped_early) text += "; stopped early: no better since";
  return text;
}

/// What differs from plain f32; empty for that.
std::string precision_line(const RunRecord& run) {
  const std::string precision = setting(run, "precision");
  if (precision.empty() || precision == "fp32") return "";
  if (precision.ends_with("tf32")) return fmt::format("  numbers  f32, multiplied as {} in convolutions\n", precision);
  const bool masters = setting(run, "master-weights") == "true";
  std::string text = fmt::format("  numbers  {}, {}, loss scale {}", precision,
                                 masters ? "f32 master weights" : "no master weights", setting(run, "loss-scale"));
  if (run.world_size > 1) text += fmt::format(", gradients exchanged in {}", setting(run, "allreduce-dtype"));
  return text + "\n";
}

bool is_chosen(const std::string& implementation) { return !implementation.empty() && implementation != "auto"; }

/// "loss 0.528 acc 82.4%", and metrics behind it. Accuracy is left out where it was not counted.
std::string figures(double loss, double accuracy, const NamedValues& metrics) {
  std::string text = fmt::format("loss {:>5}", format_loss(loss));
  if (!std::isnan(accuracy)) text += fmt::format(" acc {:4.1f}%", accuracy);
  for (const auto& [name, value] : metrics) text += fmt::format(" {} {:.4g}", name, value);
  return text;
}

/// "test accuracy 82.40% (loss 0.5280)", without what was not counted; of training where nothing was tested.
std::string result_text(const EpochRecord& e) {
  const bool tested = has_figures(e.test_loss, e.test_accuracy, e.test_metrics);
  const double loss = tested ? e.test_loss : e.train_loss, accuracy = tested ? e.test_accuracy : e.train_accuracy;
  const char* const which = tested ? "test" : "training";
  return std::isnan(accuracy) ? fmt::format("{} loss {}", which, format_loss(loss, 4))
                              : fmt::format("{} accuracy {:.2f}% (loss {})", which, accuracy, format_loss(loss, 4));
}

/// How the ranks add up: " (shared-memory, polled)", or nothing.
std::string exchange_of(const RunRecord& run) {
  if (run.world_size == 1) return "";
  std::vector<std::string> parts;
  if (!run.all_reduce.empty()) parts.push_back(run.all_reduce);
  if (!run.progress.empty()) parts.emplace_back(run.progress == "thread" ? "progress thread" : "polled");
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes) : fmt::format("{:.2f} GiB", mebibytes / 1024);
}

std::string header_text(const RunRecord& run) {
  const std::string version = run.versions.empty() ? "" : " " + run.versions.front().second;
  std::string text = fmt::format("Tandem{} on {}\n", version, run.host);
  text += fmt::format("  model    {}, {}\n", run.model, counted(run.model_parameters, "parameter"));
  const std::string validation =
      run.validation_images > 0 ? fmt::format(", {} for validation", with_separators(run.validation_images)) : "";
  text += fmt::format("  data     {}, {} for training{}, {} for testing\n", run.dataset,
                      counted(run.train_images, "image"), validation, with_separators(run.test_images));
  text += fmt::format("  ranks    {} x {} on {}, backend {}{}\n", run.world_size, counted(run.threads, "thread"),
                      run.device, run.backend, exchange_of(run));
  if (!run.network.empty()) text += fmt::format("  network  simulated: {}\n", run.network);
  text += fmt::format("  steps    {} of {} per epoch; {}, lr {} ({})\n", with_separators(run.steps_per_epoch),
                      counted(run.global_batch_size, "image"), setting(run, "optimizer"), setting(run, "lr"),
                      setting(run, "schedule"));
  if (const std::string parts = setting(run, "canonical"); !parts.empty() && parts != "0")
    text += fmt::format("  cut      each batch into {} micro-batches (canonical mode)\n", parts);
  text += precision_line(run);
  const std::string conv = setting(run, "conv-impl"), gemm = setting(run, "gemm-impl");
  if (is_chosen(conv) || is_chosen(gemm)) text += fmt::format("  code     conv-impl {}, gemm-impl {}\n", conv, gemm);
  return text;
}

std::string epoch_text(const EpochRecord& e, std::int64_t epochs) {
  const std::string of = epochs > 0 ? fmt::format("/{}", epochs) : std::string();
  const int digits = std::max(static_cast<int>(of.size()) - 1, 0);
  std::string evaluated;
  if (has_figures(e.validation_loss, e.validation_accuracy, e.validation_metrics))
    evaluated += fmt::format("  val {}", figures(e.validation_loss, e.validation_accuracy, e.validation_metrics));
  if (has_figures(e.test_loss, e.test_accuracy, e.test_metrics))
    evaluated += fmt::format("  test {}", figures(e.test_loss, e.test_accuracy, e.test_metrics));
  return fmt::format("epoch {:>{}}{}  {}{}  {:>4}  {:>5} img/s", e.epoch, digits, of,
                     figures(e.train_loss, e.train_accuracy, e.train_metrics), evaluated, format_duration(e.seconds),
                     format_count(e.images_per_second));
}

std::string per_class_text(const EvaluationReport& report, const std::vector<std::string>& classes) {
  int width = 0;
  for (const std::string& name : classes) width = std::max(width, display_width(name));
  std::string text = fmt::format("  {} accuracy by class\n", report.split);
  for (std::int64_t label = 0; label < report.classes; ++label) {
    const std::string& name = classes.at(static_cast<std::size_t>(label));
    const std::int64_t images = report.class_images.at(static_cast<std::size_t>(label));
    const std::string gap(static_cast<std::size_t>(width - display_width(name)), ' ');
    const std::string accuracy = images > 0 ? fmt::format("{:6.2f}%", report.class_accuracy(label)) : "      -";
    text += fmt::format("    {}{}  {} of {}\n", name, gap, accuracy, with_separators(images));
  }
  return text;
}

std::string closing_text(const std::string& result, const ResultFiles& files) {
  std::string text;
  if (!files.folder.empty()) text += labelled("kept in", files.folder);
  for (const auto& [what, paths] : files.lines) {
    std::string line;
    for (const std::string& path : paths) {
      if (!line.empty()) line += ", ";
      line += path_inside(path, files.folder);
    }
    if (!line.empty()) text += labelled(what, line);
  }
  if (!files.report.empty()) text += labelled("report", files.report);
  text += result + "\n";
  if (!files.picture.empty()) text += labelled("curves", files.picture);
  return text;
}

std::string summary_text(const ResultRecord& result, const ResultFiles& files) {
  const EpochRecord& last = result.last;
  std::string text;
  if (last.best) text += labelled("best", best_text(last));
  // Ranks that are threads share a process.
  text += labelled("memory", format_bytes(last.peak_memory_bytes) +
                                 (last.backend == "threads" ? " for all ranks" : " per rank at most"));
  if (!result.peak_tensor_bytes.empty()) text += labelled("tensors", largest_kinds(result.peak_tensor_bytes));
  if (last.exchange && last.exchange->steps > 0 && last.time)
    text += labelled("exchange", exchange_text(*last.exchange, *last.time));
  // One rank's says something of the network that it was told of.
  if (result.scaling && (last.world_size > 1 || result.scaling->network_is_simulated))
    text += labelled("speed-up", scaling_text(*result.scaling));
  if (last.skipped_steps > 0) {
    text += labelled("skipped", fmt::format("{}: a gradient was not finite; the loss scale ends at {:g}",
                                            counted(last.skipped_steps, "step"), last.loss_scale));
  }
  std::string time = format_duration(files.seconds.value_or(result.total_seconds));
  if (files.is_resumed) time += files.seconds ? " in all" : " since resumed";
  const std::string length = files.steps > 0 ? counted(files.steps, "step") : counted(last.epoch, "epoch");
  return text + closing_text(fmt::format("{} after {} in {}", result_text(last), length, time), files);
}

}  // namespace tandem::train
