// What hosts get wrong that a GPU's driver forgives most of the time: reuse of pageable memory under a copy, and calls
// of the driver in a thread that has no context yet.
#include "tandem/simulator/fault.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"

#include <cuda.h>

#include <array>
#include <numeric>
#include <optional>
#include <thread>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kCount = 4096;

/// What a stream says of a copy from `source`, after which the host does `then`; "" if nothing.
template <typename Then>
std::string said_of_copy(std::optional<std::vector<int>>& source, Then&& then) {
  const DeviceBuffer<int> data(kCount);
  source.emplace(kCount);
  std::iota(source->begin(), source->end(), 1);
  cudaStream_t stream = nullptr;
  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TANDEM_CHECK_CUDA(cudaMemcpyAsync(data.data(), source->data(), kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
  then();
  std::string said;
  try {
    cudaStreamSynchronize(stream);
  } catch (const simulator::Fault& fault) {
    said = fault.what();
  }
  cudaStreamDestroy(stream);
  return said;
}

CUresult encode_on_new_thread(void* data, bool sets_device) {
  CUresult result{};
  std::thread([&] {
    if (sets_device) cudaSetDevice(0);
    const std::array<cuuint64_t, 2> sizes{64, 8};
    const std::array<cuuint64_t, 1> strides{128};
    const std::array<cuuint32_t, 2> box{64, 8}, steps{1, 1};
    CUtensorMap map{};
    result = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, data, sizes.data(), strides.data(),
                                    box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }).join();
  return result;
}

}  // namespace

TEST_CASE("pageable memory that changes under a copy is a fault, with deferred streams") {
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  std::optional<std::vector<int>> source;
  CHECK(said_of_copy(source, [] {}) == "");
  const auto names_it =
      ContainsText("race in cudaMemcpyAsync: 16384 bytes of pageable host memory have changed, or are gone");
  CHECK_THAT(said_of_copy(source, [&] { (*source)[kCount - 1] = 0; }), names_it);
  CHECK_THAT(said_of_copy(source, [&] { std::fill(source->begin(), source->end(), 0); }), names_it);
  simulator::settings().streams = simulator::Streams::eager;
  CHECK(said_of_copy(source, [&] { source.reset(); }) == "");
}

TEST_CASE("tensor maps are encoded in threads that have a context") {
  const DeviceBuffer<std::uint16_t> data(64 * 8);
  CHECK(encode_on_new_thread(data.data(), false) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(encode_on_new_thread(data.data(), true) == CUDA_SUCCESS);
}
