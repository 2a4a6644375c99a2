// wgmma and copies of tiles against plain products and loops: the places of all numbers.
#include "tandem/kernels/device/warpgroup_layout.h"
#include "tandem/simulator/include/cuda.h"
#include "tandem/simulator/warpgroup.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/warpgroup_kernels.h"
#include "tests/support/catch.h"

#include <array>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("products of warpgroups equal plain products on whole numbers") {
  for (int which = 0; which < 16; ++which) {
    const WarpgroupProductCase one{(which & 1) != 0, (which & 2) != 0, (which & 4) != 0, (which & 8) != 0 ? 256 : 128};
    const auto columns = static_cast<std::size_t>(one.columns);
    std::vector<float> a(64 * 64), b(64 * columns), expected(64 * columns);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 37 % 61) - 30.0f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 29 % 53) - 26.0f;
    for (std::size_t row = 0; row < 64; ++row)
      for (std::size_t k = 0; k < 64; ++k)
        for (std::size_t column = 0; column < columns; ++column)
          expected[row * columns + column] += a[row * 64 + k] * b[k * columns + column];
    INFO("case " << which);
    CHECK(warpgroup_product(one, a, b) == expected);
  }
}

TEST_CASE("descriptors name the places where swizzled lines lie") {
  using device::Lines;
  for (const unsigned address : {0u, 1024u, 230u * 1024u})
    for (const int chunk : {8192, 16384})
      for (int step = 0; step < 4; ++step)
        for (int row = 0; row < 256; ++row)
          for (int depth = 0; depth < 16; ++depth) {
            const int line = row, byte = (step * 16 + depth) * 2;
            REQUIRE(simulator::operand_offset(
                        device::operand_descriptor(
                            Lines::along_depth,
                            address + static_cast<unsigned>(step) * device::depth_step(Lines::along_depth), chunk),
                        false, static_cast<unsigned>(row), static_cast<unsigned>(depth)) ==
                    address + static_cast<unsigned>(device::line_place(line, byte)));
            const int in_chunk = device::line_place(step * 16 + depth, row % 64 * 2) + row / 64 * chunk;
            REQUIRE(simulator::operand_offset(
                        device::operand_descriptor(
                            Lines::along_rows,
                            address + static_cast<unsigned>(step) * device::depth_step(Lines::along_rows), chunk),
                        true, static_cast<unsigned>(row),
                        static_cast<unsigned>(depth)) == address + static_cast<unsigned>(in_chunk));
          }
}

TEST_CASE("copies of tiles bring what is in the tensor and zeros around it") {
  constexpr std::array<int, 4> kSizes{3, 5, 7, 24}, kBox{4, 8, 8, 16};
  std::vector<float> numbers;
  for (int i = 0; i < 3 * 5 * 7 * 24; ++i) numbers.push_back(static_cast<float>(i % 2000 + 1));
  for (const std::array<int, 4> from :
       {std::array{0, 0, 0, 0}, {0, -1, -2, 8}, {2, 3, 4, 16}, {-1, -7, 1, 0}, {3, 0, 0, 0}, {0, 0, 0, -8}}) {
    std::vector<float> expected;
    for (int n = 0; n < kBox[0]; ++n)
      for (int h = 0; h < kBox[1]; ++h)
        for (int w = 0; w < kBox[2]; ++w)
          for (int c = 0; c < kBox[3]; ++c) {
            const std::array<int, 4> at{from[0] + n, from[1] + h, from[2] + w, from[3] + c};
            bool inside = true;
            int index = 0;
            for (std::size_t i = 0; i < 4; ++i) {
              inside = inside && at[i] >= 0 && at[i] < kSizes[i];
              index = index * kSizes[i] + at[i];
            }
            expected.push_back(inside ? numbers[static_cast<std::size_t>(index)] : 0.0f);
          }
    CHECK(fetched_tile(numbers, from[0], from[1], from[2], from[3]) == expected);
  }
}

TEST_CASE("tensor maps that the hardware cannot have are refused") {
  const DeviceBuffer<float> context_is_made_for(1);
  alignas(16) static char memory[64];
  const auto encode = [&](cuuint64_t inner, cuuint64_t stride, cuuint32_t box, int offset, CUtensorMapSwizzle swizzle) {
    CUtensorMap map{};
    const cuuint64_t sizes[] = {inner, 4}, strides[] = {stride};
    const cuuint32_t boxes[] = {box, 4}, steps[] = {1, 1};
    return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, memory + offset, sizes, strides, boxes,
                                  steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  constexpr auto kSwizzled = CU_TENSOR_MAP_SWIZZLE_128B, kPlain = CU_TENSOR_MAP_SWIZZLE_NONE;
  CHECK(encode(64, 128, 64, 0, kSwizzled) == CUDA_SUCCESS);
  CHECK(encode(64, 128, 64, 8, kSwizzled) == CUDA_ERROR_INVALID_VALUE);    // address
  CHECK(encode(64, 136, 64, 0, kSwizzled) == CUDA_ERROR_INVALID_VALUE);    // stride
  CHECK(encode(128, 256, 128, 0, kSwizzled) == CUDA_ERROR_INVALID_VALUE);  // line longer than the swizzle
  CHECK(encode(128, 256, 128, 0, kPlain) == CUDA_SUCCESS);
  CHECK(encode(512, 1024, 512, 0, kPlain) == CUDA_ERROR_INVALID_VALUE);  // more than 256
  CHECK(encode(64, 128, 4, 0, kPlain) == CUDA_ERROR_INVALID_VALUE);      // lines of 8 bytes
  CHECK(encode(0, 128, 64, 0, kPlain) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("errors of the simulated driver have the driver's words") {
  const char* text = "";
  CHECK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text) == CUDA_SUCCESS);
  CHECK(text == std::string("invalid argument"));
  CHECK(cuGetErrorString(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}
