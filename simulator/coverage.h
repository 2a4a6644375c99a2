// Which kernels have run, and in blocks of which size.
#pragma once

#include <cstddef>

namespace tandem::simulator {

/// Notes a launch; at the end of the program each kernel, size of block and amount of dynamic shared memory that came
/// up goes to the file that settings().coverage_file names, as a line: source file, name, threads and bytes, with tabs
/// between.
void record_launch(const void* kernel, unsigned threads, std::size_t dynamic_shared_bytes);

}  // namespace tandem::simulator
