// Tables of many tensors are the device's before their host memory is used for something else.
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/cuda_device.h"

#include <vector>

namespace tandem::test {

TEST_CASE("an optimizer's table outlives the call that makes it", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  const auto on_gpu = [](double value) { return Tensor::full({300}, value, {.device = kGpu}); };
  std::vector<Tensor> parameters;
  for (int i = 0; i < 20; ++i) {
    parameters.push_back(on_gpu(1.0 + i));
    const Tensor gradient = on_gpu(2.0);
    const std::vector<kernels::SgdItem> items{{Out(parameters.back()), gradient, {}, true}};
    kernels::sgd_step(items, {.lr = 0.25});
    kernels::scale_all(outs_of(parameters), 2.0);
    kernels::scale_all(outs_of(parameters), 0.5);
  }
  for (int i = 0; i < 20; ++i) CHECK(parameters[static_cast<std::size_t>(i)].to_vector<double>().back() == 0.5 + i);
}

}  // namespace tandem::test
