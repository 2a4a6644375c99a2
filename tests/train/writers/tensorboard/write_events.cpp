// Writes event files of all kinds into a folder, for check_events.py to read: write_events FOLDER.
#include "tandem/train/writers/tensorboard/tensorboard_writer.h"

#include "tandem/core/error.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

using namespace tandem;

namespace {

namespace fs = std::filesystem;

std::string made(const fs::path& folder) {
  fs::create_directories(folder);
  return folder.string();
}

Tensor gradient_image(std::int64_t channels) {
  std::vector<std::uint8_t> values;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t y = 0; y < 5; ++y)
      for (std::int64_t x = 0; x < 7; ++x) values.push_back(static_cast<std::uint8_t>(100 * c + 10 * y + x));
  return Tensor::from(values, {channels, 5, 7});
}

void write_all_kinds(const std::string& folder) {
  train::TensorBoardWriter writer(folder);
  for (int step = 1; step <= 20; ++step) writer.add_scalar("loss/train", 1.0 / step, step);
  writer.add_scalar("odd/nan", std::nan(""), 1);
  writer.add_scalar("odd/inf", std::numeric_limits<double>::infinity(), 1);
  writer.add_scalar("odd/negative_inf", -std::numeric_limits<double>::infinity(), 1);
  writer.add_scalar("odd/late", 2.5, std::int64_t{1} << 40);
  writer.add_scalar(std::string(100'000, 't'), 1.0, 1);
  writer.add_scalar("odd/\xff\xfe utf-8 \xc3\xbc", 3.0, 1);
  writer.add_histogram("histograms/plain", Tensor::from(std::vector<float>{-1, 0, 0, 0.5, 1, 3}, {6}), 1);
  writer.add_histogram("histograms/empty", Tensor::zeros({0}), 1);
  writer.add_histogram("histograms/alike", Tensor::full({4}, 2.0), 1);
  writer.add_histogram(
      "histograms/not_finite",
      Tensor::from(std::vector<float>{std::nanf(""), 1, 2, std::numeric_limits<float>::infinity()}, {4}), 1);
  writer.add_histogram("histograms/nothing_finite", Tensor::full({3}, std::nan("")), 1);
  writer.add_text("text/markdown", "**bold** and \xc3\xbc, broken \xff", 4);
  try {
    writer.add_image("images/color", gradient_image(3), 2, "a title");
    writer.add_image("images/grey", gradient_image(1), 2);
  } catch (const Error& error) {  // a build without libpng
    fmt::print("no images: {}\n", error.what());
  }
}

void write_hparams(const std::string& folder, double lr, bool nesterov, const char* optimizer, double result) {
  train::TensorBoardWriter writer(folder);
  writer.add_hparams(
      {{"lr", lr}, {"nesterov", nesterov}, {"optimizer", std::string(optimizer)}, {"epochs", std::int64_t{8}}},
      std::vector<std::string>{"accuracy/test"});
  writer.add_scalar("accuracy/test", result, 10);
  writer.end_session(true);
}

/// A run that was killed behind step 10, in the middle of a record, and went on from a checkpoint of step 6.
void write_resumed(const std::string& folder) {
  std::string first;
  {
    train::TensorBoardWriter writer(folder);
    first = writer.path();
    for (int step = 1; step <= 11; ++step) writer.add_scalar("loss/step", step, step);
  }
  fs::resize_file(first, fs::file_size(first) - 5);
  train::TensorBoardWriter writer(folder, {.first_step = 7});
  for (int step = 7; step <= 9; ++step) writer.add_scalar("loss/step", 100.0 + step, step);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const fs::path folder = argv[1];
  write_all_kinds(made(folder / "kinds"));
  write_hparams(made(folder / "hparams/a"), 0.1, true, "sgd", 81.5);
  write_hparams(made(folder / "hparams/b"), 0.25, false, "adam", 90.0);
  write_resumed(made(folder / "resumed"));
  return 0;
}
