// log.jsonl, environment.json, config.toml and the first filters. The records of a run that was gone on with stand
// behind those of the session before, some of which it repeats.
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/layers/safetensors.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/environment_table.h"
#include "tandem/train/report/json_fields.h"
#include "tandem/train/report/read_evaluation.h"
#include "tandem/train/report/read_profile.h"
#include "tandem/train/report/run_data.h"
#include "tandem/train/shell_word.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

namespace tandem::train::report {

namespace fs = std::filesystem;

std::string read_text(const std::string& path, std::int64_t most) {
  const layers::InputFile file(path);
  require(file.size() <= most, "{}: has {} bytes, and no such file has more than {}", path, file.size(), most);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(text.data(), file.size(), 0);
  return text;
}

Json read_json(const std::string& path, std::int64_t most) {
  const std::string text = read_text(path, most);
  try {
    return parse_json(text, true);
  } catch (const Json::parse_error& error) {
    const auto end = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    fail("{}:{}: is no JSON from byte {} of the file on", path, line, error.byte);
  } catch (const Json::out_of_range&) {
    fail("{}: has a number that is too large for a double", path);
  }
}

namespace {

constexpr std::int64_t kMostLog = std::int64_t{1} << 31, kMostText = 1 << 20;
constexpr std::size_t kMostProblems = 5;
constexpr std::size_t kMostLine = 4 << 20;  // JSON takes some 20 times that in memory

std::vector<Layer> layers_of(const Json& json) {
  std::vector<Layer> layers;
  const Json* const list = find_field(json, "layers");
  if (list == nullptr || !list->is_array()) return layers;
  for (const Json& layer : *list)
    layers.push_back({text_field(layer, "name"), number_field(layer, "gradient_norm"),
                      number_field(layer, "update_norm"), number_field(layer, "weight_norm")});
  return layers;
}

/// `--steps` is a length in place of `--epochs`; the last epoch may then be a part of one.
double planned_epochs(const Json& config, double steps_per_epoch) {
  const double steps = number_field(config, "steps");
  return steps > 0.0 && steps_per_epoch > 0.0 ? std::ceil(steps / steps_per_epoch) : number_field(config, "epochs");
}

/// Without those of which no share of channels can be told.
std::vector<Relu> relus_of(const Json& json) {
  std::vector<Relu> relus;
  const Json* const list = find_field(json, "relus");
  if (list == nullptr || !list->is_array()) return relus;
  for (const Json& item : *list) {
    const Relu relu{text_field(item, "name"), number_field(item, "channels"), number_field(item, "dead")};
    if (relu.channels > 0.0 && relu.dead >= 0.0 && relu.dead <= relu.channels) relus.push_back(relu);
  }
  return relus;
}

class LogReader {
 public:
  LogReader(RunData& run, std::string path) : run_(run), path_(std::move(path)) {}

  void read() {
    const std::string text = read_text(path_, kMostLog);
    std::int64_t line = 1;
    for (std::size_t begin = 0; begin < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      if (end > begin) read_line(std::string_view(text).substr(begin, end - begin), line, end == text.size());
      begin = end + 1;
    }
    for (auto& [number, epoch] : epochs_) run_.epochs.push_back(std::move(epoch));
    for (const auto& [number, step] : steps_) run_.steps.push_back(step);
    if (damaged_ > kMostProblems)
      run_.problems.push_back(fmt::format("{}: {} more lines are no records", path_, damaged_ - kMostProblems));
  }

 private:
  void read_line(std::string_view text, std::int64_t line, bool is_unfinished) {
    const Json json = text.size() > kMostLine ? Json() : parse_json(text);
    const std::string kind = text_field(json, "record");
    if (kind == "run") {
      add_run(json);
    } else if (kind == "epoch" && whole_field(json, "epoch") > 0) {
      add_epoch(json);
    } else if (kind == "step" && whole_field(json, "step") > 0) {
      add_step(json);
    } else if (kind == "result") {
      add_result(json);
    } else if (json.is_discarded() || kind.empty() || kind == "epoch" || kind == "step") {
      if (is_unfinished) return;  // it is being written
      if (++damaged_ <= kMostProblems)
        run_.problems.push_back(fmt::format("{}:{}: is no record, and was passed over", path_, line));
    }
  }

  void add_run(const Json& json) {
    if (whole_field(json, "steps_done") == 0) begin_anew();
    if (run_.sessions++ == 0) run_.is_whole = whole_field(json, "steps_done") <= 0;
    first_epoch_ = first_step_ = true;
    run_.total_seconds = kMissing;
    run_.stopped_early = false;
    run_.state = epochs_.empty() ? RunState::not_begun : RunState::unfinished;
    if (run_.sessions == 1) run_.started = text_field(json, "started");
    run_.host = text_field(json, "host");
    run_.device = text_field(json, "device");
    run_.backend = text_field(json, "backend");
    run_.model = text_field(json, "model");
    run_.dataset = text_field(json, "dataset");
    run_.ranks = number_field(json, "world_size");
    run_.threads = number_field(json, "threads");
    run_.parameters = number_field(json, "model_parameters");
    run_.train_images = number_field(json, "train_images");
    run_.test_images = number_field(json, "test_images");
    run_.validation_images = number_field(json, "validation_images");
    run_.global_batch_size = number_field(json, "global_batch_size");
    run_.steps_per_epoch = number_field(json, "steps_per_epoch");
    run_.config.clear();
    run_.without_effect = text_list(json, "without_effect");
    run_.versions.clear();
    if (const Json* const config = find_field(json, "config")) {
      run_.planned_epochs = planned_epochs(*config, run_.steps_per_epoch);
      for (const auto& item : config->items()) run_.config.emplace_back(item.key(), text_of(item.value()));
    }
    if (const Json* const versions = find_field(json, "versions")) {
      for (const auto& item : versions->items())
        run_.versions.emplace_back(name_of_version(item.key()), text_of(item.value()));
    }
  }

  /// What was written before is of a run that left no checkpoint.
  void begin_anew() {
    run_.sessions = 0;
    run_.peak_tensor_bytes.clear();
    run_.scaling.reset();
    epochs_.clear();
    steps_.clear();
  }

  void add_epoch(const Json& json) {
    Epoch epoch;
    epoch.epoch = whole_field(json, "epoch");
    for (const auto& [name, field] : kEpochFields) epoch.*field = number_field(json, name);
    epoch.time = number_table(json, "time");
    epoch.memory = number_table(json, "memory");
    epoch.exchange = number_table(json, "exchange");
    epoch.layers = layers_of(json);
    epoch.relus = relus_of(json);
    // What the session before did behind its last checkpoint is not a part of the run.
    if (first_epoch_) epochs_.erase(epochs_.lower_bound(epoch.epoch), epochs_.end());
    first_epoch_ = false;
    const Json* const loss = find_field(json, "train_loss");
    const Json* const diverged = find_field(json, "diverged");
    // A result of an evaluation alone had a null there once.
    const bool is_epoch = text_field(json, "record") == "epoch";
    const bool has_diverged = diverged != nullptr || (is_epoch && loss != nullptr && loss->is_null());
    run_.state = has_diverged ? RunState::diverged : RunState::unfinished;
    run_.diverged_at_step = diverged != nullptr ? std::max<std::int64_t>(whole_field(*diverged, "step"), 0) : 0;
    run_.skipped_in_a_row =
        diverged != nullptr ? std::max<std::int64_t>(whole_field(*diverged, "skipped_steps"), 0) : 0;
    epochs_[epoch.epoch] = std::move(epoch);
  }

  void add_step(const Json& json) {
    const std::int64_t step = whole_field(json, "step");
    if (first_step_) steps_.erase(steps_.lower_bound(step), steps_.end());
    first_step_ = false;
    steps_[step] = {static_cast<double>(step), number_field(json, "lr"), number_field(json, "loss")};
  }

  /// Of a session that trained: one that did not has none.
  void add_scaling(const Json& json) {
    const Json* const of = find_field(json, "predicted");
    if (of == nullptr || !of->is_array()) return;
    PredictedScaling scaling{.step_seconds = number_field(json, "step_seconds"),
                             .window_seconds = number_field(json, "window_seconds"),
                             .latency_seconds = number_field(json, "latency_seconds"),
                             .bytes_per_second = number_field(json, "bytes_per_second"),
                             .of = {}};
    const Json* const usual = find_field(json, "usual_costs");
    scaling.usual_costs = usual == nullptr || !usual->is_boolean() || usual->get<bool>();
    const Json* const simulated = find_field(json, "simulated");
    scaling.simulated = simulated != nullptr && simulated->is_boolean() && simulated->get<bool>();
    for (const Json& entry : *of) {
      const PredictedScaling::Ranks ranks{number_field(entry, "ranks"), number_field(entry, "exchange_seconds"),
                                          number_field(entry, "waited_seconds"), number_field(entry, "speed_up")};
      const bool can_be = ranks.ranks >= 1.0 && ranks.speed_up > 0.0 && scaling.of.size() < kMostPredicted;
      if (can_be) scaling.of.push_back(ranks);
    }
    if (scaling.of.size() > 1) run_.scaling = std::move(scaling);
  }

  void add_result(const Json& json) {
    if (const Json* const scaling = find_field(json, "scaling")) add_scaling(*scaling);
    run_.total_seconds = number_field(json, "total_seconds");
    add_peaks(number_table(json, "peak_tensor_bytes"));
    const Json* const early = find_field(json, "stopped_early");
    run_.stopped_early = early != nullptr && early->is_boolean() && early->get<bool>();
    if (const Json* const best = find_field(json, "best")) {
      run_.best_by = text_field(*best, "by");
      run_.best_epoch = whole_field(*best, "epoch");
    }
    if (epochs_.empty() && whole_field(json, "epoch") >= 0) add_epoch(json);  // it evaluated only
    add_last_test(json);
    if (run_.state != RunState::diverged) run_.state = RunState::finished;
  }

  /// The largest of all sessions: one that found nothing left to do only tested.
  void add_peaks(const NumberTable& peaks) {
    for (const auto& [kind, bytes] : peaks) {
      const auto found = std::ranges::find(run_.peak_tensor_bytes, kind, &NumberTable::value_type::first);
      if (found == run_.peak_tensor_bytes.end()) {
        run_.peak_tensor_bytes.emplace_back(kind, bytes);
      } else {
        found->second = std::max(found->second, bytes);
      }
    }
  }

  void add_last_test(const Json& json) {
    if (epochs_.empty() || epochs_.rbegin()->first != whole_field(json, "epoch")) return;
    Epoch& last = epochs_.rbegin()->second;
    if (std::isfinite(last.test_loss) || std::isfinite(last.test_accuracy)) return;
    last.test_loss = number_field(json, "test_loss");
    last.test_accuracy = number_field(json, "test_accuracy");
  }

  static constexpr std::size_t kMostPredicted = 64;

  RunData& run_;
  std::string path_;
  std::map<std::int64_t, Epoch> epochs_;
  std::map<std::int64_t, Step> steps_;
  std::size_t damaged_ = 0;
  bool first_epoch_ = true, first_step_ = true;
};

/// A command line for a shell.
std::string command_line(const Json& field) {
  if (!field.is_array()) return text_of(field);
  std::string line;
  for (const Json& word : field) {
    if (!line.empty()) line += ' ';
    line += shell_word(text_of(word));
  }
  return line;
}

void read_environment(RunData& run, const std::string& path) {
  Json json = read_json(path, 16 * kMostText);
  require(json.is_object(), "{}: is no JSON object", path);
  for (const char* const name : {"command_line", "command", "argv"}) {
    const Json* const field = find_field(json, name);
    if (field == nullptr || !run.command_line.empty()) continue;
    run.command_line = command_line(*field);
    json.erase(name);
  }
  run.launcher = text_field(json, "launcher");
  json.erase("launcher");
  run.environment = environment_table(json);
}

/// The filters of the first convolution, each brought to the range from 0 to 1.
void read_filters(RunData& run, const std::string& path) {
  constexpr std::size_t kMostFilters = 64;
  for (const auto& [name, tensor] : layers::read_safetensors(path).tensors) {
    if (tensor.rank() != 4) continue;
    const std::int64_t channels = tensor.size(1), height = tensor.size(2), width = tensor.size(3);
    const bool can_be_seen = (channels == 1 || channels == 3) && height * width > 1 && height <= 16 && width <= 16;
    if (!can_be_seen || tensor.dtype() != DType::f32) return;
    plot::PixelGrid grid{channels, height, width, {}, 16};
    const auto size = static_cast<std::size_t>(channels * height * width);
    const std::size_t count = std::min(static_cast<std::size_t>(tensor.size(0)), kMostFilters);
    const Tensor whole = tensor.contiguous();
    const float* value = whole.data<float>();
    for (std::size_t i = 0; i < count; ++i, value += size) {
      const auto [least, most] = std::minmax_element(value, value + size);
      const double from = *least, range = static_cast<double>(*most) - from;
      std::vector<double> picture;
      for (std::size_t k = 0; k < size; ++k) picture.push_back(range > 0.0 ? (value[k] - from) / range : 0.5);
      grid.pictures.push_back(std::move(picture));
    }
    run.filters = std::move(grid);
    run.filters_name = name;
    return;
  }
}

}  // namespace

std::string reason_of_no_run(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return "is no folder of a run";
  for (const char* const name : {"log.jsonl", "config.toml"}) {
    if (fs::exists(fs::path(folder) / name, error)) return "";
    // One that may not be looked into may hold a run.
    require(!error, "{}: cannot be read: {}", folder, error.message());
  }
  return "holds neither log.jsonl nor config.toml";
}

RunData read_run(const std::string& folder) {
  const std::string reason = reason_of_no_run(folder);
  require(reason.empty(), "{}: {}; name a folder that --run-dir made", folder, reason);
  std::error_code error;
  const auto path_of = [&](const char* name) { return (fs::path(folder) / name).string(); };
  const auto is_there = [&](const char* name) { return fs::exists(path_of(name), error); };
  RunData run;
  run.folder = folder;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  const auto attempt = [&](const char* name, const auto& read) {
    if (!is_there(name)) return;
    try {
      read(path_of(name));
    } catch (const Error& failure) {
      run.problems.emplace_back(failure.what());
    }
  };
  attempt("log.jsonl", [&](const std::string& path) { LogReader(run, path).read(); });
  if (run.sessions == 0) {
    attempt("config.toml", [&](const std::string& path) { run.config_text = read_text(path, kMostText); });
  }
  attempt("environment.json", [&](const std::string& path) { read_environment(run, path); });
  attempt("evaluation.json", [&](const std::string& path) { run.evaluation = read_evaluation(path); });
  attempt("profile.json", [&](const std::string& path) { run.profile = read_profile(path); });
  attempt("final.safetensors", [&](const std::string& path) { read_filters(run, path); });
  return run;
}

std::string setting(const RunData& run, const std::string& name) {
  for (const auto& [key, value] : run.config) {
    if (key == name) return value;
  }
  return "";
}

std::vector<double> column(const std::vector<Epoch>& epochs, double Epoch::* figure) {
  std::vector<double> values;
  for (const Epoch& epoch : epochs) values.push_back(epoch.*figure);
  return values;
}

std::vector<double> numbers_of(const std::vector<Epoch>& epochs) {
  std::vector<double> numbers;
  for (const Epoch& epoch : epochs) numbers.push_back(static_cast<double>(epoch.epoch));
  return numbers;
}

bool has_any(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return std::isfinite(value); });
}

double seconds_of(const RunData& run) {
  if (std::isfinite(run.total_seconds) && run.sessions <= 1) return run.total_seconds;
  double sum = 0.0;
  for (const Epoch& epoch : run.epochs) sum += std::isfinite(epoch.seconds) ? epoch.seconds : 0.0;
  return sum > 0.0 ? sum : kMissing;
}

std::string reason_of_divergence(const RunData& run) {
  if (run.skipped_in_a_row > 0)
    return fmt::format("the loss scale skipped {} steps in a row, up to step {}.", run.skipped_in_a_row,
                       run.diverged_at_step);
  return run.diverged_at_step > 0 ? fmt::format("the loss of step {} is not a finite number.", run.diverged_at_step)
                                  : "its loss is not a finite number any more.";
}

HeldOut held_out(const RunData& run) {
  const bool is_validation = has_any(column(run.epochs, &Epoch::validation_loss));
  HeldOut all{is_validation ? "validation" : "test", {}, {}, {}};
  for (const Epoch& epoch : run.epochs) {
    const double loss = is_validation ? epoch.validation_loss : epoch.test_loss;
    if (!std::isfinite(loss)) continue;
    all.epochs.push_back(static_cast<double>(epoch.epoch));
    all.loss.push_back(loss);
    all.accuracy.push_back(is_validation ? epoch.validation_accuracy : epoch.test_accuracy);
  }
  return all;
}

}  // namespace tandem::train::report
