// Numbers of the host's in the memory of devices.
#include "tandem/core/device_copies.h"

#include "tests/support/catch.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <numeric>
#include <optional>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Numbers, and their copies.
struct Owner {
  std::vector<std::int64_t> numbers;
  DeviceCopies copies{"owner", DType::i64};

  Tensor on(Device device) { return copies.on(device, std::as_bytes(std::span(numbers))); }
  void upload() { copies.upload(std::as_bytes(std::span(numbers))); }
};

std::vector<std::int64_t> read(const Tensor& tensor) { return tensor.to_vector<std::int64_t>(); }

}  // namespace

TEST_CASE("copies are of the numbers as they were last asked for, in the same memory", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  Owner owner{{3, 4}};
  CHECK_FALSE(owner.copies.has(device));
  owner.upload();  // to nobody
  CHECK_FALSE(owner.copies.has(device));
  const Tensor there = owner.on(device);
  CHECK(owner.copies.has(device));
  CHECK(there.device() == device);
  CHECK(read(there) == std::vector<std::int64_t>{3, 4});
  owner.numbers[1] = -5;
  CHECK(read(there) == std::vector<std::int64_t>{3, 4});
  CHECK(owner.on(device).raw_data() == there.raw_data());
  CHECK(read(there) == std::vector<std::int64_t>{3, -5});
  owner.numbers[0] = 6;
  owner.upload();
  CHECK(read(there) == std::vector<std::int64_t>{6, -5});
  owner.numbers.push_back(7);
  CHECK(read(owner.on(device)) == std::vector<std::int64_t>{6, -5, 7});
  CHECK(read(there) == std::vector<std::int64_t>{6, -5});
  owner.numbers.clear();
  CHECK(owner.on(device).numel() == 0);
}

TEST_CASE("an owner that is copied has copies of its own", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  Owner first{{1}};
  const Tensor of_first = first.on(device);
  Owner second = first;
  CHECK_FALSE(second.copies.has(device));
  second.numbers[0] = 2;
  const Tensor of_second = second.on(device);
  CHECK(read(of_first) == std::vector<std::int64_t>{1});
  first = second;
  CHECK(first.on(device).raw_data() == of_first.raw_data());
  CHECK(read(of_first) == std::vector<std::int64_t>{2});
  first.numbers[0] = 3;
  first.upload();
  CHECK(read(of_second) == std::vector<std::int64_t>{2});
}
