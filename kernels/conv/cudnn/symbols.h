// Where NVIDIA's cudnn-frontend finds the functions that it calls. Only in builds with cuDNN.
#pragma once

#include "tandem/core/library_file.h"

namespace tandem::kernels::cudnn {

/// From here on the frontend calls the cuDNN of `file`. It keeps the addresses that it has looked up, so that a process
/// works with one cuDNN: throws Error where it works with another already, and where `file` lacks a function.
void use_library(const LibraryFile& file);

/// In place of dlopen() and dlsym() in the frontend's headers. The frontend looks for a CUDA runtime to load; it gets
/// this program's own, so that no second one of another version is loaded, and none has to be installed.
void* open_library(const char* file);
void* find_symbol(const char* name);

}  // namespace tandem::kernels::cudnn
