// ProcessGroup: checks arguments, brings half types to f32 and back, and hands flat memory to the backend.
#include "tandem/comm/process_group.h"

#include "tandem/autograd/record.h"
#include "tandem/comm/backends/flat_math.h"

namespace tandem::comm {

namespace {

void check_tensor(std::string_view operation, const Tensor& tensor) {
  require(tensor.defined(), "{}: the tensor is undefined", operation);
  require(tensor.is_dense(), "{}: {} has strides {}; call contiguous() first", operation, describe(tensor),
          to_string(tensor.strides()));
}

void check_reduction(const Tensor& tensor, ReduceOp op) {
  check_tensor("all_reduce", tensor);
  require(tensor.dtype() != DType::u8, "all_reduce: {} has no reduction; use i32, i64 or a floating dtype",
          describe(tensor));
  require(op != ReduceOp::average || is_floating(tensor.dtype()),
          "all_reduce: average needs a floating dtype, got {}; use sum", describe(tensor));
}

CollectiveBuffer buffer_of(const Out& out) { return {out.raw_data(), out.numel(), out.dtype(), out.tensor().detach()}; }

Out float_copy(const Tensor& tensor) {
  const MemoryTagScope scope(MemoryTag::comm);
  Out result(Tensor::empty({tensor.numel()}));
  half_to_float(tensor.raw_data(), tensor.dtype(), result.data<float>(), tensor.numel());
  return result;
}

void round_to_half(const Tensor& wide, const Out& out) {
  float_to_half(wide.data<float>(), out.raw_data(), out.dtype(), out.numel());
}

/// Reduction of a half tensor: the work on its f32 copy, then the way back.
class HalfWork final : public Work {
 public:
  HalfWork(Out out, Tensor wide, std::unique_ptr<Work> work)
      : out_(std::move(out)), wide_(std::move(wide)), work_(std::move(work)) {}

  bool poll() override {
    if (work_ && work_->poll()) finish();
    return work_ == nullptr;
  }
  void wait() override {
    if (!work_) return;
    work_->wait();
    finish();
  }

 private:
  void finish() {
    round_to_half(wide_, out_);
    work_.reset();
    wide_ = Tensor();
  }

  Out out_;
  Tensor wide_;
  std::unique_ptr<Work> work_;
};

}  // namespace

void ProcessGroup::all_reduce(const Out& tensor, ReduceOp op) {
  check_reduction(tensor, op);
  staging_.start_all();
  if (!backend_->takes(tensor.device())) {
    const Out host(HostStaging::host_copy(tensor));
    all_reduce(host, op);
    return tensor.copy_from(host);
  }
  Backend& backend = backend_->on(tensor.device());
  if (!is_half(tensor.dtype()) || backend.reduces_half()) return backend.all_reduce(buffer_of(tensor), op);
  const Out wide = float_copy(tensor);
  backend.all_reduce(buffer_of(wide), op);
  round_to_half(wide, tensor);
}

std::unique_ptr<Work> ProcessGroup::all_reduce_async(const Out& tensor, ReduceOp op) {
  check_reduction(tensor, op);
  if (!backend_->takes(tensor.device()))
    return staging_.enqueue(tensor, [this, op](const Out& host) { return start_all_reduce(host, op); });
  staging_.start_all();
  return start_all_reduce(tensor, op);
}

std::unique_ptr<Work> ProcessGroup::start_all_reduce(const Out& tensor, ReduceOp op) {
  Backend& backend = backend_->on(tensor.device());
  if (!is_half(tensor.dtype()) || backend.reduces_half()) return backend.start_all_reduce(buffer_of(tensor), op);
  const Out wide = float_copy(tensor);
  auto work = backend.start_all_reduce(buffer_of(wide), op);
  return std::make_unique<HalfWork>(tensor, wide, std::move(work));
}

void ProcessGroup::broadcast(const Out& tensor, int root) {
  check_tensor("broadcast", tensor);
  require(root >= 0 && root < size(), "broadcast: root {} is not a rank of a group of {}", root, size());
  staging_.start_all();
  if (!backend_->takes(tensor.device())) {
    const Out host(HostStaging::host_copy(tensor));
    broadcast(host, root);
    return tensor.copy_from(host);
  }
  const CollectiveBuffer buffer = buffer_of(tensor);
  backend_->on(tensor.device()).broadcast(buffer.data, buffer.bytes(), root);
}

Tensor ProcessGroup::all_gather(const Tensor& tensor) {
  check_tensor("all_gather", tensor);
  require(tensor.rank() < kMaxRank, "all_gather: {} has no room for one more dimension", describe(tensor));
  require(!autograd::should_record({tensor}), "all_gather: {} would lose its gradient: gather its detach()",
          describe(tensor));
  staging_.start_all();
  if (!backend_->takes(tensor.device())) return all_gather(tensor.to(Device{})).to(tensor.device());
  const Tensor mine = tensor.contiguous();
  Shape shape{size()};
  for (const std::int64_t extent : mine.shape()) shape.push_back(extent);
  const Out all(Tensor::empty(shape, mine.options()));
  backend_->on(tensor.device()).all_gather(mine.raw_data(), mine.numel() * size_of(mine.dtype()), all.raw_data());
  return all;
}

void ProcessGroup::barrier() {
  staging_.start_all();
  backend_->barrier();
}

std::vector<std::string> ProcessGroup::all_gather_bytes(std::string_view mine) {
  staging_.start_all();
  return backend_->all_gather_bytes(mine);
}

}  // namespace tandem::comm
