// oneDNN asks its OpenMP how many threads to take; this project does not use OpenMP itself.
#pragma once

namespace tandem::kernels::onednn {

/// While it lives, oneDNN uses no threads but the calling one in calls from it. Does nothing where oneDNN was built
/// without OpenMP.
class OneLibraryThread {
 public:
  OneLibraryThread();
  ~OneLibraryThread();
  OneLibraryThread(const OneLibraryThread&) = delete;
  OneLibraryThread& operator=(const OneLibraryThread&) = delete;

 private:
  int before_ = 0;  // 0: nothing to restore
};

}  // namespace tandem::kernels::onednn
