// cuDNN without its types: what convolutions on a GPU are made of, and what tests put in its place.
#pragma once

#include "tandem/core/library_file.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/found_library.h"

#include <optional>
#include <string_view>

namespace tandem::kernels {

/// What a library computes in one go.
enum class ConvPass : std::uint8_t {
  forward,                   // y = x * w
  forward_bias,              // y = x * w + bias
  forward_relu,              // y = max(x * w, 0)
  forward_bias_relu,         // y = max(x * w + bias, 0)
  backward_input,            // x = the gradient of x, from w and y, the gradient of y
  backward_input_relu,       // the same where `gate` is positive, else 0
  backward_input_relu_bias,  // and `sums` = the sums of that over N, H and W
  backward_weight,           // w = the gradient of w, from x and y, the gradient of y
  backward_relu_bias,        // no convolution: x = y where `gate` is positive, and `sums` its sums; x and gate like y
};

std::string_view name_of(ConvPass pass);

struct ConvTask {
  ConvGeometry geometry;  // no size is 0
  DType dtype;
  ConvPass pass;

  friend bool operator==(const ConvTask&, const ConvTask&) = default;
};

/// Tensors as in conv.h, all on one device; those that a pass does not have are undefined.
struct ConvTensors {
  Tensor x, w, y;
  Tensor bias = {};
  Tensor gate = {};  // like x
  Tensor sums = {};  // [1, channels of x], f32
};

class ConvLibrary {
 public:
  virtual ~ConvLibrary() = default;

  /// "cuDNN 9.19.0": what the numbers of plans depend on.
  virtual std::string version() const = 0;

  /// True if the library has code for the task that sums up in float, gives the same bits every time, and no other
  /// numbers than the reference would on whole numbers (no TF32, FFT or Winograd). What it finds it keeps.
  virtual bool supports(const ConvTask& task, Device device) = 0;

  /// In how many ways it can compute the task, at most kMostPlans, the one that it advises most first; 0 if it does not
  /// support it. Finding all of them may take a second.
  virtual int plan_count(const ConvTask& task, Device device) = 0;

  /// Enqueues a task that is supported on the current stream of the tensors' device, in the way of this number, less
  /// than plan_count() of the task. They start at multiples of kLibraryAlignment. Throws Error for other numbers, and
  /// with the library's words where it refuses.
  virtual void run(const ConvTask& task, const ConvTensors& tensors, int plan = 0) = 0;
};

inline constexpr int kMostPlans = 8;

inline constexpr std::int64_t kLibraryAlignment = 16;  // bytes

/// The file of cuDNN 9, or the one that TANDEM_CUDNN_LIBRARY names. These two are in builds with cuDNN only.
LibraryRequest cudnn_library();
std::unique_ptr<ConvLibrary> make_cudnn(const LibraryFile& file);

/// That file, opened. Throws Error where it cannot be used, and in builds without cuDNN.
std::unique_ptr<ConvLibrary> open_cudnn();

/// cuDNN, looked for at the first call.
const FoundLibrary<ConvLibrary>& find_cudnn();

/// What convolutions on a GPU may use: cuDNN where it was found, on real GPUs; null where there is none.
ConvLibrary* gpu_conv_library();

/// While it lives that is another library, or none, for tests; not for while other threads convolve.
class ConvLibraryScope {
 public:
  explicit ConvLibraryScope(ConvLibrary* library);
  ~ConvLibraryScope();
  ConvLibraryScope(const ConvLibraryScope&) = delete;
  ConvLibraryScope& operator=(const ConvLibraryScope&) = delete;

 private:
  std::optional<ConvLibrary*> before_;
};

/// Why `impl` cannot convolve on `device` in this process, and what to choose; empty if it can, or if that depends on
/// the geometry.
std::string obstacle(ConvImpl impl, Device device);

}  // namespace tandem::kernels
