// From CUDA's own syntax to what a C++ compiler takes: launches and shared memory.
#pragma once

#include <string>
#include <string_view>

namespace tandem::simulator {

/// Rewrites
///   kernel<<<grid, block, bytes, stream>>>(a, b)  ->  ::tandem::simulator::configure(kernel, grid, block, ...)(a, b)
///   __shared__ float tile[32][33];                ->  TANDEM_SHARED(float, tile, [32][33]);
///   extern __shared__ float buffer[];             ->  TANDEM_DYNAMIC_SHARED(float, buffer);
/// and leaves all else as it is, line by line, so that messages still name the lines of `file`. Comments and literals
/// are not touched. Throws std::runtime_error, naming file and line, for what it cannot read.
std::string translate_cuda(std::string_view source, std::string_view file);

}  // namespace tandem::simulator
