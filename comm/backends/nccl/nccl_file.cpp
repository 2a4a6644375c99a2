// The file of NCCL, and how its version is read.
#include "tandem/comm/backends/nccl/nccl_file.h"

namespace tandem::comm {

namespace {

LibraryVersion read_version(const LibraryFile& library) {
  int (*get_version)(int*) = nullptr;  // returns an ncclResult_t, where 0 is success
  library.find("ncclGetVersion", get_version);
  int number = 0;
  return get_version(&number) == 0 ? version_of(number) : LibraryVersion{};
}

}  // namespace

LibraryRequest nccl_library() {
#ifdef TANDEM_NCCL_FILE
  constexpr const char* kBuiltWith = TANDEM_NCCL_FILE;
#else
  constexpr const char* kBuiltWith = "";
#endif
  return {.name = "NCCL",
          .file = "libnccl.so.2",
          .variable = "TANDEM_NCCL_LIBRARY",
          .built_with = kBuiltWith,
          .least = {2, 14, 0},
          .read_version = read_version};
}

}  // namespace tandem::comm
