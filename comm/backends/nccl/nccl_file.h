// NCCL's library.
#pragma once

#include "tandem/core/library_file.h"

namespace tandem::comm {

/// libnccl.so.2 or the file that TANDEM_NCCL_LIBRARY names, from 2.14 on: the first whose calls return at once, so that
/// a start that hangs can be given up.
LibraryRequest nccl_library();

}  // namespace tandem::comm
