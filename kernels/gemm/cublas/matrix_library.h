// cuBLAS without its types: what products on a GPU are made of, and what tests put in its place.
#pragma once

#include "tandem/core/library_file.h"
#include "tandem/kernels/found_library.h"
#include "tandem/kernels/gemm/cublas/column_major.h"
#include "tandem/kernels/gemm/gemm_impl.h"

namespace tandem::kernels {

class MatrixLibrary {
 public:
  virtual ~MatrixLibrary() = default;

  /// Enqueues the product on the current stream of `device`: summed up in float, the same bits every time. Throws Error
  /// with the library's words where it refuses.
  virtual void multiply(const ColumnMajorProduct& product, Device device) = 0;
};

/// The file of cuBLAS, of the major version that the build knows, or the one that TANDEM_CUBLAS_LIBRARY names. Throws
/// Error in a build without cuBLAS.
LibraryRequest cublas_library();
std::unique_ptr<MatrixLibrary> make_cublas(const LibraryFile& file);

/// cuBLAS, looked for at the first call.
const FoundLibrary<MatrixLibrary>& find_cublas();

/// Why `impl` cannot multiply matrices on `device` in this process, and what to choose; empty if it can.
std::string obstacle(GemmImpl impl, Device device);

/// Throws Error with the obstacle where there is one.
void require_possible(std::string_view op, GemmImpl impl, Device device);

}  // namespace tandem::kernels
