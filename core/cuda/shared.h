// Declaring shared memory so that nvcc and the simulator both understand it.
//
//   TANDEM_SHARED(float, tile, [32][33]);   __shared__ float tile[32][33];
//   TANDEM_SHARED(int, count);              __shared__ int count;
//   TANDEM_DYNAMIC_SHARED(float, buffer);       extern __shared__ float buffer[];   (as a pointer, aligned to 16 bytes)
//
// Macros, because a declaration is what they stand for.
#pragma once

#include <cuda_runtime.h>

#ifdef __CUDACC__

#define TANDEM_SHARED(type, name, ...) __shared__ type name __VA_ARGS__
#define TANDEM_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char tandem_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(tandem_dynamic_shared)

#else

#include "tandem/simulator/shared_memory.h"

// The lambda's static variable is the key: each declaration, in each instance of a template, has one of its own.
#define TANDEM_SHARED(type, name, ...)                                                                     \
  auto& name = *static_cast<std::type_identity_t<type __VA_ARGS__>*>(::tandem::simulator::shared_variable( \
      [] {                                                                                                 \
        static char key;                                                                                   \
        return &key;                                                                                       \
      }(),                                                                                                 \
      sizeof(type __VA_ARGS__), alignof(type), #name, std::source_location::current()))
#define TANDEM_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::tandem::simulator::dynamic_shared_memory())

#endif
