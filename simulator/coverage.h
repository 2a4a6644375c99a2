// Which kernels have run.
#pragma once

namespace tandem::simulator {

/// Notes a kernel; at the end of the program the names go to the file that settings().coverage_file names, one a line.
void record_kernel(const void* kernel);

}  // namespace tandem::simulator
