// Measured choices of convolution code on their way through a file.
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/train/tuning_file.h"
#include "tests/support/catch.h"
#include "tests/support/damage.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::test;
namespace k = tandem::kernels;

namespace {

k::TuningKey some_key(k::PassKind pass, std::int64_t stride) {
  const k::ConvGeometry geometry =
      k::make_geometry({2, 3, 9, 8}, {4, 3, 3, 3}, {.stride = {stride, stride}, .padding = {1, 1}});
  return {DeviceType::cpu, pass, DType::f32, geometry};
}

void fill_tuner() {
  k::conv_tuner().clear();
  k::conv_tuner().add(some_key(k::PassKind::forward, 1), {"winograd", {{"direct", 30.5}, {"winograd", 20.25}}});
  k::conv_tuner().add(some_key(k::PassKind::backward_weight, 2), {"direct", {{"direct", 7.0}}});
  // The same layer with other work is another entry.
  k::TuningKey fused = some_key(k::PassKind::forward, 1);
  fused.work = {.bias = true, .relu = true, .mask = true};
  k::conv_tuner().add(fused, {"direct", {{"direct", 32.0}, {"winograd", 41.0}}});
  k::TuningKey below = some_key(k::PassKind::backward_input, 1);
  below.work = {.sums = true, .gate = true, .unaligned = 5};
  k::conv_tuner().add(below, {"direct", {{"direct", 9.0}}});
}

nlohmann::json read(const std::string& path) { return nlohmann::json::parse(read_bytes(path)); }

}  // namespace

TEST_CASE("measured choices come back from a file as they were") {
  const TemporaryDirectory directory;
  const std::string path = directory / "tuning.json";
  fill_tuner();
  const auto before = k::conv_tuner().results();
  train::save_tuning(path, "this machine");
  k::conv_tuner().clear();
  CHECK(train::load_tuning(path, "this machine") == "");
  const auto after = k::conv_tuner().results();
  REQUIRE(after.size() == before.size());
  for (const auto& [key, result] : before) {
    CHECK(after.at(key).chosen == result.chosen);
    CHECK(after.at(key).microseconds == result.microseconds);
  }
  CHECK(k::conv_tuner().is_active());
  CHECK(train::tuning_table() ==
        "  forward         f32  2x3x9x8 * 4x3x3  winograd 20 us  direct 30 us\n"
        "  forward         f32  2x3x9x8 * 4x3x3 bias relu mask  direct 32 us  winograd 41 us\n"
        "  backward_input  f32  2x3x9x8 * 4x3x3 sums gate unaligned  direct 9 us\n"
        "  backward_weight f32  2x3x9x8 * 4x3x3/2  direct 7 us\n");
  k::conv_tuner().clear();
}

TEST_CASE("no tuning file yet is no news; one that cannot be written is an error") {
  const TemporaryDirectory directory;
  k::conv_tuner().clear();
  CHECK(train::load_tuning(directory / "none.json", "this machine") == "");
  CHECK_FALSE(k::conv_tuner().is_active());
  CHECK_THAT(error_of([&] { train::save_tuning(directory / "no/folder.json", "this machine"); }),
             ContainsText("no/folder.json: cannot write"));
}

TEST_CASE("tuning files of others, old or damaged are named and ignored as a whole") {
  const TemporaryDirectory directory;
  const std::string path = directory / "tuning.json";
  fill_tuner();
  train::save_tuning(path, "this machine");
  const nlohmann::json good = read(path);
  const auto check = [&](const std::string& text, const std::string& reason) {
    INFO(text);
    write_bytes(path, text);
    k::conv_tuner().clear();
    const std::string said = train::load_tuning(path, "this machine");
    CHECK_THAT(said, ContainsText(path));
    CHECK_THAT(said, ContainsText("ignored"));
    CHECK_THAT(said, ContainsText(reason));
    CHECK_THAT(said, !ContainsText("json.exception"));
    CHECK_FALSE(k::conv_tuner().is_active());
  };
  const auto changed = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(pointer)] = value;
    return json.dump();
  };
  for (const char* text : {"", "[]", "{}", "root:x:0:0:"}) check(text, "not a tuning file");
  check(good.dump().substr(0, good.dump().size() / 2), "damaged");
  check(changed("/format", "recipes"), "not a tuning file");
  check(changed("/version", 1), "version 1 of the format, this is for 2; measure anew");
  check(changed("/machine", "an older one"), "measured on an older one; this is this machine");
  check(changed("/passes", 3), "damaged");
  check(changed("/passes/1/pass", "sideways"), "unknown pass 'sideways'");
  check(changed("/passes/1/dtype", "f8"), "unknown dtype 'f8'");
  check(changed("/passes/1/device", "tpu"), "unknown device 'tpu'");
  check(changed("/passes/1/geometry/k", "four"), "damaged");
  check(changed("/passes/1/geometry", nlohmann::json::object()), "damaged");
  check(changed("/passes/1/work", nlohmann::json::object()), "damaged");
  check(changed("/passes/1/work/relu", "yes"), "damaged");
  check(changed("/passes/1/chosen", "fastest"), "'fastest' was chosen without a time");
  check(changed("/passes/1/microseconds", "quick"), "damaged");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  k::conv_tuner().clear();
  CHECK_THAT(train::load_tuning(path, "this machine"), ContainsText("is a directory"));
}

TEST_CASE("tuning files with any damage are ignored and named, or hold choices that are known") {
  const TemporaryDirectory directory;
  const std::string path = directory / "tuning.json";
  fill_tuner();
  const std::size_t entries = k::conv_tuner().results().size();
  train::save_tuning(path, "this machine");
  int ignored = 0;
  for_each_damage(read_bytes(path), 200, [&](const std::string& bytes) {
    write_bytes(path, bytes);
    k::conv_tuner().clear();
    const std::string problem = train::load_tuning(path, "this machine");
    if (problem.empty()) {
      REQUIRE(k::conv_tuner().results().size() <= entries);
      return;
    }
    ++ignored;
    REQUIRE(problem.starts_with(path));
    REQUIRE(k::conv_tuner().results().empty());
  });
  CHECK(ignored > 200);
  k::conv_tuner().clear();
}

TEST_CASE("the machine of a tuning file names device, threads and build") {
  CHECK_THAT(train::tuning_machine({}), ContainsText(", threads "));
  CHECK_THAT(train::tuning_machine({}), ContainsText(", tandem "));
}
