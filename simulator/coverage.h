// Which kernels have run.
#pragma once

namespace tandem::simulator {

/// Notes a kernel; at the end of the program each goes to the file that settings().coverage_file names, as a line of
/// source file, tab and name.
void record_kernel(const void* kernel);

}  // namespace tandem::simulator
