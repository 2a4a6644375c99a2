// Checks; tensors as flat memory; half types by way of f32.
#include "tandem/comm/tensor_collective.h"

#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/cast/cast.h"

#include <utility>

namespace tandem::comm {

namespace {

void check_tensor(const TensorCollective& c, const Tensor& tensor, std::int64_t elements) {
  const std::string_view name = name_of(c.kind);
  require(tensor.is_dense(), "{}: {} has strides {}; call contiguous() first", name, tensor, tensor.strides());
  require(tensor.numel() == elements, "{}: {} has {} elements, and {} are expected", name, tensor, tensor.numel(),
          elements);
}

void check_reduction(const TensorCollective& c, const Tensor& tensor) {
  const std::string_view name = name_of(c.kind);
  require(tensor.dtype() != DType::u8, "{}: {} has no reduction; use i32, i64 or a floating dtype", name, tensor);
  require(c.op != ReduceOp::average || is_floating(tensor.dtype()),
          "{}: average needs a floating dtype, got {}; use sum", name, tensor);
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return sum;
}

/// Elements of input and output, by the table of Collective.
std::pair<std::int64_t, std::int64_t> elements_of(const TensorCollective& c, int rank) {
  const std::int64_t all = sum_of(c.counts);
  const std::int64_t mine = c.counts[c.counts.size() > 1 ? static_cast<std::size_t>(rank) : 0];
  switch (c.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return {mine, all};
    case CollectiveKind::scatter:
    case CollectiveKind::reduce_scatter:
      return {all, mine};
    case CollectiveKind::all_to_all:
      return {all, sum_of(c.receive_counts)};
    default:
      return {mine, mine};
  }
}

Collective flat(const TensorCollective& c) {
  const auto& [input, output] = c.tensors;
  Collective result{.kind = c.kind,
                    .dtype = (input.defined() ? input : output).dtype(),
                    .op = c.op,
                    .peer = c.peer,
                    .tag = c.tag,
                    .counts = c.counts,
                    .receive_counts = c.receive_counts};
  if (input.defined()) {
    result.input = input.raw_data();
    result.input_owner = input.detach();
  }
  if (output.defined()) {
    // Written by permission of the Out that the caller gave.
    result.output = const_cast<void*>(output.raw_data());
    result.output_owner = output.detach();
  }
  return result;
}

bool goes_through_f32(Backend& backend, const TensorCollective& c) {
  const Tensor& tensor = c.tensors.input.defined() ? c.tensors.input : c.tensors.output;
  return is_reduction(c.kind) && is_half(tensor.dtype()) && !backend.reduces_half(c.kind, c.op);
}

/// All elements of a dense tensor, in the order in which they lie in memory.
Tensor flattened(const Tensor& tensor) { return tensor.detach().as_strided({tensor.numel()}, {1}, tensor.offset()); }

/// The same with f32 copies: in place where the collective has as many elements in as out.
TensorCollective widened(const TensorCollective& c) {
  const MemoryTagScope scope(MemoryTag::comm);
  TensorCollective wide = c;
  const Tensor& input = c.tensors.input;
  const Device device = input.device();
  const Out copy(Tensor::empty({input.numel()}, {.device = device}));
  kernels::cast(flattened(input), copy);
  wide.tensors.input = copy;
  if (!c.tensors.output.defined()) return wide;
  const bool in_place = c.kind != CollectiveKind::reduce_scatter;
  wide.tensors.output = in_place ? copy.tensor() : Tensor::empty({c.tensors.output.numel()}, {.device = device});
  return wide;
}

void round_to_half(const Tensor& wide, const Tensor& output) {
  if (output.defined()) kernels::cast(wide, Out(flattened(output)));
}

/// Reduction of a half tensor: the work on its f32 copy, then the way back.
class HalfWork final : public Work {
 public:
  HalfWork(Tensor output, Tensor wide, std::unique_ptr<Work> work)
      : output_(std::move(output)), wide_(std::move(wide)), work_(std::move(work)) {}

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
    round_to_half(wide_, output_);
    work_.reset();
    wide_ = Tensor();
  }

  Tensor output_, wide_;
  std::unique_ptr<Work> work_;
};

}  // namespace

void check_collective(const TensorCollective& c, const Place& place) {
  const std::string_view name = name_of(c.kind);
  const auto& [input, output] = c.tensors;
  require(input.defined() || output.defined(), "{}: the tensor is undefined", name);
  require(c.peer >= 0 && c.peer < place.size, "{}: {} {} is not a rank of a group of {}", name,
          is_message(c.kind) ? "rank" : "root", c.peer, place.size);
  require(!is_message(c.kind) || c.peer != place.rank, "{}: rank {} is this one; a message goes to another", name,
          c.peer);
  require(c.tag >= 0 && c.tag <= kMaxMessageTag, "{}: tag {}; give one from 0 to {}", name, c.tag, kMaxMessageTag);
  const auto [elements_in, elements_out] = elements_of(c, place.rank);
  if (input.defined()) check_tensor(c, input, elements_in);
  if (output.defined()) check_tensor(c, output, elements_out);
  if (is_reduction(c.kind)) check_reduction(c, input);
  if (input.defined() && output.defined()) {
    require(input.dtype() == output.dtype() && input.device() == output.device(),
            "{}: the result, {} on {}, must have the input's dtype and device: {} on {}", name, output, output.device(),
            input, input.device());
  }
  const bool writes_input = input.defined() && output.defined() && input.is_same(output);
  require(!input.defined() || writes_input || !autograd::should_record({input}),
          "{}: {} would lose its gradient: give its detach()", name, input);
}

std::unique_ptr<Work> start_collective(Backend& backend, const TensorCollective& c) {
  if (!goes_through_f32(backend, c)) return backend.start(flat(c));
  const TensorCollective wide = widened(c);
  return std::make_unique<HalfWork>(c.tensors.output.defined() ? c.tensors.output.detach() : Tensor(),
                                    wide.tensors.output, backend.start(flat(wide)));
}

void run_collective(Backend& backend, const TensorCollective& c) {
  if (!goes_through_f32(backend, c)) return backend.run(flat(c));
  const TensorCollective wide = widened(c);
  backend.run(flat(wide));
  round_to_half(wide.tensors.output, c.tensors.output);
}

}  // namespace tandem::comm
