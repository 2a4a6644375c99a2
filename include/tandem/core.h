// core/: tensors, dtypes, devices, memory, random numbers, threads.
// Example:
//     const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
//     const std::vector<float> row = x.select(0, 1).to_vector<float>();  // {4, 5, 6}
#pragma once

#include "tandem/config.h"
#include "tandem/core/allocator.h"
#include "tandem/core/describe.h"
#include "tandem/core/device.h"
#include "tandem/core/device_query.h"
#include "tandem/core/dtype.h"
#include "tandem/core/dtype_values.h"
#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/height_width.h"
#include "tandem/core/memory.h"
#include "tandem/core/named_tensors.h"
#include "tandem/core/number_text.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/parse_device.h"
#include "tandem/core/print.h"
#include "tandem/core/profiler.h"
#include "tandem/core/random.h"
#include "tandem/core/serial_scope.h"
#include "tandem/core/shape.h"
#include "tandem/core/storage.h"
#include "tandem/core/stream.h"
#include "tandem/core/suggest.h"
#include "tandem/core/tensor.h"
#include "tandem/core/timeline.h"
#include "tandem/core/work_counter.h"
