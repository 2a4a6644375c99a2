// A build without oneDNN.
#include "tandem/kernels/implementations.h"

namespace tandem::kernels {

std::string_view missing_onednn() { return "this build has no oneDNN (libdnnl-dev)"; }

}  // namespace tandem::kernels
