// Records as JSON objects.
#include "train/jsonl_log.h"

#include "core/error.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tandem::train {
namespace {

using Json = nlohmann::ordered_json;

void add_epoch_fields(Json& json, const EpochRecord& r) {
  json["epoch"] = r.epoch;
  json["lr"] = r.lr;
  json["train_loss"] = r.train_loss;
  json["train_accuracy"] = r.train_accuracy;
  json["test_loss"] = r.test_loss;
  json["test_accuracy"] = r.test_accuracy;
  json["seconds"] = r.seconds;
  json["images_per_second"] = r.images_per_second;
  json["world_size"] = r.world_size;
  json["backend"] = r.backend;
  json["peak_memory_bytes"] = r.peak_memory_bytes;
  json["loss_scale"] = r.loss_scale;
  json["skipped_steps"] = r.skipped_steps;
}

// A path may hold bytes that are no UTF-8: they are replaced rather than losing the record.
std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

JsonlLog::JsonlLog(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
  require(file_ != nullptr, "log file {}: cannot be written: {}", path, std::strerror(errno));
}

void JsonlLog::write_line(const std::string& line) {
  errno = 0;
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fputc('\n', file_.get()) != EOF && std::fflush(file_.get()) == 0;
  require(written, "log file {}: writing failed: {}", path_, std::strerror(errno));
}

void JsonlLog::write(const RunRecord& r) {
  Json config = Json::object();
  for (const auto& [name, value] : r.config) std::visit([&, &key = name](const auto& v) { config[key] = v; }, value);
  Json versions = Json::object();
  for (const auto& [name, version] : r.versions) versions[name] = version;
  write_line(line_of({{"record", "run"},
                      {"started", r.started},
                      {"host", r.host},
                      {"ranks", r.world_size},
                      {"world_size", r.world_size},
                      {"threads", r.threads},
                      {"backend", r.backend},
                      {"device", r.device},
                      {"model", r.model},
                      {"model_parameters", r.model_parameters},
                      {"dataset", r.dataset},
                      {"train_images", r.train_images},
                      {"test_images", r.test_images},
                      {"global_batch_size", r.global_batch_size},
                      {"steps_per_epoch", r.steps_per_epoch},
                      {"versions", versions},
                      {"config", config}}));
}

void JsonlLog::write(const StepRecord& r) {
  write_line(line_of({{"record", "step"},
                      {"step", r.step},
                      {"epoch", r.epoch},
                      {"lr", r.lr},
                      {"loss", r.loss},
                      {"loss_scale", r.loss_scale},
                      {"skipped_steps", r.skipped_steps}}));
}

void JsonlLog::write(const EpochRecord& r) {
  Json json = {{"record", "epoch"}};
  add_epoch_fields(json, r);
  write_line(line_of(json));
}

void JsonlLog::write(const ResultRecord& r) {
  Json json = {{"record", "result"}};
  add_epoch_fields(json, r.last);
  json["total_seconds"] = r.total_seconds;
  json["peak_tensor_bytes"] = Json::object();
  for (const auto& [kind, bytes] : r.peak_tensor_bytes) json["peak_tensor_bytes"][kind] = bytes;
  write_line(line_of(json));
}

}  // namespace tandem::train
