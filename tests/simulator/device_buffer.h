// Device memory with an owner, for kernels under test.
#pragma once

#include "tandem/core/cuda/check.h"

#include <vector>

namespace tandem::test {

template <typename T>
std::vector<T> zeros(std::size_t count) {
  return std::vector<T>(count);
}

template <typename T>
class DeviceBuffer {
 public:
  /// `count` elements, uninitialised.
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    void* start = nullptr;
    TANDEM_CHECK_CUDA(cudaMalloc(&start, count * sizeof(T)));
    data_ = static_cast<T*>(start);
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) {
    TANDEM_CHECK_CUDA(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return data_; }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    TANDEM_CHECK_CUDA(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

}  // namespace tandem::test
