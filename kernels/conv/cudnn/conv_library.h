// cuDNN without its types: what convolutions on a GPU are made of, and what tests put in its place.
#pragma once

#include "core/library_file.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/found_library.h"

#include <string_view>

namespace tandem::kernels {

/// What a library computes in one go.
enum class ConvPass : std::uint8_t {
  forward,            // y = x * w
  forward_bias,       // y = x * w + bias
  forward_relu,       // y = max(x * w, 0)
  forward_bias_relu,  // y = max(x * w + bias, 0)
  backward_input,     // x = the gradient of x, from w and y, the gradient of y
  backward_weight,    // w = the gradient of w, from x and y, the gradient of y
};

std::string_view name_of(ConvPass pass);

struct ConvTask {
  ConvGeometry geometry;  // no size is 0
  DType dtype;
  ConvPass pass;

  friend bool operator==(const ConvTask&, const ConvTask&) = default;
};

/// Tensors as in conv.h, all on one device; bias is undefined where the pass has none.
struct ConvTensors {
  Tensor x, w, y;
  Tensor bias = {};
};

class ConvLibrary {
 public:
  virtual ~ConvLibrary() = default;

  /// True if the library has code for the task that sums up in float, gives the same bits every time, and no other
  /// numbers than the reference would on whole numbers (no TF32, FFT or Winograd). What it finds it keeps.
  virtual bool supports(const ConvTask& task, Device device) = 0;

  /// Enqueues a task that is supported on the current stream of the tensors' device. They start at multiples of
  /// kLibraryAlignment. Throws Error with the library's words where it refuses.
  virtual void run(const ConvTask& task, const ConvTensors& tensors) = 0;
};

inline constexpr std::int64_t kLibraryAlignment = 16;  // bytes

/// The file of cuDNN 9, or the one that TANDEM_CUDNN_LIBRARY names. These two are in builds with cuDNN only
/// (TANDEM_HAS_CUDNN).
LibraryRequest cudnn_library();
std::unique_ptr<ConvLibrary> make_cudnn(const LibraryFile& file);

/// cuDNN, looked for at the first call.
const FoundLibrary<ConvLibrary>& find_cudnn();

/// Why `impl` cannot convolve on `device` in this process, and what to choose; empty if it can, or if that depends on
/// the geometry.
std::string obstacle(ConvImpl impl, Device device);

}  // namespace tandem::kernels
