// Tensor-core atoms on the registers of a warp: ldmatrix, and the m16n8k16 and m16n8k8 products.
//
// Lane layouts are those of the PTX manual ("Warp-level matrix instructions"): with g = lane / 4 and t = lane % 4, lane
// holds A at rows g and g + 8, columns 2t, 2t+1 and 2t+8, 2t+9; B at column g, rows 2t, 2t+1, 2t+8, 2t+9; C and D at
// rows g and g + 8, columns 2t, 2t+1. For tf32 (k = 8) A is at columns t and t + 4, B at rows t and t + 4. Sums are
// kept in double and rounded once: the order inside the hardware is not specified.
#pragma once

#include <cstdint>
#include <source_location>

namespace tandem::simulator {

enum class MatrixType : std::uint8_t { f16, bf16, tf32 };

/// Loads `count` (1, 2 or 4) 8x8 matrices of 2-byte elements from shared memory: lane i gives the address of row i % 8
/// of matrix i / 8, 16 bytes, aligned; registers[m] gets this lane's two elements of matrix m.
void load_matrix(std::uint32_t* registers, unsigned count, bool transposed, const void* row,
                 std::source_location where);

/// d = a b + c of 16 x k, k x 8 (k = 16 for halves, 8 for tf32). Registers: a 4, b 2 (both packed pairs, or tf32
/// values), c and d 4 floats.
void multiply_matrices(MatrixType type, float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                       std::source_location where);

/// The number that 16 bits of f16 or bf16 are.
float half_value(MatrixType type, std::uint16_t bits);

/// cvt.rna.tf32.f32: the nearest float of 10 bits of mantissa, ties away from zero; NaN stays NaN.
std::uint32_t round_to_tf32(float value);

}  // namespace tandem::simulator
