// Shared memory, as kernels declare it.
#pragma once

#include "tandem/core/cuda/shared.h"
