// What train_bench is asked for.
#pragma once

#include "tandem/layers/models/models.h"
#include "tandem/optim/by_name.h"
#include "tandem/train/recorded_work.h"

#include <cstdint>
#include <string>

namespace tandem::apps {

struct BenchSettings {
  layers::ModelOptions model{.name = "vgg_lite"};
  std::int64_t batch_size = 128;
  optim::OptimizerOptions optimizer{.name = "adam", .lr = 1e-3, .nesterov = false};
  std::string precision = "fp32";
  std::string device = "cpu";
  train::CudaGraph cuda_graph = train::CudaGraph::off;
  int threads = 0;  // 0: all cores
  int steps = 10;
  int warmup = 3;
  std::string batch_file;    // safetensors with images [N,C,H,W] and labels [N]; empty: made up
  std::string weights_file;  // safetensors; empty: drawn
  bool profile = false;
  bool count = false;
  bool serve = false;
  bool peak = false;
};

}  // namespace tandem::apps
