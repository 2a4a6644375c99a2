// NVTX ranges. The headers load a profiler's library where one started this process; without one all calls do nothing.
#include "tandem/core/profiler.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace tandem::detail {

bool nvtx_listens() {
  const int depth = nvtxRangePushA("tandem");  // negative where nobody keeps count
  if (depth >= 0) nvtxRangePop();
  return depth >= 0;
}

void push_nvtx_range(const char* name) { nvtxRangePushA(name); }

void pop_nvtx_range() { nvtxRangePop(); }

}  // namespace tandem::detail
#else
namespace tandem::detail {

bool nvtx_listens() { return false; }
void push_nvtx_range(const char* /*name*/) {}
void pop_nvtx_range() {}

}  // namespace tandem::detail
#endif
