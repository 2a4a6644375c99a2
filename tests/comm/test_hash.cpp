// The hash that compares replicas.
#include "tandem/comm/ddp/hash.h"
#include "tests/support/catch.h"

#include <set>
#include <vector>

using namespace tandem;
using namespace tandem::comm;

TEST_CASE("every single-bit change changes the hash") {
  for (const std::size_t bytes : {1, 7, 8, 31, 32, 33, 100}) {
    std::vector<unsigned char> data(bytes, 0x5a);
    std::set<std::uint64_t> hashes{hash_bytes(data.data(), bytes)};
    for (std::size_t bit = 0; bit < bytes * 8; ++bit) {
      data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
      hashes.insert(hash_bytes(data.data(), bytes));
      data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    }
    CHECK(hashes.size() == bytes * 8 + 1);
  }
}

TEST_CASE("length counts, also among zeros, and order counts") {
  const std::vector<unsigned char> zeros(64, 0);
  std::set<std::uint64_t> hashes;
  for (std::size_t bytes = 0; bytes <= 64; ++bytes) hashes.insert(hash_bytes(zeros.data(), bytes));
  CHECK(hashes.size() == 65);
  const Tensor a = Tensor::from(std::vector<float>{1, 2}, {2}), b = Tensor::from(std::vector<float>{2, 1}, {2});
  CHECK(hash_tensor(a) != hash_tensor(b));
}

TEST_CASE("a tensor's hash depends on elements, shape and dtype, not on strides") {
  const Tensor a = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(hash_tensor(a) == hash_tensor(a.transpose(0, 1).contiguous().transpose(0, 1)));
  CHECK(hash_tensor(a) != hash_tensor(a.view({3, 2})));
  CHECK(hash_tensor(Tensor::zeros({2}, {DType::f32})) != hash_tensor(Tensor::zeros({2}, {DType::i32})));
  CHECK(hash_tensor(Tensor::zeros({0})) == hash_tensor(Tensor::zeros({0})));
}
