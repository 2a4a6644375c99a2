// What train_bench is asked for.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::apps {

struct BenchSettings {
  std::string model = "vgg_lite";
  std::int64_t layers = 0;
  std::int64_t in_channels = 3;
  std::int64_t image_size = 32;
  std::int64_t batch_size = 128;
  std::string optimizer = "adam";
  double lr = 1e-3;
  std::string precision = "fp32";
  std::string conv_impl = "auto";
  std::string gemm_impl = "auto";
  std::string device = "cpu";
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
