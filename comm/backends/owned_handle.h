// A C library's handle that is released when its owner goes.
#pragma once

#include <utility>

namespace tandem::comm {

/// Owns a `Handle`; `Release` is a function object called with it, unless it equals the empty value given.
template <typename Handle, typename Release>
class OwnedHandle {
 public:
  OwnedHandle(Handle handle, Handle empty) : handle_(handle), empty_(empty) {}
  ~OwnedHandle() {
    if (handle_ != empty_) Release{}(handle_);
  }
  OwnedHandle(OwnedHandle&& other) noexcept
      : handle_(std::exchange(other.handle_, other.empty_)), empty_(other.empty_) {}
  OwnedHandle& operator=(OwnedHandle&&) = delete;

  Handle get() const { return handle_; }

 private:
  Handle handle_;
  Handle empty_;
};

}  // namespace tandem::comm
