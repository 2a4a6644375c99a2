// What a ProcessGroup is made of: raw collectives on flat memory, one implementation per backend.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

enum class ReduceOp : std::uint8_t { sum, average, min, max };

constexpr std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::average:
      return "average";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "";
}

/// An operation under way. Dropping it before it is complete gives the operation up on this rank: that is for errors
/// only, as the other ranks will wait for it.
class Work {
 public:
  virtual ~Work() = default;

  /// Moves it on as far as possible without waiting; true once it is complete on this rank.
  virtual bool poll() = 0;

  /// Returns once it is complete on this rank.
  virtual void wait() = 0;
};

/// Where a rank stands among all ranks and among those of its host. `node` is the lowest rank on the same host.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
};

/// Elements in memory that belong to an operation until it is complete.
struct CollectiveBuffer {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  Tensor owner;  // whose elements they are, all of them, in their order in memory; keeps `data` alive

  std::int64_t bytes() const { return count * size_of(dtype); }
};

/// Arguments are checked by ProcessGroup. Reductions come as f64, f32, i64 or i32, as f16 and bf16 only where
/// reduces_half() says so, and `average` only for floats.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  virtual Place place() const = 0;
  /// True if it works on memory of this device; tensors of other devices are brought to host memory first.
  virtual bool takes(Device device) const { return device.type == DeviceType::cpu; }
  /// What works on memory of a device that this backend takes: itself, or another backend that it holds.
  virtual Backend& on(Device) { return *this; }
  virtual bool reduces_half() const { return false; }
  virtual std::unique_ptr<Work> start_all_reduce(const CollectiveBuffer& buffer, ReduceOp op) = 0;
  virtual void all_reduce(const CollectiveBuffer& buffer, ReduceOp op) { start_all_reduce(buffer, op)->wait(); }
  virtual void broadcast(void* data, std::int64_t bytes, int root) = 0;
  /// `all` has room for size() * bytes.
  virtual void all_gather(const void* mine, std::int64_t bytes, void* all) = 0;
  virtual std::vector<std::string> all_gather_bytes(std::string_view mine) = 0;
  virtual void barrier() = 0;
  virtual std::int64_t all_reduce_bytes_sent() const { return 0; }
};

/// The backend of a group of one.
std::unique_ptr<Backend> make_self_backend();

}  // namespace tandem::comm
