// Products by cuBLAS.
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/kernels/gemm/cublas/functions.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"
#include "tandem/kernels/library_stream.h"

#include <map>
#include <mutex>

namespace tandem::kernels {
namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;  // what NVIDIA advises for Hopper; 4 MiB elsewhere

cudaDataType type_of(DType dtype) {
  return dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasOperation_t operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

/// A handle that works on one stream. Its workspace is ours, so that no two streams share one: then, and without
/// atomics, the same call gives the same bits.
struct StreamHandle {
  Stream stream;
  Tensor workspace;
  cublasHandle_t handle = nullptr;

  StreamHandle(const CublasFunctions& cublas, Stream of) : stream(std::move(of)) {
    const MemoryTagScope scope(MemoryTag::workspace);
    workspace = Tensor::empty({kWorkspaceBytes}, {.dtype = DType::u8, .device = stream.device()});
    TANDEM_CHECK_CUBLAS(cublas, Create(&handle));
    TANDEM_CHECK_CUBLAS(cublas, SetStream(handle, static_cast<cudaStream_t>(stream.native())));
    TANDEM_CHECK_CUBLAS(cublas, SetWorkspace(handle, Out(workspace).raw_data(), kWorkspaceBytes));
    TANDEM_CHECK_CUBLAS(cublas, SetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
    // No TF32, and no sums in half precision between parts of a product.
    const auto mode = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    TANDEM_CHECK_CUBLAS(cublas, SetMathMode(handle, mode));
  }
};

class CuBlas final : public MatrixLibrary {
 public:
  explicit CuBlas(const LibraryFile& file) : cublas_(file) {}

  void multiply(const ColumnMajorProduct& p, Device device) override {
    const auto integer = [](std::int64_t size) { return static_cast<int>(size); };
    const float one = 1.0f, kept = p.accumulate ? 1.0f : 0.0f;
    const cudaDataType type = type_of(p.dtype);
    const std::scoped_lock lock(mutex_);
    TANDEM_CHECK_CUBLAS(cublas_, GemmEx(handle_for(library_stream(device)), operation(p.transpose_a),
                                        operation(p.transpose_b), integer(p.m), integer(p.n), integer(p.k), &one, p.a,
                                        type, integer(p.a_leading), p.b, type, integer(p.b_leading), &kept, p.c, type,
                                        integer(p.c_leading), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

 private:
  /// Handles keep their streams alive, so that an address names one stream for good.
  cublasHandle_t handle_for(const Stream& stream) {
    const auto found = handles_.find(stream.native());
    if (found != handles_.end()) return found->second.handle;
    return handles_.try_emplace(stream.native(), cublas_, stream).first->second.handle;
  }

  CublasFunctions cublas_;
  std::mutex mutex_;
  std::map<void*, StreamHandle> handles_;
};

LibraryVersion read_version(const LibraryFile& library) {
  decltype(&cublasGetProperty) get_property = nullptr;
  library.find("cublasGetProperty", get_property);
  LibraryVersion version{};
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    if (get_property(part, &version[static_cast<std::size_t>(part)]) != CUBLAS_STATUS_SUCCESS) return {};
  }
  return version;
}

}  // namespace

LibraryRequest cublas_library() {
#ifdef TANDEM_CUBLAS_FILE
  constexpr const char* kBuiltWith = TANDEM_CUBLAS_FILE;
#else
  constexpr const char* kBuiltWith = "";
#endif
  return {.name = "cuBLAS",
          .file = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR),
          .variable = "TANDEM_CUBLAS_LIBRARY",
          .built_with = kBuiltWith,
          .least = {CUBLAS_VER_MAJOR, 0, 0},
          .read_version = read_version};
}

std::unique_ptr<MatrixLibrary> make_cublas(const LibraryFile& file) { return std::make_unique<CuBlas>(file); }

}  // namespace tandem::kernels
