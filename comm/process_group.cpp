// ProcessGroup: from tensors to collectives, over host memory where the backend needs it.
#include "tandem/comm/process_group.h"

#include "tandem/autograd/record.h"
#include "tandem/comm/doctor/watched_backend.h"
#include "tandem/comm/progress/progress_backend.h"
#include "tandem/comm/progress/progress_choice.h"
#include "tandem/core/describe.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tandem::comm {

namespace {

Shape with_front(std::int64_t extent, const Shape& rest) {
  Shape shape{extent};
  for (const std::int64_t each : rest) shape.push_back(each);
  return shape;
}

Shape without_front(const Shape& shape) { return Shape(std::span<const std::int64_t>(shape.begin() + 1, shape.end())); }

/// Elements of a row: of all dimensions but the first.
std::int64_t row_elements(CollectiveKind kind, const Tensor& tensor) {
  require(tensor.defined(), "{}: the tensor is undefined", name_of(kind));
  require(tensor.rank() > 0, "{}: {} has no rows; it needs a first dimension", name_of(kind), tensor);
  return element_count(without_front(tensor.shape()));
}

/// The elements in row-major order.
Tensor row_major(CollectiveKind kind, const Tensor& tensor) {
  require(!autograd::should_record({tensor}), "{}: {} would lose its gradient: give its detach()", name_of(kind),
          tensor);
  return tensor.detach().contiguous();
}

}  // namespace

// Starting and running ------------------------------------------------------------------------------------------------

std::unique_ptr<Work> ProcessGroup::start(const TensorCollective& collective) {
  check_collective(collective, place());
  const Device device = collective.tensors.device();
  if (!backend_->takes(device, collective.kind)) {
    return staging_.enqueue(collective.tensors, [this, collective](const StagedTensors& host) {
      TensorCollective staged = collective;
      staged.tensors = host;
      return start_collective(backend_->on(Device{}), staged);
    });
  }
  staging_.start_all();
  return start_collective(backend_->on(device), collective);
}

void ProcessGroup::run(const TensorCollective& collective) {
  check_collective(collective, place());
  staging_.start_all();
  const Device device = collective.tensors.device();
  if (backend_->takes(device, collective.kind)) return run_collective(backend_->on(device), collective);
  HostStaging::run(collective.tensors, [&](const StagedTensors& host) {
    TensorCollective staged = collective;
    staged.tensors = host;
    run_collective(backend_->on(Device{}), staged);
  });
}

std::vector<std::int64_t> ProcessGroup::for_each_rank(std::int64_t count) const {
  return std::vector<std::int64_t>(static_cast<std::size_t>(size()), count);
}

std::int64_t ProcessGroup::part_of(CollectiveKind kind, const Tensor& tensor) const {
  const std::int64_t part = row_elements(kind, tensor);
  require(tensor.size(0) == size(), "{}: {} has {} parts for a group of {} ranks; its first extent must be that",
          name_of(kind), tensor, tensor.size(0), size());
  return part;
}

// To all --------------------------------------------------------------------------------------------------------------

namespace {

TensorCollective all_reduction(const Tensor& tensor, const Tensor& result, ReduceOp op) {
  require(tensor.defined() && result.defined(), "all_reduce: the tensor is undefined");
  return {.kind = CollectiveKind::all_reduce, .tensors = {tensor, result}, .op = op, .counts = {tensor.numel()}};
}

TensorCollective broadcast_of(const Tensor& tensor, int root, bool is_root) {
  require(tensor.defined(), "broadcast: the tensor is undefined");
  return {.kind = CollectiveKind::broadcast,
          .tensors = {is_root ? tensor : Tensor(), tensor},
          .peer = root,
          .counts = {tensor.numel()}};
}

}  // namespace

void ProcessGroup::all_reduce(const Out& tensor, ReduceOp op) { run(all_reduction(tensor, tensor, op)); }

std::unique_ptr<Work> ProcessGroup::all_reduce_async(const Out& tensor, ReduceOp op) {
  return start(all_reduction(tensor, tensor, op));
}

void ProcessGroup::all_reduce(const Tensor& tensor, const Out& result, ReduceOp op) {
  run(all_reduction(tensor, result, op));
}

std::unique_ptr<Work> ProcessGroup::all_reduce_async(const Tensor& tensor, const Out& result, ReduceOp op) {
  return start(all_reduction(tensor, result, op));
}

std::unique_ptr<Work> ProcessGroup::launched_all_reduces(Device device, std::int64_t bytes) {
  return backend_->on(device).launched({.kind = CollectiveKind::all_reduce, .counts = {bytes}});
}

void ProcessGroup::broadcast(const Out& tensor, int root) { run(broadcast_of(tensor, root, root == rank())); }

std::unique_ptr<Work> ProcessGroup::broadcast_async(const Out& tensor, int root) {
  return start(broadcast_of(tensor, root, root == rank()));
}

Tensor ProcessGroup::all_gather(const Tensor& tensor) {
  require(tensor.defined(), "all_gather: the tensor is undefined");
  require(tensor.rank() < kMaxRank, "all_gather: {} has no room for one more dimension", tensor);
  const Tensor mine = row_major(CollectiveKind::all_gather, tensor);
  const Out all(Tensor::empty(with_front(size(), tensor.shape()), mine.options()));
  run({.kind = CollectiveKind::all_gather, .tensors = {mine, all}, .counts = for_each_rank(mine.numel())});
  return all;
}

std::unique_ptr<Work> ProcessGroup::all_gather_async(const Tensor& tensor, const Out& all) {
  require(tensor.defined() && all.defined(), "all_gather: the tensor is undefined");
  return start({.kind = CollectiveKind::all_gather, .tensors = {tensor, all}, .counts = for_each_rank(tensor.numel())});
}

std::vector<Tensor> ProcessGroup::all_gather_rows(const Tensor& tensor) {
  const std::int64_t row = row_elements(CollectiveKind::all_gather, tensor);
  const auto rows = all_gather(Tensor::from(std::vector{tensor.size(0)}, {1})).to_vector<std::int64_t>();
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  for (const std::int64_t each : rows) {
    counts.push_back(each * row);
    total += each;
  }
  Shape shape = tensor.shape();
  shape[0] = total;
  const Tensor mine = row_major(CollectiveKind::all_gather, tensor);
  const Out all(Tensor::empty(shape, mine.options()));
  run({.kind = CollectiveKind::all_gather, .tensors = {mine, all}, .counts = counts});
  std::vector<Tensor> result;
  std::int64_t at = 0;
  for (const std::int64_t each : rows) {
    result.push_back(all.tensor().narrow(0, at, each));
    at += each;
  }
  return result;
}

// To one, and from one ------------------------------------------------------------------------------------------------

namespace {

TensorCollective reduction(const Tensor& tensor, int root, bool is_root, ReduceOp op) {
  require(tensor.defined(), "reduce: the tensor is undefined");
  return {.kind = CollectiveKind::reduce,
          .tensors = {tensor, is_root ? tensor : Tensor()},
          .op = op,
          .peer = root,
          .counts = {tensor.numel()}};
}

}  // namespace

void ProcessGroup::reduce(const Out& tensor, int root, ReduceOp op) {
  run(reduction(tensor, root, root == rank(), op));
}

std::unique_ptr<Work> ProcessGroup::reduce_async(const Out& tensor, int root, ReduceOp op) {
  return start(reduction(tensor, root, root == rank(), op));
}

Tensor ProcessGroup::gather(const Tensor& tensor, int root) {
  require(tensor.defined(), "gather: the tensor is undefined");
  require(tensor.rank() < kMaxRank, "gather: {} has no room for one more dimension", tensor);
  const Tensor mine = row_major(CollectiveKind::gather, tensor);
  const Tensor all = root == rank() ? Tensor::empty(with_front(size(), tensor.shape()), mine.options()) : Tensor();
  run({.kind = CollectiveKind::gather, .tensors = {mine, all}, .peer = root, .counts = for_each_rank(mine.numel())});
  return all;
}

std::unique_ptr<Work> ProcessGroup::gather_async(const Tensor& tensor, const Out& all, int root) {
  require(tensor.defined() && (all.defined() || root != rank()), "gather: the tensor is undefined");
  return start({.kind = CollectiveKind::gather,
                .tensors = {tensor, root == rank() ? all.tensor() : Tensor()},
                .peer = root,
                .counts = for_each_rank(tensor.numel())});
}

void ProcessGroup::scatter(const Tensor& all, const Out& mine, int root) { scatter_async(all, mine, root)->wait(); }

std::unique_ptr<Work> ProcessGroup::scatter_async(const Tensor& all, const Out& mine, int root) {
  require(mine.defined() && (all.defined() || root != rank()), "scatter: the tensor is undefined");
  return start({.kind = CollectiveKind::scatter,
                .tensors = {root == rank() ? all : Tensor(), mine},
                .peer = root,
                .counts = for_each_rank(mine.numel())});
}

// A part for each -----------------------------------------------------------------------------------------------------

Tensor ProcessGroup::reduce_scatter(const Tensor& tensor, ReduceOp op) {
  const std::int64_t part = part_of(CollectiveKind::reduce_scatter, tensor);
  const Tensor dense = row_major(CollectiveKind::reduce_scatter, tensor);
  const Out mine(Tensor::empty(without_front(tensor.shape()), dense.options()));
  run({.kind = CollectiveKind::reduce_scatter, .tensors = {dense, mine}, .op = op, .counts = for_each_rank(part)});
  return mine;
}

std::unique_ptr<Work> ProcessGroup::reduce_scatter_async(const Tensor& tensor, const Out& mine, ReduceOp op) {
  require(tensor.defined() && mine.defined(), "reduce_scatter: the tensor is undefined");
  return start({.kind = CollectiveKind::reduce_scatter,
                .tensors = {tensor, mine},
                .op = op,
                .counts = for_each_rank(mine.numel())});
}

Tensor ProcessGroup::all_to_all(const Tensor& tensor) {
  const auto counts = for_each_rank(part_of(CollectiveKind::all_to_all, tensor));
  const Tensor dense = row_major(CollectiveKind::all_to_all, tensor);
  const Out result(Tensor::empty(tensor.shape(), dense.options()));
  run({.kind = CollectiveKind::all_to_all, .tensors = {dense, result}, .counts = counts, .receive_counts = counts});
  return result;
}

std::unique_ptr<Work> ProcessGroup::all_to_all_async(const Tensor& tensor, const Out& result) {
  const auto counts = for_each_rank(part_of(CollectiveKind::all_to_all, tensor));
  require(result.defined(), "all_to_all: the tensor is undefined");
  return start(
      {.kind = CollectiveKind::all_to_all, .tensors = {tensor, result}, .counts = counts, .receive_counts = counts});
}

Tensor ProcessGroup::all_to_all_rows(const Tensor& tensor, const std::vector<std::int64_t>& rows_to) {
  const std::int64_t row = row_elements(CollectiveKind::all_to_all, tensor);
  require(rows_to.size() == static_cast<std::size_t>(size()), "all_to_all: rows for {} ranks in a group of {}",
          rows_to.size(), size());
  std::int64_t sent = 0;
  for (const std::int64_t rows : rows_to) {
    require(rows >= 0, "all_to_all: {} rows for a rank", rows);
    sent += rows;
  }
  require(sent == tensor.size(0), "all_to_all: {} has {} rows, and {} are to be sent", tensor, tensor.size(0), sent);
  const auto rows_from = all_to_all(Tensor::from(rows_to, {size()})).to_vector<std::int64_t>();
  std::vector<std::int64_t> counts, receive_counts;
  std::int64_t received = 0;
  for (std::size_t rank = 0; rank < rows_to.size(); ++rank) {
    counts.push_back(rows_to[rank] * row);
    receive_counts.push_back(rows_from[rank] * row);
    received += rows_from[rank];
  }
  Shape shape = tensor.shape();
  shape[0] = received;
  const Tensor dense = row_major(CollectiveKind::all_to_all, tensor);
  const Out result(Tensor::empty(shape, dense.options()));
  run({.kind = CollectiveKind::all_to_all,
       .tensors = {dense, result},
       .counts = counts,
       .receive_counts = receive_counts});
  return result;
}

// Messages ------------------------------------------------------------------------------------------------------------

void ProcessGroup::send(const Tensor& tensor, int to, int tag) { send_async(tensor, to, tag)->wait(); }

std::unique_ptr<Work> ProcessGroup::send_async(const Tensor& tensor, int to, int tag) {
  require(tensor.defined(), "send: the tensor is undefined");
  return start(
      {.kind = CollectiveKind::send, .tensors = {tensor, {}}, .peer = to, .tag = tag, .counts = {tensor.numel()}});
}

void ProcessGroup::receive(const Out& tensor, int from, int tag) { receive_async(tensor, from, tag)->wait(); }

std::unique_ptr<Work> ProcessGroup::receive_async(const Out& tensor, int from, int tag) {
  require(tensor.defined(), "receive: the tensor is undefined");
  return start(
      {.kind = CollectiveKind::receive, .tensors = {{}, tensor}, .peer = from, .tag = tag, .counts = {tensor.numel()}});
}

// Memory --------------------------------------------------------------------------------------------------------------

Tensor ProcessGroup::shared_zeros(const Shape& shape, DType dtype) {
  staging_.start_all();
  std::int64_t bytes = 0;
  require(!__builtin_mul_overflow(element_count(shape), size_of(dtype), &bytes),
          "shared_zeros: shape {} has too many elements", shape);
  if (auto storage = backend_->allocate_shared(bytes)) return Tensor::on(std::move(storage), shape, dtype);
  return Tensor::zeros(shape, {.dtype = dtype});
}

// Others --------------------------------------------------------------------------------------------------------------

void ProcessGroup::barrier() {
  staging_.start_all();
  backend_->run({.kind = CollectiveKind::barrier});
}

MessageCosts ProcessGroup::measure_message_costs() {
  staging_.start_all();
  const std::optional<MessageCosts> costs = backend_->measure_costs();
  require(costs.has_value(), "measure_message_costs: backend {} does not send messages itself; native and threads do",
          name());
  return *costs;
}

void ProcessGroup::use_message_costs(const MessageCosts& costs) {
  staging_.start_all();
  backend_->use_costs(costs);
}

void ProcessGroup::set_progress(std::string_view how) {
  staging_.start_all();
  if (auto* const threaded = dynamic_cast<ProgressBackend*>(backend_.get())) {
    require(threaded->is_idle(), "set_progress: works are under way; wait for them first");
    backend_ = ProgressBackend::without_thread(
        std::unique_ptr<ProgressBackend>(static_cast<ProgressBackend*>(backend_.release())));
  }
  const ProgressChoice choice = choose_progress(how, *backend_);
  if (choice.by_thread) backend_ = std::make_unique<ProgressBackend>(std::move(backend_), !choice.has_spare_cores);
  if (!choice.notice.empty()) notice_ += (notice_.empty() ? "" : "; ") + choice.notice;
}

std::string_view ProcessGroup::progress() const {
  if (!backend_->moves_by_polls()) return "";
  return dynamic_cast<const ProgressBackend*>(backend_.get()) != nullptr ? "thread" : "poll";
}

void ProcessGroup::watch(const WatchOptions& options) {
  staging_.start_all();
  std::string more;
  backend_ = comm::watch(std::move(backend_), options, more);
  if (!more.empty()) notice_ += (notice_.empty() ? "" : "; ") + more;
}

std::vector<std::string> ProcessGroup::all_gather_bytes(std::string_view mine) {
  staging_.start_all();
  return backend_->all_gather_bytes(mine);
}

std::unique_ptr<ProcessGroup> ProcessGroup::split(int color, int key) {
  const auto wishes = all_gather(Tensor::from(std::vector<std::int64_t>{color, key}, {2})).to_vector<std::int64_t>();
  if (color < 0) return nullptr;
  std::vector<std::pair<std::int64_t, int>> order;  // by key, then rank
  for (int rank = 0; rank < size(); ++rank) {
    const auto at = 2 * static_cast<std::size_t>(rank);
    if (wishes[at] == color) order.emplace_back(wishes[at + 1], rank);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> members;
  for (const auto& [its_key, rank] : order) members.push_back(rank);
  auto part = backend_->subgroup(members);
  std::string notice = part->notice();
  return std::make_unique<ProcessGroup>(std::move(part), std::move(notice));
}

}  // namespace tandem::comm
