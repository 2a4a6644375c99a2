// Shared memory, as kernels declare it.
#pragma once

#include "core/cuda/shared.h"
