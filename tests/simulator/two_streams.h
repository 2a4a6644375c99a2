// Two streams that the legacy stream does not wait for, with an owner.
#pragma once

#include "tandem/core/cuda/check.h"

namespace tandem::test {

struct TwoStreams {
  cudaStream_t first = nullptr, second = nullptr;
  TwoStreams() {
    TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  }
  ~TwoStreams() {
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
  TwoStreams(const TwoStreams&) = delete;
  TwoStreams& operator=(const TwoStreams&) = delete;
};

}  // namespace tandem::test
