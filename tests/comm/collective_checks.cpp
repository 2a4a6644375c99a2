// Whole numbers in, and what is known of them out.
#include "tests/comm/collective_checks.h"

#include "tandem/core/dtype.h"
#include "tests/comm/collective_values.h"
#include "tests/comm/test_collectives.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

namespace tandem::test {

using namespace comm;

namespace {

constexpr DType kAll[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::average, ReduceOp::min, ReduceOp::max};

using Value = std::function<double(std::int64_t index)>;

Tensor tensor_of(const Shape& shape, DType dtype, const Value& value) {
  const Tensor result = Tensor::empty(shape, {.dtype = dtype});
  dispatch_all(dtype, "tensor_of", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const elements = Out(result).data<T>();
    for (std::int64_t i = 0; i < result.numel(); ++i) elements[i] = T(static_cast<float>(value(i)));
  });
  return result;
}

/// What a rank brings to a reduction.
double element_at(int rank, std::int64_t index, DType dtype, ReduceOp op) {
  return op == ReduceOp::product ? factor_at(rank, index) : value_at(rank, index, dtype);
}

/// Over all ranks, at one place.
double reduced_at(int ranks, std::int64_t index, DType dtype, ReduceOp op) {
  return reduced(ranks, op, [&](int rank) { return element_at(rank, index, dtype, op); });
}

/// Half a unit in the last place, for averages of whole numbers, which round once in the dtype, and for halves in f32
/// before that.
double rounding_of(DType dtype, ReduceOp op) {
  if (op != ReduceOp::average) return 0.0;
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11 + 0x1p-23;
    case DType::bf16:
      return 0x1p-8 + 0x1p-23;
    default:
      return 0.0;
  }
}

/// What a half dtype has for a number: sums of halves are rounded once.
double rounded_to(DType dtype, double value) {
  if (dtype == DType::f16) return static_cast<double>(static_cast<float>(Half(static_cast<float>(value))));
  if (dtype == DType::bf16) return static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(value))));
  return value;
}

/// A tensor at an odd place, between elements that must stay as they are.
class Guarded {
 public:
  Guarded(std::int64_t count, TensorOptions options)
      : border_(options.dtype == DType::u8 ? 253.0 : -9.0), whole_(Tensor::full({count + 2}, border_, options)) {}
  Tensor tensor() const { return whole_.narrow(0, 1, whole_.numel() - 2); }
  bool is_whole() const { return at(0) == border_ && at(whole_.numel() - 1) == border_; }

 private:
  double at(std::int64_t index) const { return whole_.narrow(0, index, 1).item(); }

  double border_;
  Tensor whole_;
};

/// Runs collectives of a group on tensors of a device, and notes the first fault.
class Checks {
 public:
  Checks(ProcessGroup& group, Device device)
      : group_(group), device_(device), rank_(group.rank()), ranks_(group.size()) {}

  void reductions(std::int64_t count, DType dtype, ReduceOp op);
  void moves(std::int64_t count, DType dtype);
  /// `rows(from, to)`: how many rows a rank has for another.
  void rows(std::int64_t count, const std::function<std::int64_t(int from, int to)>& rows);
  void async(std::int64_t count);
  void guarded_moves(std::int64_t count, DType dtype);
  void guarded_reductions(std::int64_t count, DType dtype);

  void add(const std::string& fault) {
    if (fault_.empty()) fault_ = fault;
  }
  void compare(const std::string& what, const Tensor& tensor, const Value& expected, double rounding = 0.0) {
    if (tensor.device() != device_)
      return add(fmt::format("{} of {}: is on {}", what, describe(tensor), tandem::name_of(tensor.device())));
    const auto values = tensor.to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double exact = expected(static_cast<std::int64_t>(i));
      const double wanted = rounding == 0.0 ? rounded_to(tensor.dtype(), exact) : exact;
      if (!(std::abs(values[i] - wanted) <= rounding * std::abs(wanted)))
        return add(fmt::format("{} of {}: element {} is {}, not {}", what, describe(tensor), i, values[i], wanted));
    }
  }
  void compare(const std::string& what, const Guarded& written, const Value& expected, double rounding = 0.0) {
    compare(what, written.tensor(), expected, rounding);
    if (!written.is_whole()) add(fmt::format("{}: an element beside the tensor was written", what));
  }
  const std::string& fault() const { return fault_; }

 private:
  Tensor numbers(const Shape& shape, DType dtype, ReduceOp op = ReduceOp::sum) const {
    return tensor_of(shape, dtype, [=, this](std::int64_t index) { return element_at(rank_, index, dtype, op); })
        .to(device_);
  }
  Tensor room(const Shape& shape, DType dtype) const {
    return Tensor::empty(shape, {.dtype = dtype, .device = device_});
  }
  Value value_of(int rank, DType dtype, std::int64_t first = 0) const {
    return [=](std::int64_t index) { return value_at(rank, first + index, dtype); };
  }
  /// Of equal parts: all ranks' first ones, and what each has for this rank.
  /// @{
  Value stacked(std::int64_t count, DType dtype) const {
    return [=](std::int64_t index) { return value_at(static_cast<int>(index / count), index % count, dtype); };
  }
  Value swapped(std::int64_t count, DType dtype) const {
    return [=, this](std::int64_t index) {
      return value_at(static_cast<int>(index / count), rank_ * count + index % count, dtype);
    };
  }
  /// @}
  Value reduction(DType dtype, ReduceOp op, std::int64_t first = 0) const {
    return [=, this](std::int64_t index) { return reduced_at(ranks_, first + index, dtype, op); };
  }

  ProcessGroup& group_;
  Device device_;
  int rank_, ranks_;
  std::string fault_;
};

void Checks::reductions(std::int64_t count, DType dtype, ReduceOp op) {
  const double rounding = rounding_of(dtype, op);
  const Value reduced = reduction(dtype, op);
  const Value own = [=, this](std::int64_t index) { return element_at(rank_, index, dtype, op); };
  const auto name = [&](std::string_view kind) { return fmt::format("{} {}", kind, name_of(op)); };
  const auto mine = [&] { return numbers({count}, dtype, op); };

  const Tensor in_place = mine(), later = mine(), input = mine(), result = room({count}, dtype);
  group_.all_reduce(Out(in_place), op);
  compare(name("all_reduce"), in_place, reduced, rounding);
  group_.all_reduce_async(Out(later), op)->wait();
  compare(name("all_reduce_async"), later, reduced, rounding);
  group_.all_reduce(input, Out(result), op);
  compare(name("all_reduce into another tensor"), result, reduced, rounding);
  compare(name("all_reduce's input"), input, own);

  for (int root = 0; root < ranks_; ++root) {
    const Tensor tensor = mine();
    group_.reduce(Out(tensor), root, op);
    compare(name("reduce"), tensor, root == rank_ ? reduced : own, root == rank_ ? rounding : 0.0);
  }
  const Tensor part = group_.reduce_scatter(numbers({ranks_, count}, dtype, op), op);
  compare(name("reduce_scatter"), part, reduction(dtype, op, rank_ * count), rounding);
}

void Checks::moves(std::int64_t count, DType dtype) {
  const Tensor mine = numbers({count}, dtype);
  compare("all_gather", group_.all_gather(mine), stacked(count, dtype));
  for (int root = 0; root < ranks_; ++root) {
    const Tensor tensor = numbers({count}, dtype);
    group_.broadcast(Out(tensor), root);
    compare("broadcast", tensor, value_of(root, dtype));
    const Tensor all = group_.gather(mine, root);
    if (all.defined() != (root == rank_)) add("gather: a result that is not the root's");
    if (root == rank_) compare("gather", all, stacked(count, dtype));
    const Tensor parts = root == rank_ ? numbers({ranks_, count}, dtype) : Tensor();
    const Tensor part = room({count}, dtype);
    group_.scatter(parts, Out(part), root);
    compare("scatter", part, value_of(root, dtype, rank_ * count));
  }
  compare("all_to_all", group_.all_to_all(numbers({ranks_, count}, dtype)), swapped(count, dtype));
  if (ranks_ == 1) return;
  const int next = (rank_ + 1) % ranks_, before = (rank_ + ranks_ - 1) % ranks_;
  const Tensor received = room({count}, dtype);
  const auto sending = group_.send_async(mine, next, 3);
  group_.receive(Out(received), before, 3);
  sending->wait();
  compare("receive", received, value_of(before, dtype));
}

void Checks::rows(std::int64_t count, const std::function<std::int64_t(int from, int to)>& rows) {
  const auto parts = group_.all_gather_rows(numbers({rows(rank_, ranks_ - 1), count}, DType::f32));
  for (int other = 0; other < ranks_; ++other) {
    const Tensor& part = parts[static_cast<std::size_t>(other)];
    if (part.shape() != Shape{rows(other, ranks_ - 1), count}) add("all_gather_rows: a wrong shape");
    compare("all_gather_rows", part, value_of(other, DType::f32));
  }
  std::vector<std::int64_t> rows_to;
  std::int64_t total = 0;
  for (int other = 0; other < ranks_; ++other) rows_to.push_back(rows(rank_, other)), total += rows_to.back();
  const Tensor result = group_.all_to_all_rows(numbers({total, count}, DType::i32), rows_to);
  std::vector<double> expected;
  for (int other = 0; other < ranks_; ++other) {
    std::int64_t first = 0;  // of the other's rows for this rank
    for (int before = 0; before < rank_; ++before) first += rows(other, before);
    for (std::int64_t i = 0; i < rows(other, rank_) * count; ++i)
      expected.push_back(value_at(other, first * count + i, DType::i32));
  }
  if (result.numel() != static_cast<std::int64_t>(expected.size()))
    return add("all_to_all_rows: too many elements, or too few");
  compare("all_to_all_rows", result, [&](std::int64_t index) { return expected[static_cast<std::size_t>(index)]; });
}

/// Several at once, ended in another order than begun.
void Checks::async(std::int64_t count) {
  const Tensor sum = numbers({count}, DType::f32), mine = numbers({count}, DType::f64);
  const Tensor all = room({ranks_, count}, DType::f64), part = room({count}, DType::f32);
  const Tensor parts = numbers({ranks_, count}, DType::f32), result = room({ranks_, count}, DType::f32);
  const Tensor from_last = numbers({count}, DType::i32);
  std::vector<std::unique_ptr<Work>> works;
  works.push_back(group_.all_reduce_async(Out(sum)));
  works.push_back(group_.all_gather_async(mine, Out(all)));
  works.push_back(group_.reduce_scatter_async(parts, Out(part)));
  works.push_back(group_.all_to_all_async(parts, Out(result)));
  works.push_back(group_.broadcast_async(Out(from_last), ranks_ - 1));
  if (rank_ % 2 == 1) std::reverse(works.begin(), works.end());
  for (const auto& work : works) work->wait();
  compare("all_reduce among others", sum, reduction(DType::f32, ReduceOp::sum));
  compare("all_gather among others", all, stacked(count, DType::f64));
  compare("reduce_scatter among others", part, reduction(DType::f32, ReduceOp::sum, rank_ * count));
  compare("all_to_all among others", result, swapped(count, DType::f32));
  compare("broadcast among others", from_last, value_of(ranks_ - 1, DType::i32));
}

void Checks::guarded_moves(std::int64_t count, DType dtype) {
  const TensorOptions options{.dtype = dtype, .device = device_};
  const Guarded part(count, options), all(ranks_ * count, options), input(ranks_ * count, options);
  const Tensor mine = numbers({count}, dtype);
  Out(input.tensor()).copy_from(numbers({ranks_ * count}, dtype));
  group_.all_gather_async(mine, Out(all.tensor()))->wait();
  compare("all_gather", all, stacked(count, dtype));
  const Tensor parts = input.tensor().as_strided({ranks_, count}, {count, 1}, 1);
  group_.all_to_all_async(parts, Out(all.tensor()))->wait();
  compare("all_to_all", all, swapped(count, dtype));
  for (int root = 0; root < ranks_; ++root) {
    group_.gather_async(mine, Out(all.tensor()), root)->wait();
    if (rank_ == root) compare("gather", all, stacked(count, dtype));
    group_.scatter_async(parts, Out(part.tensor()), root)->wait();
    compare("scatter", part, value_of(root, dtype, rank_ * count));
    Out(part.tensor()).copy_from(mine);
    group_.broadcast_async(Out(part.tensor()), root)->wait();
    compare("broadcast", part, value_of(root, dtype));
  }
}

void Checks::guarded_reductions(std::int64_t count, DType dtype) {
  const TensorOptions options{.dtype = dtype, .device = device_};
  const Guarded part(count, options), input(ranks_ * count, options);
  const Value sum = reduction(dtype, ReduceOp::sum);
  Out(part.tensor()).copy_from(numbers({count}, dtype));
  group_.all_reduce(Out(part.tensor()));
  compare("all_reduce", part, sum);
  Out(part.tensor()).copy_from(numbers({count}, dtype));
  group_.reduce(Out(part.tensor()), ranks_ - 1);
  compare("reduce", part, rank_ == ranks_ - 1 ? sum : value_of(rank_, dtype));
  Out(input.tensor()).copy_from(numbers({ranks_ * count}, dtype));
  group_.reduce_scatter_async(input.tensor().as_strided({ranks_, count}, {count, 1}, 1), Out(part.tensor()))->wait();
  compare("reduce_scatter", part, reduction(dtype, ReduceOp::sum, rank_ * count));
}

}  // namespace

std::string fault_of_moves(ProcessGroup& group, std::int64_t count) {
  Checks checks(group, Device{});
  checks.guarded_moves(count, DType::f32);
  return checks.fault();
}

std::string fault_of_odd_places(ProcessGroup& group, std::int64_t count, Device device) {
  Checks checks(group, device);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    checks.guarded_moves(count, dtype);
    if (dtype != DType::u8) checks.guarded_reductions(count, dtype);
  }
  return checks.fault();
}

std::string fault_of_all_collectives(ProcessGroup& group, std::int64_t count, Device device) {
  Checks checks(group, device);
  for (const DType dtype : kAll) {
    checks.moves(count, dtype);
    for (const ReduceOp op : kOps) {
      if (dtype == DType::u8 || (op == ReduceOp::average && !is_floating(dtype))) continue;
      checks.reductions(count, dtype, op);
    }
  }
  checks.rows(count, [](int from, int to) -> std::int64_t { return (from + to) % 3; });
  checks.async(count);
  group.barrier();
  return checks.fault();
}

std::string fault_of_uneven_rows(ProcessGroup& group, std::int64_t count, Device device) {
  Checks checks(group, device);
  const int last = group.size() - 1;
  // All of the first rank's go to the last, which has most of what there is; others have a row for each other, or none.
  checks.rows(count, [=](int from, int to) -> std::int64_t {
    if (from == 0) return to == last ? 40 : 0;
    return from == last && to == 0 ? 3 : (from + to) % 2;
  });
  return checks.fault();
}

std::string fault_of_split(ProcessGroup& group, Device device) {
  Checks checks(group, device);
  const int rank = group.rank(), ranks = group.size();
  // Even and odd ranks, numbered backwards; and all but the last one.
  const auto half = group.split(rank % 2, -rank);
  const auto most = group.split(rank == ranks - 1 ? -1 : 4);
  if ((most == nullptr) != (rank == ranks - 1)) checks.add("split: a group for a negative color, or none for another");
  const int half_size = (ranks + (rank % 2 == 0 ? 1 : 0)) / 2;
  if (half->size() != half_size || half->rank() != half_size - 1 - rank / 2) checks.add("split: wrong numbers");
  const auto full = [&](std::int64_t count) { return Tensor::full({count}, rank, {.device = device}); };
  const Tensor in_half = full(3), in_most = full(2), in_all = full(4);
  auto half_work = half->all_reduce_async(Out(in_half));
  auto all_work = group.all_reduce_async(Out(in_all), ReduceOp::max);
  if (most) most->all_reduce(Out(in_most));
  all_work->wait();
  half_work->wait();
  double half_sum = 0.0, most_sum = 0.0;
  for (int other = 0; other < ranks; ++other) {
    if (other % 2 == rank % 2) half_sum += other;
    if (other < ranks - 1) most_sum += other;
  }
  checks.compare("all_reduce of half", in_half, [=](std::int64_t) { return half_sum; });
  checks.compare("all_reduce of all", in_all, [=](std::int64_t) { return ranks - 1.0; });
  if (most) checks.compare("all_reduce of most", in_most, [=](std::int64_t) { return most_sum; });
  checks.add(fault_of_all_collectives(*half, 5, device));
  return checks.fault();
}

}  // namespace tandem::test
