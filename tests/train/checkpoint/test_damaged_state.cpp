// A run's state, cut at every byte of its header and with flipped bits: taken as a whole, or refused with an Error that
// leaves the run as it was. (Checkpoints have hashes, which notice this before: test_checkpoint.cpp. Here there are
// none.)
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/error.h"
#include "tandem/layers/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/damage.h"
#include "tests/support/memory_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint/small_run.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// The state as bytes of a file: equal where all tensors are.
std::string bytes_of(const SmallRun& run, const std::string& path) {
  layers::write_safetensors(path, run.trainer->state_dict());
  return read_bytes(path);
}

}  // namespace

TEST_CASE("a damaged state is loaded as a whole, or refused and nothing changes") {
  const TemporaryDirectory folder;
  comm::ProcessGroup group(comm::make_self_backend());
  const SmallRun trained(group, 2, 2), run(group);
  trained.trainer->run_epoch(1, {});
  const std::string good = bytes_of(trained, folder / "good.safetensors"), path = folder / "damaged.safetensors";
  const std::size_t header = 8 + static_cast<std::size_t>(*reinterpret_cast<const std::uint64_t*>(good.data()));
  std::string before = bytes_of(run, folder / "before.safetensors");
  int loaded = 0, refused = 0;
  for_each_damage(good, header, [&](const std::string& bytes) {
    write_bytes(path, bytes);
    try {
      run.trainer->load_state_dict(layers::read_safetensors(path).tensors);
    } catch (const Error&) {
      ++refused;
      if (refused % 16 == 0) REQUIRE(bytes_of(run, folder / "now.safetensors") == before);
      return;
    }
    ++loaded;
    before = bytes_of(run, folder / "before.safetensors");
    REQUIRE(run.trainer->steps_done() >= 0);
  });
  CHECK(loaded > 1000);   // other weights are weights, too
  CHECK(refused > 5000);  // most of the header counts
}

TEST_CASE("a state with tensors of any size takes memory by the size of its file") {
  const TemporaryDirectory folder;
  comm::ProcessGroup group(comm::make_self_backend());
  const std::string path = folder / "large.safetensors";
  NamedTensors state = SmallRun(group).trainer->state_dict();
  for (auto& [name, tensor] : state)
    if (name == "trainer.epoch_sums") tensor = Tensor::zeros({2'000'000, 3}, {.dtype = DType::f64});
  layers::write_safetensors(path, state);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  state.clear();
  const Reading reading = read_apart([&] {
    const SmallRun run(group);
    run.trainer->load_state_dict(layers::read_safetensors(path).tensors);
  });
  INFO("a file of " << size / kMiB << " MiB took " << reading.grown / kMiB << " MiB: " << reading.error);
  CHECK((!kMemoryIsMeasured || reading.grown <= 3 * size + 32 * kMiB));
}
