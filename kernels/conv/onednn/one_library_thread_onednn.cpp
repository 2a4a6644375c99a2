// The OpenMP that oneDNN has brought into the process.
#include "tandem/kernels/conv/onednn/one_library_thread.h"

#include <dlfcn.h>

namespace tandem::kernels::onednn {

namespace {

/// The two functions of the OpenMP in this process; null where there is none. Looked up rather than linked: which one
/// it is depends on how oneDNN was built.
struct OpenMp {
  int (*get_max_threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  void (*set_num_threads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};

const OpenMp& open_mp() {
  static const OpenMp functions;
  return functions;
}

}  // namespace

OneLibraryThread::OneLibraryThread() {
  if (open_mp().get_max_threads == nullptr || open_mp().set_num_threads == nullptr) return;
  before_ = open_mp().get_max_threads();
  if (before_ != 1) open_mp().set_num_threads(1);
}

OneLibraryThread::~OneLibraryThread() {
  if (before_ > 1) open_mp().set_num_threads(before_);
}

}  // namespace tandem::kernels::onednn
