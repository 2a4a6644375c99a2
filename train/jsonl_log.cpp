// Records as JSON objects.
#include "tandem/train/jsonl_log.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

namespace tandem::train {
namespace {

using Json = nlohmann::ordered_json;

/// Of steps. Three calls of the system and cold caches cost as much as many records.
constexpr std::chrono::milliseconds kLongestWait(50);

void add_epoch_fields(Json& json, const EpochRecord& r) {
  json["epoch"] = r.epoch;
  json["lr"] = r.lr;
  // What was not trained or not evaluated is left out; a loss that is no number any more is null.
  if (r.trained) {
    json["train_loss"] = r.train_loss;
    json["train_accuracy"] = r.train_accuracy;
  }
  if (has_figures(r.test_loss, r.test_accuracy, r.test_metrics)) {
    json["test_loss"] = r.test_loss;
    json["test_accuracy"] = r.test_accuracy;
  }
  if (has_figures(r.validation_loss, r.validation_accuracy, r.validation_metrics)) {
    json["validation_loss"] = r.validation_loss;
    json["validation_accuracy"] = r.validation_accuracy;
  }
  json["seconds"] = r.seconds;
  if (r.trained) json["images_per_second"] = r.images_per_second;
  json["world_size"] = r.world_size;
  json["backend"] = r.backend;
  json["peak_memory_bytes"] = r.peak_memory_bytes;
  json["loss_scale"] = r.loss_scale;
  json["skipped_steps"] = r.skipped_steps;
  if (r.diverged) json["diverged"] = {{"step", r.diverged->step}, {"skipped_steps", r.diverged->skipped_steps}};
  for (const auto& [name, value] : r.train_metrics) json["train_metrics"][name] = value;
  for (const auto& [name, value] : r.test_metrics) json["test_metrics"][name] = value;
  for (const auto& [name, value] : r.validation_metrics) json["validation_metrics"][name] = value;
}

/// What is told of an epoch beside its figures.
void add_costs(Json& json, const EpochRecord& r) {
  if (r.time) {
    for (const auto& [name, phase] : kPhases) json["time"][name] = (*r.time).*phase;
  }
  for (const auto& [kind, bytes] : r.memory) json["memory"][kind] = bytes;
  if (r.exchange) {
    json["exchange"] = {{"steps", r.exchange->steps},
                        {"bytes", r.exchange->bytes},
                        {"early_bytes", r.exchange->early_bytes},
                        {"seconds", r.exchange->seconds},
                        {"waited_seconds", r.exchange->waited_seconds}};
  }
  for (const LayerNorms& layer : r.layers) {
    json["layers"].push_back({{"name", layer.name},
                              {"gradient_norm", layer.gradient_norm},
                              {"update_norm", layer.update_norm},
                              {"weight_norm", layer.weight_norm}});
  }
  for (const DeadRelus& relu : r.dead_relus)
    json["relus"].push_back({{"name", relu.name}, {"channels", relu.channels}, {"dead", relu.dead}});
}

Json scaling_json(const Scaling& scaling) {
  Json json = {{"step_seconds", scaling.step_seconds},
               {"window_seconds", scaling.window_seconds},
               {"usual_costs", scaling.costs_are_usual},
               {"simulated", scaling.network_is_simulated},
               {"latency_seconds", scaling.latency},
               {"bytes_per_second", scaling.bytes_per_second},
               {"predicted", Json::array()}};
  for (const comm::SpeedUp& gain : scaling.predicted)
    json["predicted"].push_back({{"ranks", gain.ranks},
                                 {"exchange_seconds", gain.exchange_seconds},
                                 {"waited_seconds", gain.waited_seconds},
                                 {"speed_up", gain.factor}});
  return json;
}

Json json_of(const StepRecord& r) {
  Json json;  // field by field: of a list, each would be made as a list of its own first
  json["record"] = "step";
  json["step"] = r.step;
  json["epoch"] = r.epoch;
  json["lr"] = r.lr;
  json["loss"] = r.loss;
  json["loss_scale"] = r.loss_scale;
  json["skipped_steps"] = r.skipped_steps;
  return json;
}

// A path may hold bytes that are no UTF-8: they are replaced rather than losing the record.
std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string text_of(int error) { return std::generic_category().message(error); }

/// Whether a run was killed while it wrote the last line of this log. Throws Error if the file is no log.
bool ends_inside_line(const std::string& path) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing) || std::filesystem::file_size(path, missing) == 0) return false;
  constexpr std::string_view kBeginning = R"({"record":)";
  const layers::InputFile file(path);
  std::string beginning(static_cast<std::size_t>(std::min<std::int64_t>(kBeginning.size(), file.size())), '\0');
  file.read(beginning.data(), static_cast<std::int64_t>(beginning.size()), 0);
  require(kBeginning.starts_with(beginning),
          "log file {}: holds something else than the log of a run: name another file", path);
  char last = '\n';
  file.read(&last, 1, file.size() - 1);
  return last != '\n';
}

/// Takes the last bytes of a file away. Whether that could be done.
bool cut_end(int descriptor, std::size_t bytes) {
  struct stat file{};
  return ::fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) &&
         ::ftruncate(descriptor, file.st_size - static_cast<off_t>(bytes)) == 0;
}

}  // namespace

JsonlLog::JsonlLog(const std::string& path) : path_(path), starts_inside_line_(ends_inside_line(path)) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const int error = errno;
  require(descriptor_ >= 0, "log file {}: cannot be written: {}; {}", path, text_of(error), layers::remedy_of(error));
}

JsonlLog::~JsonlLog() {
  try {
    flush();
  } catch (const Error&) {  // nobody is there to be told: who wants to know calls flush()
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void JsonlLog::begin_again() {
  if (!is_removed()) return;
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  require(!error, "log file {}: its folder was removed, and cannot be made again: {}", path_, error.message());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const int reason = errno;
  require(descriptor_ >= 0, "log file {}: was removed, and cannot be written again: {}", path_, text_of(reason));
  starts_inside_line_ = false;
  if (run_line_.empty()) return;
  try {
    append(run_line_ + "\n");
  } catch (const Error&) {
    ::close(std::exchange(descriptor_, -1));  // a log begins with its run: the next record tries again
    --lost_records_;
    throw;
  }
}

/// Whether what is written goes into a file that the path does not lead to any more, or there is none.
bool JsonlLog::is_removed() const {
  if (descriptor_ < 0) return true;
  struct stat written{}, there{};
  if (::fstat(descriptor_, &written) != 0 || !S_ISREG(written.st_mode)) return false;
  if (::stat(path_.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
  return there.st_dev != written.st_dev || there.st_ino != written.st_ino;
}

/// The steps that wait, and a line behind them.
void JsonlLog::write_line(const std::string& line) {
  std::string lines;
  const auto records = static_cast<std::int64_t>(waiting_.size()) + (line.empty() ? 0 : 1);
  for (const StepRecord& step : std::exchange(waiting_, {})) lines += line_of(json_of(step)) + "\n";
  if (!line.empty()) lines += line + "\n";
  last_write_ = std::chrono::steady_clock::now();
  if (is_removed()) {
    try {
      begin_again();
    } catch (const Error&) {
      lost_records_ += records;
      throw;
    }
    was_removed_ = true;
  }
  append(lines);
}

void JsonlLog::flush() {
  if (!waiting_.empty()) write_line("");
}

void JsonlLog::append(const std::string& lines) {
  const std::string text = (starts_inside_line_ ? "\n" : "") + lines;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(descriptor_, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put > 0) done += static_cast<std::size_t>(put);
    if (put > 0) continue;
    const int error = errno;
    // Whole lines stay.
    const std::size_t kept = done == 0 ? 0 : text.rfind('\n', done - 1) + 1;  // npos + 1 is 0
    lost_records_ += std::count(text.begin() + static_cast<std::ptrdiff_t>(kept), text.end(), '\n');
    if (kept > 0)
      starts_inside_line_ = false;
    else if (starts_inside_line_)
      --lost_records_;  // its first line ends what was there
    if (done > kept && !cut_end(descriptor_, done - kept)) starts_inside_line_ = true;
    fail("log file {}: writing failed: {}; {}", path_, text_of(error), layers::remedy_of(error));
  }
  starts_inside_line_ = false;
}

void JsonlLog::write(const RunRecord& r) {
  Json config = Json::object();
  for (const auto& [name, value] : r.config) std::visit([&, &key = name](const auto& v) { config[key] = v; }, value);
  Json versions = Json::object();
  for (const auto& [name, version] : r.versions) versions[name] = version;
  const std::string line = line_of({{"record", "run"},
                                    {"started", r.started},
                                    {"host", r.host},
                                    {"ranks", r.world_size},
                                    {"world_size", r.world_size},
                                    {"threads", r.threads},
                                    {"backend", r.backend},
                                    {"all_reduce", r.all_reduce},
                                    {"comm_progress", r.progress},
                                    {"network", r.network},
                                    {"device", r.device},
                                    {"model", r.model},
                                    {"model_parameters", r.model_parameters},
                                    {"dataset", r.dataset},
                                    {"train_images", r.train_images},
                                    {"test_images", r.test_images},
                                    {"validation_images", r.validation_images},
                                    {"global_batch_size", r.global_batch_size},
                                    {"steps_per_epoch", r.steps_per_epoch},
                                    {"steps_done", r.steps_done},
                                    {"loading_seconds", r.loading_seconds},
                                    {"whitening_seconds", r.whitening_seconds},
                                    {"versions", versions},
                                    {"config", config},
                                    {"without_effect", r.without_effect}});
  write_line(line);
  run_line_ = line;
}

void JsonlLog::write(const StepRecord& r) {
  waiting_.push_back(r);
  if (std::chrono::steady_clock::now() - last_write_ >= kLongestWait) flush();
}

void JsonlLog::write(const EpochRecord& r) {
  Json json = {{"record", "epoch"}};
  add_epoch_fields(json, r);
  add_costs(json, r);
  write_line(line_of(json));
}

void JsonlLog::write(const ResultRecord& r) {
  Json json = {{"record", "result"}};
  add_epoch_fields(json, r.last);
  if (r.last.best)
    json["best"] = {{"by", r.last.best->by}, {"epoch", r.last.best->epoch}, {"value", r.last.best->value}};
  if (r.last.stopped_early) json["stopped_early"] = true;
  json["total_seconds"] = r.total_seconds;
  if (r.scaling) json["scaling"] = scaling_json(*r.scaling);
  json["peak_tensor_bytes"] = Json::object();
  for (const auto& [kind, bytes] : r.peak_tensor_bytes) json["peak_tensor_bytes"][kind] = bytes;
  write_line(line_of(json));
}

}  // namespace tandem::train
