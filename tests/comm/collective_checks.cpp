// Whole numbers in, and what is known of them out.
#include "tests/comm/collective_checks.h"

#include "tandem/core/dtype.h"
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

/// Different on each rank and at each place, small enough that sums over 32 ranks are exact in every dtype, and that u8
/// has it.
double value_at(int rank, std::int64_t index) { return static_cast<double>((rank * 7 + index * 13) % 5); }

/// Of products: powers of two, few of which are not 1.
double factor_at(int rank, std::int64_t index) { return (rank + index) % 11 == 0 ? 2.0 : 1.0; }

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

Tensor numbers_of(int rank, const Shape& shape, DType dtype, ReduceOp op = ReduceOp::sum) {
  return tensor_of(shape, dtype, [=](std::int64_t index) {
    return op == ReduceOp::product ? factor_at(rank, index) : value_at(rank, index);
  });
}

/// Over all ranks, at one place.
double reduced_at(int ranks, std::int64_t index, ReduceOp op) {
  return reduced(ranks, op,
                 [&](int rank) { return op == ReduceOp::product ? factor_at(rank, index) : value_at(rank, index); });
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

/// "" or what is wrong with the elements.
std::string compare(const std::string& what, const Tensor& tensor, const Value& expected, double rounding = 0.0) {
  const auto values = tensor.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wanted = expected(static_cast<std::int64_t>(i));
    if (!(std::abs(values[i] - wanted) <= rounding * std::abs(wanted)))
      return fmt::format("{} of {}: element {} is {}, not {}", what, describe(tensor), i, values[i], wanted);
  }
  return "";
}

/// Notes the first fault.
class Faults {
 public:
  void add(const std::string& fault) {
    if (first_.empty()) first_ = fault;
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

void check_reductions(ProcessGroup& group, std::int64_t count, DType dtype, ReduceOp op, Faults& faults) {
  const int ranks = group.size();
  const double rounding = rounding_of(dtype, op);
  const Value reduced = [=](std::int64_t index) { return reduced_at(ranks, index, op); };
  const Value own = [&](std::int64_t index) {
    return op == ReduceOp::product ? factor_at(group.rank(), index) : value_at(group.rank(), index);
  };
  const auto name = [&](std::string_view kind) { return fmt::format("{} {}", kind, name_of(op)); };
  const auto mine = [&] { return numbers_of(group.rank(), {count}, dtype, op); };

  const Tensor in_place = mine(), later = mine(), input = mine(), result = Tensor::empty({count}, {.dtype = dtype});
  group.all_reduce(Out(in_place), op);
  faults.add(compare(name("all_reduce"), in_place, reduced, rounding));
  group.all_reduce_async(Out(later), op)->wait();
  faults.add(compare(name("all_reduce_async"), later, reduced, rounding));
  group.all_reduce(input, Out(result), op);
  faults.add(compare(name("all_reduce into another tensor"), result, reduced, rounding));
  faults.add(compare(name("all_reduce's input"), input, own));

  for (int root = 0; root < ranks; ++root) {
    const Tensor tensor = mine();
    group.reduce(Out(tensor), root, op);
    faults.add(
        compare(name("reduce"), tensor, root == group.rank() ? reduced : own, root == group.rank() ? rounding : 0.0));
  }

  const Tensor parts = numbers_of(group.rank(), {ranks, count}, dtype, op);
  const Tensor part = group.reduce_scatter(parts, op);
  faults.add(compare(
      name("reduce_scatter"), part,
      [&](std::int64_t index) { return reduced_at(ranks, group.rank() * count + index, op); }, rounding));
}

void check_moves(ProcessGroup& group, std::int64_t count, DType dtype, Faults& faults) {
  const int ranks = group.size(), rank = group.rank();
  const Tensor mine = numbers_of(rank, {count}, dtype);
  const Value stacked = [=](std::int64_t index) { return value_at(static_cast<int>(index / count), index % count); };
  faults.add(compare("all_gather", group.all_gather(mine), stacked));
  for (int root = 0; root < ranks; ++root) {
    const Tensor tensor = numbers_of(rank, {count}, dtype);
    group.broadcast(Out(tensor), root);
    faults.add(compare("broadcast", tensor, [=](std::int64_t index) { return value_at(root, index); }));
    const Tensor all = group.gather(mine, root);
    if (all.defined() != (root == rank)) faults.add("gather: a result that is not the root's");
    if (root == rank) faults.add(compare("gather", all, stacked));
    const Tensor parts = root == rank ? numbers_of(root, {ranks, count}, dtype) : Tensor();
    const Tensor part = Tensor::empty({count}, {.dtype = dtype});
    group.scatter(parts, Out(part), root);
    faults.add(compare("scatter", part, [=](std::int64_t index) { return value_at(root, rank * count + index); }));
  }
  const Tensor swapped = group.all_to_all(numbers_of(rank, {ranks, count}, dtype));
  faults.add(compare("all_to_all", swapped, [=](std::int64_t index) {
    return value_at(static_cast<int>(index / count), rank * count + index % count);
  }));
  if (ranks == 1) return;
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const Tensor received = Tensor::empty({count}, {.dtype = dtype});
  const auto sending = group.send_async(mine, next, 3);
  group.receive(Out(received), before, 3);
  sending->wait();
  faults.add(compare("receive", received, [=](std::int64_t index) { return value_at(before, index); }));
}

/// Rank r has r % 3 rows of its own, and for rank s (r + s) % 3.
void check_rows(ProcessGroup& group, std::int64_t count, Faults& faults) {
  const int ranks = group.size(), rank = group.rank();
  const auto rows = group.all_gather_rows(numbers_of(rank, {rank % 3, count}, DType::f32));
  for (int other = 0; other < ranks; ++other) {
    const Tensor& part = rows[static_cast<std::size_t>(other)];
    if (part.shape() != Shape{other % 3, count}) faults.add("all_gather_rows: a wrong shape");
    faults.add(compare("all_gather_rows", part, [=](std::int64_t index) { return value_at(other, index); }));
  }
  std::vector<std::int64_t> rows_to;
  std::int64_t total = 0;
  for (int other = 0; other < ranks; ++other) rows_to.push_back((rank + other) % 3), total += rows_to.back();
  const Tensor sent = tensor_of({total, count}, DType::i32, [&](std::int64_t index) {
    return count == 0 ? 0.0 : static_cast<double>(100 * rank + index / count);
  });
  const auto received = group.all_to_all_rows(sent, rows_to).to_vector<double>();
  std::size_t at = 0;
  for (int other = 0; other < ranks; ++other) {
    std::int64_t first = 0;  // of the other's rows for this rank
    for (int before = 0; before < rank; ++before) first += (other + before) % 3;
    for (std::int64_t row = 0; row < (other + rank) % 3; ++row) {
      for (std::int64_t column = 0; column < count; ++column, ++at) {
        if (at >= received.size() || received[at] != static_cast<double>(100 * other + first + row))
          return faults.add(fmt::format("all_to_all_rows: element {}", at));
      }
    }
  }
  if (at != received.size()) faults.add("all_to_all_rows: too many elements");
}

/// Several at once, ended in another order than begun.
void check_async(ProcessGroup& group, std::int64_t count, Faults& faults) {
  const int ranks = group.size(), rank = group.rank();
  const Tensor sum = numbers_of(rank, {count}, DType::f32), mine = numbers_of(rank, {count}, DType::f64);
  const Tensor all = Tensor::empty({ranks, count}, {.dtype = DType::f64}), part = Tensor::empty({count});
  const Tensor parts = numbers_of(rank, {ranks, count}, DType::f32), swapped = Tensor::empty({ranks, count});
  const Tensor from_last = numbers_of(rank, {count}, DType::i32);
  std::vector<std::unique_ptr<Work>> works;
  works.push_back(group.all_reduce_async(Out(sum)));
  works.push_back(group.all_gather_async(mine, Out(all)));
  works.push_back(group.reduce_scatter_async(parts, Out(part)));
  works.push_back(group.all_to_all_async(parts, Out(swapped)));
  works.push_back(group.broadcast_async(Out(from_last), ranks - 1));
  if (rank % 2 == 1) std::reverse(works.begin(), works.end());
  for (const auto& work : works) work->wait();
  faults.add(
      compare("all_reduce among others", sum, [=](auto index) { return reduced_at(ranks, index, ReduceOp::sum); }));
  faults.add(compare("all_gather among others", all,
                     [=](std::int64_t index) { return value_at(static_cast<int>(index / count), index % count); }));
  faults.add(compare("reduce_scatter among others", part,
                     [=](std::int64_t index) { return reduced_at(ranks, rank * count + index, ReduceOp::sum); }));
  faults.add(compare("all_to_all among others", swapped, [=](std::int64_t index) {
    return value_at(static_cast<int>(index / count), rank * count + index % count);
  }));
  faults.add(compare("broadcast among others", from_last, [=](auto index) { return value_at(ranks - 1, index); }));
}

/// A tensor at an odd place, between elements that must stay as they are.
class Guarded {
 public:
  explicit Guarded(std::int64_t count) : whole_(Tensor::full({count + 2}, -9.0)) {}
  Tensor tensor() const { return whole_.narrow(0, 1, whole_.numel() - 2); }
  bool is_whole() const { return whole_.narrow(0, 0, 1).item() == -9.0 && element_behind() == -9.0; }

 private:
  double element_behind() const { return whole_.narrow(0, whole_.numel() - 1, 1).item(); }

  Tensor whole_;
};

}  // namespace

std::string fault_of_moves(ProcessGroup& group, std::int64_t count) {
  Faults faults;
  const int ranks = group.size(), rank = group.rank();
  const Guarded part(count), all(ranks * count), input(ranks * count);
  const auto check = [&](const char* what, const Guarded& written, const Value& expected) {
    faults.add(compare(what, written.tensor(), expected));
    if (!written.is_whole()) faults.add(fmt::format("{}: an element beside the tensor was written", what));
  };
  const Value stacked = [=](std::int64_t index) { return value_at(static_cast<int>(index / count), index % count); };
  const Tensor mine = numbers_of(rank, {count}, DType::f32);
  Out(input.tensor()).copy_from(numbers_of(rank, {ranks * count}, DType::f32));
  group.all_gather_async(mine, Out(all.tensor()))->wait();
  check("all_gather", all, stacked);
  const Tensor parts = input.tensor().as_strided({ranks, count}, {count, 1}, 1);
  group.all_to_all_async(parts, Out(all.tensor()))->wait();
  check("all_to_all", all,
        [=](std::int64_t index) { return value_at(static_cast<int>(index / count), rank * count + index % count); });
  for (int root = 0; root < ranks; ++root) {
    group.gather_async(mine, Out(all.tensor()), root)->wait();
    if (rank == root) check("gather", all, stacked);
    group.scatter_async(parts, Out(part.tensor()), root)->wait();
    check("scatter", part, [=](std::int64_t index) { return value_at(root, rank * count + index); });
    Out(part.tensor()).copy_from(mine);
    group.broadcast_async(Out(part.tensor()), root)->wait();
    check("broadcast", part, [=](std::int64_t index) { return value_at(root, index); });
  }
  return faults.first();
}

std::string fault_of_all_collectives(ProcessGroup& group, std::int64_t count) {
  Faults faults;
  for (const DType dtype : kAll) {
    check_moves(group, count, dtype, faults);
    for (const ReduceOp op : kOps) {
      if (dtype == DType::u8 || (op == ReduceOp::average && !is_floating(dtype))) continue;
      check_reductions(group, count, dtype, op, faults);
    }
  }
  check_rows(group, count, faults);
  check_async(group, count, faults);
  group.barrier();
  return faults.first();
}

std::string fault_of_split(ProcessGroup& group) {
  Faults faults;
  const int rank = group.rank(), ranks = group.size();
  // Even and odd ranks, numbered backwards; and all but the last one.
  const auto half = group.split(rank % 2, -rank);
  const auto most = group.split(rank == ranks - 1 ? -1 : 4);
  if ((most == nullptr) != (rank == ranks - 1)) faults.add("split: a group for a negative color, or none for another");
  const int half_size = (ranks + (rank % 2 == 0 ? 1 : 0)) / 2;
  if (half->size() != half_size || half->rank() != half_size - 1 - rank / 2) faults.add("split: wrong numbers");
  const Tensor in_half = Tensor::full({3}, rank), in_most = Tensor::full({2}, rank), in_all = Tensor::full({4}, rank);
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
  faults.add(compare("all_reduce of half", in_half, [=](std::int64_t) { return half_sum; }));
  faults.add(compare("all_reduce of all", in_all, [=](std::int64_t) { return ranks - 1.0; }));
  if (most) faults.add(compare("all_reduce of most", in_most, [=](std::int64_t) { return most_sum; }));
  return faults.first();
}

}  // namespace tandem::test
