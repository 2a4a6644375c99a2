// Copies of a run's tensors, and what a checkpoint holds training up for.
#include "tandem/core/parallel.h"
#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tandem/train/checkpoint/state_copy.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <algorithm>
#include <chrono>
#include <numeric>

using namespace tandem;
using namespace tandem::test;
using train::StateCopy;

namespace {

Tensor counting(const Shape& shape, Layout layout = Layout::row_major) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::from(values, shape, layout);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("a copy of a state has its values, shapes and layouts, whatever becomes of the state") {
  const Tensor wide = counting({300, 1000}), image = counting({8, 3, 5, 7}, Layout::channels_last);
  const NamedTensors state{
      {"wide", wide},   {"turned", wide.transpose(0, 1)}, {"gaps", counting({100, 6}).narrow(1, 1, 3)},
      {"image", image}, {"empty", Tensor::zeros({0, 4})}, {"step", Tensor::from<std::int64_t>({7}, {})}};
  std::vector<std::vector<double>> expected;
  for (const auto& [name, tensor] : state) expected.push_back(tensor.to_vector<double>());
  StateCopy copy;
  const int threads_before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    copy.take(state);
    copy.wait();
  }
  set_num_threads(threads_before);
  wide.fill(0.0);
  image.fill(0.0);
  REQUIRE(copy.tensors().size() == state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    INFO(state[i].first);
    const Tensor& tensor = copy.tensors()[i].second;
    CHECK(copy.tensors()[i].first == state[i].first);
    CHECK(tensor.shape() == state[i].second.shape());
    CHECK(tensor.dtype() == state[i].second.dtype());
    CHECK(tensor.to_vector<double>() == expected[i]);
  }
  CHECK(copy.tensors()[3].second.is_dense(Layout::channels_last));
}

TEST_CASE("the memory of a copy is kept for the next one, as far as it fits") {
  const Tensor weight = counting({1000, 300});
  StateCopy copy;
  copy.take({{"weight", weight}, {"other", counting({3})}});
  const void* const place = copy.tensors()[0].second.raw_data();
  const std::int64_t before = memory_stats().current_total;
  weight.fill(2.0);
  copy.take({{"weight", weight}, {"other", counting({5})}});
  CHECK(copy.tensors()[0].second.raw_data() == place);
  CHECK(copy.tensors()[0].second.to_vector<float>()[299'999] == 2.0f);
  CHECK(copy.tensors()[1].second.to_vector<float>() == std::vector<float>{1, 2, 3, 4, 5});
  CHECK(memory_stats().current_total == before + 8);
  copy.take({{"renamed", weight}});
  REQUIRE(copy.tensors().size() == 1);
  CHECK(copy.tensors()[0].first == "renamed");
  CHECK(copy.tensors()[0].second.raw_data() == place);
  CHECK(error_of([&] { copy.take({{"model.weight", Tensor()}}); }) == "checkpoints: tensor model.weight is undefined");
}

TEST_CASE("memory that was reserved is what the copy is taken into") {
  const Tensor weight = counting({1000, 300}, Layout::row_major);
  const NamedTensors state{{"weight", weight}, {"image", counting({2, 3, 4, 5}, Layout::channels_last)}};
  StateCopy copy;
  copy.reserve(state);
  REQUIRE(copy.tensors().size() == 2);
  const void* const place = copy.tensors()[0].second.raw_data();
  const std::int64_t before = memory_stats().current_total;
  copy.take(state);
  CHECK(memory_stats().current_total == before);
  CHECK(copy.tensors()[0].second.raw_data() == place);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(copy.tensors()[i].second.to_vector<float>() == state[i].second.to_vector<float>());
}

TEST_CASE("a checkpoint holds training up for less than it takes to write it") {
  const TemporaryDirectory directory;
  train::CheckpointWriter writer(train::CheckpointFolder(directory / "beside"), 1);
  const train::CheckpointFolder folder(directory / "waited for");
  folder.prepare();
  train::Checkpoint checkpoint;  // 32 MiB
  for (int i = 0; i < 16; ++i) checkpoint.state.emplace_back(fmt::format("model.{}", i), Tensor::full({1 << 19}, i));
  // The least of several: what else the machine does can only add. A copy is one pass over memory; writing hashes, too,
  // and copies into the file, and waits for the disk. Were it waited for, `held` would be longer than `written`.
  double held = 1e9, written = 1e9;
  for (std::int64_t step = 1; step <= 6; ++step) {
    auto start = std::chrono::steady_clock::now();
    writer.write(step, checkpoint);
    held = std::min(held, seconds_since(start));
    writer.finish();
    start = std::chrono::steady_clock::now();
    folder.write(step, checkpoint);
    written = std::min(written, seconds_since(start));
  }
  CHECK(writer.take_problem().empty());
  INFO("held up for " << held << " s, written in " << written << " s");
  CHECK(held < 0.7 * written);
}
