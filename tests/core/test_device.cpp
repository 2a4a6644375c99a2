// Device names as users write them, and what is said of devices that are not there.
#include "tandem/core/device_query.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/parse_device.h"
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("device names are read") {
  CHECK(read_device("cpu") == Device{});
  CHECK(read_device("cuda") == Device{DeviceType::cuda, 0});
  CHECK(read_device("cuda:0") == Device{DeviceType::cuda, 0});
  CHECK(read_device("cuda:17") == Device{DeviceType::cuda, 17});
  CHECK(read_device("auto") == std::nullopt);
}

TEST_CASE("texts that name no device are errors that list the choices and what is here") {
  for (const std::string text : {"", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda:1 ", "cuda:1x",
                                 "cuda1", " cpu", "cpu:0", "cuda:99999999999", "cuda:0.5"}) {
    INFO("'" << text << "'");
    const std::string error = error_of([&] { read_device(text); });
    CHECK_THAT(error, ContainsText("'" + text + "'"));
    CHECK_THAT(error, ContainsText("cuda:N"));
    CHECK_THAT(error, ContainsText(device_names()));
    CHECK(error_of([&] { parse_device(text); }) == error);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("auto is the first real GPU, or the CPU where there is none") {
  CHECK(parse_device("cpu") == Device{});
  CHECK(parse_device("auto") == (cuda_device_count() > 0 && !cuda_is_simulated() ? kGpu : Device{}));
}

TEST_CASE("the list of devices begins with the CPU and holds every GPU") {
  const auto devices = list_devices();
  REQUIRE(devices.size() == 1 + static_cast<std::size_t>(cuda_device_count()));
  CHECK(devices.front().device == Device{});
  for (int index = 0; index < cuda_device_count(); ++index) {
    CHECK(devices[static_cast<std::size_t>(index) + 1].device == Device{DeviceType::cuda, index});
    CHECK(devices[static_cast<std::size_t>(index) + 1].memory_bytes > 0);
  }
  CHECK_THAT(device_names(), ContainsText("cpu"));
  CHECK(cuda_unavailable_reason().empty() == (cuda_device_count() > 0));
  if constexpr (!kHasCuda) CHECK(cuda_unavailable_reason() == "this build has no CUDA (TANDEM_CUDA=OFF)");
}

TEST_CASE("whatever asks for a device that is not there is told so, and why") {
  const Device missing{DeviceType::cuda, cuda_device_count()};
  const std::string expected = error_of([&] { check_device(missing); });
  CHECK_THAT(expected, ContainsText("device " + name_of(missing)));
  CHECK_THAT(expected, ContainsText(cuda_device_count() > 0 ? device_names() : cuda_unavailable_reason()));
  CHECK(error_of([&] { parse_device(name_of(missing)); }) == expected);
  CHECK(error_of([&] { Tensor::empty({2}, {.device = missing}); }) == expected);
  CHECK(error_of([&] { Tensor::empty({0}, {.device = missing}); }) == expected);
  CHECK(error_of([&] { Tensor::zeros({2}).to(missing); }) == expected);
  CHECK(error_of([&] { Stream stream(missing); }) == expected);
  CHECK(error_of([&] { current_stream(missing); }) == expected);
  CHECK(error_of([&] { synchronize(missing); }) == expected);
  CHECK_THAT(error_of([] { check_device({DeviceType::cuda, -1}); }), ContainsText("device cuda:-1"));
  CHECK_THAT(error_of([] { check_device({DeviceType::cpu, 1}); }), ContainsText("there is one CPU"));
}

TEST_CASE("pinned memory is host memory like any other") {
  const std::int64_t before = memory_stats().current_total;
  {
    const Tensor pinned = Tensor::full({1000}, 3.0, {.pinned = true});
    CHECK(pinned.storage()->is_pinned());
    CHECK(pinned.device() == Device{});
    CHECK(memory_stats().current_total - before == 4000);
    CHECK(pinned.to_vector<float>() == std::vector<float>(1000, 3.0f));
    const Tensor plain = Tensor::empty({1000});
    CHECK_FALSE(plain.storage()->is_pinned());
    plain.copy_from_async(pinned);
    CHECK(plain.to_vector<float>() == pinned.to_vector<float>());
  }
  CHECK(memory_stats().current_total == before);
  const PoisonScope poison;
  CHECK(std::isnan(Tensor::empty({1}, {.pinned = true}).item()));
  CHECK_THAT(error_of([] { Tensor::empty({1}, {.device = kGpu, .pinned = true}); }), ContainsText("pinned memory"));
}
