// Recordings of the op table: what replay finds, and the files.
#include "tests/op_cases/golden/golden_recording.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr Device kCpu{};

const Recording& recorded() {
  static const Recording recording = record_op_table(kCpu, {"relu", "linear", "gelu"});
  return recording;
}

/// The recording with the last digit of one element changed.
Recording changed(const std::string& call, std::size_t result, std::size_t digit, char to) {
  Recording copy = recorded();
  for (RecordedCall& recorded_call : copy.calls) {
    if (recorded_call.name != call) continue;
    char& old = recorded_call.results.at(result).at(digit);
    REQUIRE(old != to);
    old = to;
    return copy;
  }
  FAIL("no call " << call);
  return copy;
}

}  // namespace

TEST_CASE("a recording agrees with the device it was made on, also after its way through a file") {
  CHECK(recorded().calls.size() >= 40);
  CHECK(replay(recorded(), kCpu).empty());
  const TemporaryDirectory directory;
  write_recording(directory / "recording.json", recorded());
  const Recording read = read_recording(directory / "recording.json");
  CHECK(read.recorded_by == recorded().recorded_by);
  CHECK(read.calls.size() == recorded().calls.size());
  CHECK(replay(read, kCpu).empty());
}

TEST_CASE("replay names what differs: call, result and element") {
  const std::string integers = "linear, 10 outputs, images [1, 8, 3, 3], f16, integers";
  const std::vector<std::string> found = replay(changed(integers, 2, 4 * 7 + 3, 'f'), kCpu);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found.front(),
             ContainsText(integers + ": gradient of input 1, of which every 8 counts: element 7 of f16[90]: bits "));

  // The first digit of an f32: the sign and the upper half of the exponent.
  const std::string fractions = "gelu, images [1, 8, 3, 3], f32, fractions";
  const std::vector<std::string> far = replay(changed(fractions, 0, 8 * 3, '5'), kCpu);
  REQUIRE(far.size() == 1);
  CHECK_THAT(far.front(), ContainsText(fractions + ": output: element 3 of f32[72]"));
}

TEST_CASE("fractions may differ in their last bit, whole ones may not") {
  const auto with_other_last_bit = [](const std::string& name) {
    Recording copy = recorded();
    for (RecordedCall& call : copy.calls) {
      if (call.name != name) continue;
      char& digit = call.results.front().at(7);
      digit = digit == '0' ? '1' : static_cast<char>(digit ^ 1);
    }
    return replay(copy, kCpu).size();
  };
  CHECK(with_other_last_bit("gelu, images [1, 8, 3, 3], f32, fractions") == 0);
  CHECK(with_other_last_bit("relu, images [1, 8, 3, 3], f32, integers") == 1);
}

TEST_CASE("a recording of other cases or inputs is refused") {
  Recording other = recorded();
  other.calls.front().name = "tanh, images [1, 1, 1, 1], f32, integers";
  CHECK_THAT(error_of([&] { replay(other, kCpu); }),
             ContainsText("1 recorded calls are not in the op table, the first is 'tanh, images [1, 1, 1, 1]"));
  other = recorded();
  other.calls.front().inputs = "0123456789abcdef";
  CHECK_THAT(error_of([&] { replay(other, kCpu); }), ContainsText("was recorded with other inputs: record again"));
  other = recorded();
  other.calls.front().results.pop_back();
  CHECK_THAT(error_of([&] { replay(other, kCpu); }), ContainsText("has 2 results, recorded are 1"));
  other = recorded();
  other.calls.front().results.front().pop_back();
  CHECK_THAT(error_of([&] { replay(other, kCpu); }), ContainsText("digits are not the bits of f32"));
  CHECK_THAT(error_of([] { record_op_table(kCpu, {"tangent"}); }), ContainsText("the op table has no case 'tangent'"));
}

TEST_CASE("files that are no recordings are refused with their path") {
  const TemporaryDirectory directory;
  const std::string path = directory / "recording.json";
  const auto error = [&] { return error_of([&] { read_recording(path); }); };
  CHECK(error() == path + ": cannot be opened");
  write_bytes(path, "text");
  CHECK_THAT(error(), ContainsText(path + ": is no recording of the op table: "));
  write_bytes(path, "[1, 2]");
  CHECK(error() == path + ": is no recording of the op table");
  write_bytes(path, R"({"format": "tandem op table", "version": 2, "recorded_by": {}, "calls": []})");
  CHECK(error() == path + ": has version 2, this program reads 1: record again");
  write_bytes(path, R"({"format": "tandem op table", "version": 1, "recorded_by": {}, "calls": []})");
  CHECK(error() == path + ": holds no calls");
  write_bytes(path, R"({"format": "tandem op table", "version": 1, "recorded_by": {}, "calls": [{"name": 3}]})");
  CHECK_THAT(error(), ContainsText("is no recording of the op table: "));
}
