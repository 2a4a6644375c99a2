// Builds without cuDNN.
#include "tandem/kernels/conv/cudnn/conv_library.h"

namespace tandem::kernels {

std::unique_ptr<ConvLibrary> open_cudnn() {
  fail(
      "this program was built without cuDNN, which takes TANDEM_CUDA=ON, cudnn.h and cudnn_frontend.h (pip install "
      "nvidia-cudnn-cu13, and --no-deps nvidia-cudnn-frontend)");
}

}  // namespace tandem::kernels
