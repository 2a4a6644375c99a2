// NVIDIA's cudnn-frontend, as this project takes it. It compiles for long: for one source file. Only in builds with
// cuDNN.
#pragma once

#include "tandem/kernels/conv/cudnn/symbols.h"

#include <cudnn.h>
#include <dlfcn.h>

// Without its copy of a JSON library, and quiet; nothing of cuDNN is linked.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#define NV_CUDNN_FRONTEND_DISABLE_LOGGING
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define dlopen(file, mode) ::tandem::kernels::cudnn::open_library(file)
#define dlsym(library, name) ::tandem::kernels::cudnn::find_symbol(name)
// A name of its own, so that a program may use the frontend with other settings beside this library.
#define cudnn_frontend tandem_cudnn_frontend
#include <cudnn_frontend.h>
#undef dlsym
#undef dlopen
