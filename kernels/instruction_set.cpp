// What the CPU's kernels were compiled for.
#include "tandem/kernels/instruction_set.h"

namespace tandem::kernels {

std::string_view instruction_set() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#else
  return "baseline";
#endif
}

}  // namespace tandem::kernels
