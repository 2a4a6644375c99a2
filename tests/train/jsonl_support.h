// A log to write to, and something to write.
#pragma once

#include "tandem/train/records.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::test {

using Json = nlohmann::ordered_json;

struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tandem_log_" + std::to_string(getpid()) + ".jsonl")).string();
  ~TemporaryFile() { std::filesystem::remove(path); }

  std::vector<Json> records() const {
    std::vector<Json> records;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) records.push_back(Json::parse(line));
    return records;
  }
};

inline train::EpochRecord some_epoch() {
  train::EpochRecord r;
  r.epoch = 2;
  r.lr = 0.05;
  r.train_loss = 1.25;
  r.train_accuracy = 55.5;
  r.test_loss = 1.0;
  r.test_accuracy = 60.25;
  r.seconds = 12.5;
  r.images_per_second = 4000;
  r.world_size = 2;
  r.backend = "native";
  r.peak_memory_bytes = 123456789;
  r.loss_scale = 4096.0;
  r.skipped_steps = 3;
  return r;
}

}  // namespace tandem::test
