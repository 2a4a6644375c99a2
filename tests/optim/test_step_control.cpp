// The block of a step's factors.
#include "tandem/optim/step_control.h"

#include "tests/support/catch.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <type_traits>
#include <utility>

using namespace tandem;
using namespace tandem::test;
using optim::StepControl;

namespace {

std::vector<double> row_of(StepControl& control, std::size_t row, Device device) {
  return control.row(row, device).to_vector<double>();
}

}  // namespace

TEST_CASE("rows of a step's control are what was set last, in the same memory", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  StepControl control(2);
  CHECK(control.rows() == 2);
  CHECK(row_of(control, 0, device) == std::vector<double>{0.0, 0.0, 0.0, 1.0, 1.0});
  const Tensor second = control.row(1, device);
  CHECK(second.device() == device);
  control.set(1, {.lr = 0.1, .momentum = 0.2, .weight_decay = 0.3, .gradient_factor = 0.4, .keep = 0.5});
  CHECK(second.to_vector<double>()[0] == 0.0);  // not before somebody asks
  CHECK(row_of(control, 1, device) == std::vector<double>{0.1, 0.2, 0.3, 0.4, 0.5});
  CHECK(row_of(control, 0, device)[0] == 0.0);
  CHECK(second.to_vector<double>()[0] == 0.1);
  control.set(0, {.lr = 7.0});
  control.upload();
  CHECK(second.to_vector<double>()[1] == 0.2);
  CHECK(row_of(control, 0, device)[0] == 7.0);
  control.resize(3);
  CHECK(row_of(control, 0, device)[0] == 7.0);
  CHECK(row_of(control, 2, device)[3] == 1.0);
}

TEST_CASE("a step's control is not copied, and moves with its memory") {
  static_assert(!std::is_copy_constructible_v<StepControl> && !std::is_copy_assignable_v<StepControl>);
  StepControl control(1);
  const Tensor row = control.row(0, Device{});
  StepControl other = std::move(control);
  other.set(0, {.lr = 0.5});
  other.upload();
  CHECK(row.to_vector<double>()[0] == 0.5);
  CHECK(control.rows() == 0);  // NOLINT(bugprone-use-after-move): that is what is asked
}

TEST_CASE("a step's control refuses rows that are not there") {
  StepControl control(2);
  CHECK_THAT(error_of([&] { control.set(2, {}); }),
             ContainsText("step control: there is no row 2: it has 2, counted from 0"));
  CHECK_THAT(error_of([&] { control.row(3, Device{}); }), ContainsText("there is no row 3"));
}
