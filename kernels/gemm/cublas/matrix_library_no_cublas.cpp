// A build without cuBLAS.
#include "tandem/kernels/gemm/cublas/matrix_library.h"

namespace tandem::kernels {

LibraryRequest cublas_library() {
  fail("this program was built without cuBLAS, which takes TANDEM_CUDA=ON and cublas_v2.h");
}

std::unique_ptr<MatrixLibrary> make_cublas(const LibraryFile&) { return nullptr; }

}  // namespace tandem::kernels
