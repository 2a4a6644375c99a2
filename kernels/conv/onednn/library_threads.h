// How many threads oneDNN takes: it asks its OpenMP, which this project does not use itself.
#pragma once

namespace tandem::kernels::onednn {

/// While it lives, oneDNN uses `threads` threads in calls from this thread. Does nothing where oneDNN was built without
/// OpenMP.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_ = 0;  // 0: nothing to restore
};

}  // namespace tandem::kernels::onednn
