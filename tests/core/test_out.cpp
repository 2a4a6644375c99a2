// Out: the right to write into a tensor.
#include "tandem/core/out.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using tandem::test::error_of;

TEST_CASE("making an Out counts one change of the storage, copies and reading count none") {
  const Tensor tensor = Tensor::from<float>({1.0F, 2.0F}, {2});
  const std::uint64_t before = tensor.storage()->version();
  const Out out(tensor);
  CHECK(tensor.storage()->version() == before + 1);
  const Out copy = out;
  const Tensor& read = copy;
  CHECK(read.is_same(tensor));
  CHECK(copy.data<float>() == tensor.data<float>());
  CHECK(copy.raw_data() == tensor.raw_data());
  CHECK(tensor.storage()->version() == before + 1);
}

TEST_CASE("what is written through an Out is in the tensor") {
  const Tensor tensor = Tensor::zeros({3});
  const Out out(tensor);
  out.data<float>()[1] = 5.0F;
  CHECK(tensor.to_vector<float>() == std::vector<float>{0.0F, 5.0F, 0.0F});
  out.fill(2.0);
  CHECK(tensor.to_vector<float>() == std::vector<float>(3, 2.0F));
  out.copy_from(Tensor::full({3}, 7.0));
  CHECK(tensor.to_vector<float>() == std::vector<float>(3, 7.0F));
  out.zero();
  CHECK(tensor.to_vector<float>() == std::vector<float>(3, 0.0F));
  CHECK(error_of([&] { out.data<double>(); }) == "tensor holds f32, asked for f64");
}

TEST_CASE("an Out of nothing is not wanted") {
  CHECK(!Out().defined());
  CHECK(!Out(Tensor()).defined());
}

TEST_CASE("outs_of makes an Out of each, in order") {
  const std::vector<Tensor> tensors{Tensor::zeros({1}), Tensor(), Tensor::zeros({2})};
  const std::uint64_t before = tensors[0].storage()->version();
  const std::vector<Out> outs = outs_of(tensors);
  REQUIRE(outs.size() == 3);
  for (std::size_t i : {0u, 2u}) CHECK(outs[i].tensor().is_same(tensors[i]));
  CHECK(!outs[1].defined());
  CHECK(tensors[0].storage()->version() == before + 1);
}
