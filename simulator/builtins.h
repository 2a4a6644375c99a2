// The variables every kernel reads: its thread's place in block and grid.
#pragma once

#include "tandem/simulator/include/vector_types.h"

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
