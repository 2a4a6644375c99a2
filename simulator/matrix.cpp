// ldmatrix and mma: the last lane to come computes for all.
#include "tandem/simulator/matrix.h"

#include "tandem/simulator/engine.h"
#include "tandem/simulator/shadow.h"
#include "tandem/simulator/shared_memory.h"

#include "tandem/core/half.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace tandem::simulator {

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
using Slots = std::array<void*, kWarpSize>;

struct LoadSlot {
  std::uint32_t* registers;
  const char* row;
  unsigned count;
  bool transposed;
};

void finish_load(const Slots& slots, unsigned) {
  const auto lane_slot = [&](unsigned lane) -> LoadSlot& { return *static_cast<LoadSlot*>(slots[lane]); };
  const unsigned count = lane_slot(0).count;
  const bool transposed = lane_slot(0).transposed;
  for (unsigned matrix = 0; matrix < count; ++matrix) {
    std::uint16_t element[8][8];
    for (unsigned row = 0; row < 8; ++row) std::memcpy(element[row], lane_slot(matrix * 8 + row).row, 16);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      const std::uint32_t low = transposed ? element[t][g] : element[g][t];
      const std::uint32_t high = transposed ? element[t + 1][g] : element[g][t + 1];
      lane_slot(lane).registers[matrix] = low | high << 16;
    }
  }
}

struct MultiplySlot {
  MatrixType type;
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
  const float* c;
};

/// The `index`-th element of packed registers.
float element(MatrixType type, const std::uint32_t* registers, unsigned index) {
  if (type == MatrixType::tf32) return std::bit_cast<float>(registers[index] & 0xffffe000u);
  return half_value(type, static_cast<std::uint16_t>(registers[index / 2] >> (index % 2 * 16)));
}

void finish_multiply(const Slots& slots, unsigned) {
  const auto lane_slot = [&](unsigned lane) -> MultiplySlot& { return *static_cast<MultiplySlot*>(slots[lane]); };
  const MatrixType type = lane_slot(0).type;
  const unsigned k_size = type == MatrixType::tf32 ? 8 : 16;
  double a[16][16], b[16][8], sums[16][8];
  const auto each_sum = [&](auto&& visit) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned i = 0; i < 4; ++i) visit(lane_slot(lane), i, sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
  };
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const unsigned g = lane / 4, t = lane % 4;
    const MultiplySlot& slot = lane_slot(lane);
    if (type == MatrixType::tf32) {
      for (unsigned i = 0; i < 4; ++i) a[g + i % 2 * 8][t + i / 2 * 4] = static_cast<double>(element(type, slot.a, i));
      for (unsigned i = 0; i < 2; ++i) b[t + i * 4][g] = static_cast<double>(element(type, slot.b, i));
    } else {
      for (unsigned i = 0; i < 8; ++i)
        a[g + i / 2 % 2 * 8][t * 2 + i % 2 + i / 4 * 8] = static_cast<double>(element(type, slot.a, i));
      for (unsigned i = 0; i < 4; ++i) b[t * 2 + i % 2 + i / 2 * 8][g] = static_cast<double>(element(type, slot.b, i));
    }
  }
  each_sum([](const MultiplySlot& slot, unsigned i, double& sum) { sum = static_cast<double>(slot.c[i]); });
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < k_size; ++k)
      for (unsigned column = 0; column < 8; ++column) sums[row][column] += a[row][k] * b[k][column];
  each_sum([](const MultiplySlot& slot, unsigned i, double& sum) { slot.d[i] = static_cast<float>(sum); });
}

}  // namespace

float half_value(MatrixType type, std::uint16_t bits) {
  if (type == MatrixType::bf16) return tandem::detail::bfloat16_bits_to_float(bits);
#ifdef __F16C__
  return _cvtsh_ss(bits);
#else
  return tandem::detail::half_bits_to_float(bits);
#endif
}

void load_matrix(std::uint32_t* registers, unsigned count, bool transposed, const void* row,
                 std::source_location where) {
  Engine& e = engine();
  const bool gives_row = e.current().lane() < count * 8;
  const auto at = reinterpret_cast<std::uintptr_t>(row);
  if (gives_row && !is_shared_address(row))
    e.raise(FaultKind::out_of_bounds, site_id(where),
            fmt::format("ldmatrix from {:#x}, which is not in shared memory", at));
  if (gives_row && at % 16 != 0)
    e.raise(FaultKind::misaligned, site_id(where),
            fmt::format("ldmatrix from a row at {:#x}, which is no multiple of 16", at));
  if constexpr (kChecksMemory) {
    if (gives_row) check_access(at, 16, Access::read, site_id(where));
  }
  LoadSlot slot{registers, static_cast<const char*>(row), count, transposed};
  e.meet(WarpOperation::load_matrix, kAllLanes, &slot, finish_load, where);
}

void multiply_matrices(MatrixType type, float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                       std::source_location where) {
  MultiplySlot slot{type, d, a, b, c};
  engine().meet(WarpOperation::multiply, kAllLanes, &slot, finish_multiply, where);
}

std::uint32_t round_to_tf32(float value) {
  constexpr std::uint32_t kKept = 0xffffe000u, kHalf = 0x1000u, kInfinity = 0x7f800000u, kNaN = 0x7fffe000u;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > kInfinity) return kNaN;
  return magnitude == kInfinity ? bits : (bits + kHalf) & kKept;  // a carry reaches the exponent, as it should
}

}  // namespace tandem::simulator
