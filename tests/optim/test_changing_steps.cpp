// Optimizers whose kernels read a step's numbers from the device's memory, against kernels that get them by value.
#include "tests/optim/changing_steps.h"
#include "tests/support/catch.h"
#include "tests/support/devices.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("steps at changing rates, some of them skipped, are bit for bit those by value", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  constexpr std::uint32_t kLastStep = 14;
  for (const Rule rule : kRules) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
      if (dtype == DType::f64 && device == kGpu) continue;  // which takes none
      CAPTURE(name_of(device), static_cast<int>(rule), name_of(dtype));
      const std::vector<Tensor> parameters = parameters_on(device, dtype);
      const auto optimizer = make_changing(rule, parameters);
      ByValue by_value(rule, parameters_on(device, dtype));
      optim::GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = kLossScale});
      for (std::uint32_t step = 1; step <= kLastStep; ++step) {
        take_changing_step(*optimizer, scaler, step);
        by_value.step(step);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          CAPTURE(step, i);
          REQUIRE(parameters[i].to_vector<double>() == by_value.parameters[i].to_vector<double>());
          if (dtype == DType::f16)
            REQUIRE(optimizer->master(i).to_vector<double>() == by_value.masters[i].to_vector<double>());
        }
      }
      CHECK(optimizer->steps() == by_value.taken);
      CHECK(by_value.taken == kLastStep - static_cast<std::int64_t>(kBad.size()));
      CHECK(parameters[1].to_vector<double>() != make_parameters(dtype)[1].to_vector<double>());
    }
  }
}
