// Every optimizer of the table on a GPU, as layers and programs use it.
#include "tandem/autograd/variable.h"
#include "tests/optim/every_optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// The same values as leaves on the GPU.
std::vector<Tensor> on_gpu(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> result;
  for (const Tensor& parameter : parameters) result.push_back(autograd::set_requires_grad(parameter.detach().to(kGpu)));
  return result;
}

}  // namespace

// Both compute in f32, and a GPU fuses multiplications with additions: as in check_against_formula(), with updates of
// up to 120 learning rates (sums of gradients below 6, by momentum 0.9 twentyfold). Of half filters Muon's
// Newton-Schulz is in bf16 on a GPU, where test_cuda_muon.cpp holds it to its singular values.
TEST_CASE("every optimizer takes the same steps on the GPU as on the CPU, but for rounding", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  constexpr std::uint32_t kSteps = 3;
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      INFO(entry.name << " on " << name_of(dtype));
      const std::vector<Tensor> here = make_parameters(dtype), there = on_gpu(here);
      const auto expected = make(entry, here), actual = make(entry, there);
      run_steps(*expected, 1, kSteps);
      run_steps(*actual, 1, kSteps);
      const bool half = dtype != DType::f32;
      for (std::size_t p = 0; p < here.size(); ++p) {
        if (half && entry.has_filters && here[p].rank() == 4) continue;
        const std::vector<double> a = (half ? actual->master(p) : there[p]).to_vector<double>();
        const std::vector<double> e = (half ? expected->master(p) : here[p]).to_vector<double>();
        for (std::size_t i = 0; i < e.size(); ++i) {
          INFO("parameter " << p << ", element " << i << ": " << a[i] << " vs " << e[i]);
          REQUIRE(std::abs(a[i] - e[i]) <= kSteps * 16.0 * 0x1p-24 * (std::abs(e[i]) + 120.0 * entry.lr));
        }
      }
    }
  }
}
