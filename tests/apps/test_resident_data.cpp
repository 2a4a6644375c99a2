// Where --resident-data has the images kept.
#include "resident_data.h"
#include "tandem/comm/launch/run_thread_ranks.h"
#include "tandem/data/synthetic.h"
#include "tests/apps/parsed_settings.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::apps;
using tandem::test::ContainsText;

namespace {

constexpr Device kFirstGpu{DeviceType::cuda, 0};
constexpr std::int64_t kAll = 100 * 3 * 32 * 32 + 50 * 3 * 32 * 32;  // bytes of the images below

Data some_images() {
  const auto make = [](std::int64_t count) {
    return std::make_shared<const data::ImageDataset>(data::make_synthetic({.count = count}));
  };
  return {make(100), nullptr, make(50)};
}

ResidentData decide(const std::vector<const char*>& arguments, Device device, std::int64_t free_bytes) {
  Parsed parsed;
  parse(parsed, arguments);
  return resident_data(parsed.settings, some_images(), device, {free_bytes, name_of(device)});
}

std::string refusal(const std::vector<const char*>& arguments, Device device, std::int64_t free_bytes) {
  return test::error_of([&] { decide(arguments, device, free_bytes); });
}

}  // namespace

TEST_CASE("images are kept on a GPU where they take a quarter of its free memory at most", "[resident]") {
  const ResidentData fits = decide({}, kFirstGpu, 4 * kAll);
  CHECK(fits.is_resident);
  CHECK(fits.text == "  images   450.0 KiB on cuda:0, which makes the batches\n");
  const ResidentData large = decide({}, kFirstGpu, 4 * kAll - 1);
  CHECK_FALSE(large.is_resident);
  CHECK_THAT(large.text,
             ContainsText("450.0 KiB, more than a quarter of what is free on cuda:0: batches are made on the CPU"));
  CHECK(decide({"--resident-data", "on"}, kFirstGpu, 4 * kAll - 1).is_resident);
  CHECK_FALSE(decide({}, kFirstGpu, 0).is_resident);
}

TEST_CASE("images stay on the CPU where that is asked for, or batches cannot be made elsewhere", "[resident]") {
  CHECK(decide({}, {}, 0).text.empty());
  CHECK_FALSE(decide({}, {}, 0).is_resident);
  for (const auto& arguments :
       {std::vector{"--resident-data", "off"}, std::vector{"--mixup", "0.2"}, std::vector{"--cutmix", "1"}}) {
    const ResidentData stays = decide(arguments, kFirstGpu, 0);
    CHECK_FALSE(stays.is_resident);
    CHECK_THAT(stays.text, ContainsText("batches are made on the CPU"));
  }
}

TEST_CASE("where images cannot be kept on a GPU, --resident-data on is refused", "[resident]") {
  CHECK_THAT(refusal({"--resident-data", "on"}, {}, 0),
             ContainsText("--resident-data on: the run computes on the CPU"));
  CHECK_THAT(refusal({"--resident-data", "on", "--mixup", "0.2"}, kFirstGpu, 0), ContainsText("--mixup and --cutmix"));
  CHECK_THAT(
      refusal({"--resident-data", "on"}, kFirstGpu, kAll / 2),
      ContainsText("450.0 KiB of images do not fit into the 225.0 KiB that are free on cuda:0; choose auto or off"));
}

TEST_CASE("ranks decide where images are kept by the GPU that has the least free memory", "[resident]") {
  constexpr int kRanks = 3;
  comm::run_thread_ranks(kRanks, [&](comm::ProcessGroup& group) {
    const std::int64_t own = group.rank() == 1 ? 4 * kAll - 1 : 4 * kAll + group.rank();
    const FreeMemory free = least_free_memory(group, {DeviceType::cuda, group.rank()}, own);
    REQUIRE(free.bytes == 4 * kAll - 1);
    REQUIRE(free.where == "cuda:1 of rank 1");
    Parsed parsed;
    parse(parsed, {});
    const ResidentData large = resident_data(parsed.settings, some_images(), {DeviceType::cuda, group.rank()}, free);
    REQUIRE_FALSE(large.is_resident);
    REQUIRE(large.text.find("free on cuda:1 of rank 1") != std::string::npos);
  });
  comm::run_thread_ranks(1, [&](comm::ProcessGroup& group) {
    const FreeMemory free = least_free_memory(group, kFirstGpu, kAll);
    REQUIRE(free.bytes == kAll);
    REQUIRE(free.where == "cuda:0");
  });
}
