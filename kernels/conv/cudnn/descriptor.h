// cuDNN's functions by a table, and its descriptors: objects of one kind that are filled in, finalized and read.
#pragma once

#include "core/error.h"
#include "core/library_file.h"

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::kernels::cudnn {

/// What is used of cuDNN, under its own names without the prefix.
struct Functions {
  explicit Functions(const LibraryFile& file) {
    file.find("cudnnCreate", Create);
    file.find("cudnnSetStream", SetStream);
    file.find("cudnnGetErrorString", GetErrorString);
    file.find("cudnnBackendCreateDescriptor", BackendCreateDescriptor);
    file.find("cudnnBackendDestroyDescriptor", BackendDestroyDescriptor);
    file.find("cudnnBackendSetAttribute", BackendSetAttribute);
    file.find("cudnnBackendGetAttribute", BackendGetAttribute);
    file.find("cudnnBackendFinalize", BackendFinalize);
    file.find("cudnnBackendExecute", BackendExecute);
  }

  decltype(&cudnnCreate) Create;
  decltype(&cudnnSetStream) SetStream;
  decltype(&cudnnGetErrorString) GetErrorString;
  decltype(&cudnnBackendCreateDescriptor) BackendCreateDescriptor;
  decltype(&cudnnBackendDestroyDescriptor) BackendDestroyDescriptor;
  decltype(&cudnnBackendSetAttribute) BackendSetAttribute;
  decltype(&cudnnBackendGetAttribute) BackendGetAttribute;
  decltype(&cudnnBackendFinalize) BackendFinalize;
  decltype(&cudnnBackendExecute) BackendExecute;

  void check(cudnnStatus_t status, const std::string& call) const {
    require(status == CUDNN_STATUS_SUCCESS, "cuDNN: {} from {}; --conv-impl fused does without it",
            GetErrorString(status), call);
  }
};

/// A cudnnBackendDescriptor_t and those that it refers to, which must live as long.
class Descriptor {
 public:
  Descriptor(const Functions& functions, cudnnBackendDescriptorType_t kind) : functions_(&functions), kind_(kind) {
    functions.check(functions.BackendCreateDescriptor(kind, &descriptor_), call("creating"));
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) functions_->BackendDestroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept
      : functions_(other.functions_),
        kind_(other.kind_),
        descriptor_(std::exchange(other.descriptor_, nullptr)),
        parts_(std::move(other.parts_)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<Value>& values) {
    functions_->check(functions_->BackendSetAttribute(descriptor_, name, type, static_cast<std::int64_t>(values.size()),
                                                      values.data()),
                      call("setting an attribute of"));
  }
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value& value) {
    functions_->check(functions_->BackendSetAttribute(descriptor_, name, type, 1, &value),
                      call("setting an attribute of"));
  }

  /// Refers to `parts`, which this descriptor keeps.
  void set(cudnnBackendAttributeName_t name, std::vector<Descriptor> parts) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& part : parts) raw.push_back(part.get());
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
    for (Descriptor& part : parts) parts_.push_back(std::move(part));
  }
  void set(cudnnBackendAttributeName_t name, Descriptor part) {
    std::vector<Descriptor> parts;
    parts.push_back(std::move(part));
    set(name, std::move(parts));
  }
  /// Refers to `other`, which lives elsewhere for as long.
  void refer(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }

  /// Up to `most` values.
  template <typename Value>
  std::vector<Value> read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t most) const {
    std::vector<Value> values(static_cast<std::size_t>(most));
    std::int64_t count = 0;
    functions_->check(functions_->BackendGetAttribute(descriptor_, name, type, most, &count, values.data()),
                      call("reading"));
    values.resize(static_cast<std::size_t>(std::min(count, most)));
    return values;
  }

  /// Fills in `parts`, which were made but not set, and returns how many of them it has filled; with none, how many
  /// there are.
  std::int64_t read(cudnnBackendAttributeName_t name, std::vector<Descriptor>& parts) const {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& part : parts) raw.push_back(part.get());
    std::int64_t count = 0;
    functions_->check(functions_->BackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                      static_cast<std::int64_t>(raw.size()), &count,
                                                      raw.empty() ? nullptr : raw.data()),
                      call("reading"));
    return count;
  }

  /// Nothing may be set after. False where the library does not support what the descriptor says.
  bool try_finalize() { return functions_->BackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }
  void finalize() { functions_->check(functions_->BackendFinalize(descriptor_), call("finalizing")); }

 private:
  std::string call(const char* verb) const { return fmt::format("{} descriptor {}", verb, static_cast<int>(kind_)); }

  const Functions* functions_;
  cudnnBackendDescriptorType_t kind_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  std::vector<Descriptor> parts_;
};

}  // namespace tandem::kernels::cudnn
