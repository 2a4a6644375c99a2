// Collectives of more bytes than an int counts, on each backend. They take memory: less than all of a small machine, or
// they are skipped.
#include "tandem/comm/collective.h"
#include "tandem/comm/long_work.h"
#include "tests/comm/collective_values.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

constexpr std::int64_t kBytes = (std::int64_t{1} << 31) + 1;
constexpr double kGib = 1 << 30;

/// Of this host; 0 where the system does not say.
double available_gib() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  double kib = 0.0;
  while (file >> word)
    if (word == "MemAvailable:") file >> kib;
  return kib / (1 << 20);
}

/// Whether the ranks have so many bytes each, and half as much again for what the backend takes; else the test is
/// skipped.
bool has_room(ProcessGroup& group, std::int64_t bytes) {
  const double needed = 1.5 * static_cast<double>(bytes * group.size()) / kGib;
  const Tensor available = Tensor::full({1}, available_gib());
  group.all_reduce(Out(available), ReduceOp::min);  // all ranks decide alike
  if (available.item() >= needed) return true;
  skip_test(fmt::format("takes {:.0f} GiB of memory, and {:.0f} are free", needed, available.item()));
  return false;
}

/// What ranks bring, which repeats itself.
template <typename T>
Tensor numbers_of(int rank, std::int64_t count, DType dtype) {
  const LongWork filling;  // for which other ranks may wait
  const Tensor tensor = Tensor::empty({count}, {.dtype = dtype});
  T* const values = Out(tensor).data<T>();
  const std::int64_t period = period_of(dtype);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = i < period ? static_cast<T>(value_at(rank, i, dtype)) : values[i - period];
  return tensor;
}

/// Elements that are not `value(index)`, which repeats itself as well, of `count` from `begin` on.
template <typename T, typename Value>
std::int64_t count_wrong(const Tensor& tensor, std::int64_t begin, std::int64_t count, const Value& value) {
  const LongWork comparing;
  const T* const values = tensor.data<T>() + begin;
  std::vector<T> right;
  for (std::int64_t i = 0; i < std::min(count, period_of(tensor.dtype())); ++i)
    right.push_back(static_cast<T>(value(i)));
  const std::int64_t period = std::ssize(right);
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < count; at += period)
    for (std::int64_t i = 0; i < std::min(period, count - at); ++i)
      wrong += values[at + i] != right[static_cast<std::size_t>(i)];
  return wrong;
}

double byte_of(int rank, std::int64_t index) { return value_at(rank, index, DType::u8); }

std::unique_ptr<ProcessGroup> each_backend() {
  auto names = mpi_backends();
  names.push_back("messages");
  const std::string_view name = GENERATE_COPY(from_range(names));
  return name == "messages" ? make_message_group() : make_process_group(name, environment());
}

}  // namespace

TEST_CASE("a broadcast of more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, kBytes)) return;
  const int root = group->size() - 1;
  const Tensor tensor = numbers_of<std::uint8_t>(group->rank(), kBytes, DType::u8);
  group->broadcast(Out(tensor), root);
  CHECK(count_wrong<std::uint8_t>(tensor, 0, kBytes, [&](std::int64_t index) { return byte_of(root, index); }) == 0);
}

TEST_CASE("an all_gather of more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, 2 * kBytes)) return;
  const std::int64_t part = kBytes / group->size() + 1;
  const Tensor all = group->all_gather(numbers_of<std::uint8_t>(group->rank(), part, DType::u8));
  for (int rank = 0; rank < group->size(); ++rank)
    CHECK(count_wrong<std::uint8_t>(all, rank * part, part, [&](std::int64_t index) { return byte_of(rank, index); }) ==
          0);
}

TEST_CASE("an all_reduce of more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, 2 * kBytes)) return;
  constexpr std::int64_t kCount = kBytes / 4 + 1;
  const Tensor tensor = numbers_of<float>(group->rank(), kCount, DType::f32);
  group->all_reduce(Out(tensor));
  CHECK(count_wrong<float>(tensor, 0, kCount, [&](std::int64_t index) {
          double sum = 0.0;
          for (int rank = 0; rank < group->size(); ++rank) sum += value_at(rank, index, DType::f32);
          return sum;
        }) == 0);
}

TEST_CASE("rows of more bytes than an int counts that go to one rank alone", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, kBytes)) return;
  const int last = group->size() - 1;
  const bool has_them = group->rank() == 0, gets_them = group->rank() == last;
  std::vector<std::int64_t> rows_to(static_cast<std::size_t>(group->size()), 0);
  if (has_them) rows_to.back() = kBytes;
  const Tensor result = group->all_to_all_rows(
      numbers_of<std::uint8_t>(0, has_them ? kBytes : 0, DType::u8).as_strided({has_them ? kBytes : 0, 1}, {1, 1}, 0),
      rows_to);
  REQUIRE(result.numel() == (gets_them ? kBytes : 0));
  CHECK(count_wrong<std::uint8_t>(result, 0, result.numel(), [](std::int64_t index) { return byte_of(0, index); }) ==
        0);
}

TEST_CASE("an all_gather of rows of which one rank has more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, 2 * kBytes)) return;
  const auto rows_of = [](int rank) { return rank == 0 ? kBytes : std::int64_t{5}; };
  const Tensor mine = numbers_of<std::uint8_t>(group->rank(), rows_of(group->rank()), DType::u8);
  const std::vector<Tensor> all = group->all_gather_rows(mine.as_strided({mine.numel(), 1}, {1, 1}, 0));
  for (int rank = 0; rank < group->size(); ++rank) {
    const Tensor& part = all[static_cast<std::size_t>(rank)];
    REQUIRE(part.numel() == rows_of(rank));
    CHECK(count_wrong<std::uint8_t>(part, 0, part.numel(), [&](std::int64_t index) { return byte_of(rank, index); }) ==
          0);
  }
}

TEST_CASE("a gather and a scatter of more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, 2 * kBytes)) return;
  const int root = group->size() - 1;
  const std::int64_t part = kBytes / group->size() + 1;
  const Tensor mine = numbers_of<std::uint8_t>(group->rank(), part, DType::u8);
  const Tensor all = group->gather(mine, root);
  for (int rank = 0; rank < group->size() && all.defined(); ++rank)
    CHECK(count_wrong<std::uint8_t>(all, rank * part, part, [&](std::int64_t index) { return byte_of(rank, index); }) ==
          0);
  mine.copy_from(Tensor::zeros({part}, {.dtype = DType::u8}));
  group->scatter(all, Out(mine), root);
  CHECK(count_wrong<std::uint8_t>(mine, 0, part, [&](std::int64_t index) { return byte_of(group->rank(), index); }) ==
        0);
}

TEST_CASE("a reduce and a reduce_scatter of more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (!has_room(*group, 3 * kBytes)) return;
  const std::int64_t part = kBytes / 4 / group->size() + 1, count = part * group->size();
  const auto sum_at = [&](std::int64_t index) {
    double sum = 0.0;
    for (int rank = 0; rank < group->size(); ++rank) sum += value_at(rank, index, DType::f32);
    return sum;
  };
  const int root = group->size() - 1, rank = group->rank();
  const Tensor tensor = numbers_of<float>(rank, count, DType::f32);
  const Tensor mine = group->reduce_scatter(tensor.as_strided({group->size(), part}, {part, 1}, 0));
  CHECK(count_wrong<float>(mine, 0, part, [&](std::int64_t index) { return sum_at(rank * part + index); }) == 0);
  group->reduce(Out(tensor), root);
  CHECK(count_wrong<float>(tensor, 0, count, [&](std::int64_t index) {
          return rank == root ? sum_at(index) : value_at(rank, index, DType::f32);
        }) == 0);
}

TEST_CASE("a message of more bytes than an int counts", "[.huge]") {
  const auto group = each_backend();
  CAPTURE(group->name());
  if (group->size() == 1 || !has_room(*group, kBytes)) return;
  const int last = group->size() - 1;
  if (group->rank() == 0) group->send(numbers_of<std::uint8_t>(0, kBytes, DType::u8), last);
  if (group->rank() != last) return;
  const Tensor tensor = Tensor::zeros({kBytes}, {.dtype = DType::u8});
  group->receive(Out(tensor), 0);
  CHECK(count_wrong<std::uint8_t>(tensor, 0, kBytes, [](std::int64_t index) { return byte_of(0, index); }) == 0);
}
