// Recordings as JSON.
#include "tandem/layers/file.h"
#include "tests/op_cases/golden/golden_recording.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace tandem::test {

namespace {

using nlohmann::ordered_json;

constexpr const char* kFormat = "tandem op table";
constexpr int kVersion = 1;

Recording recording_of(const ordered_json& file) {
  require(file.is_object() && file.value("format", "") == kFormat, "is no recording of the op table");
  require(file.at("version") == kVersion, "has version {}, this program reads {}: record again",
          file.at("version").dump(), kVersion);
  Recording recording;
  file.at("recorded_by").get_to(recording.recorded_by);
  for (const ordered_json& call : file.at("calls")) {
    recording.calls.push_back({call.at("name"), call.at("inputs"), call.at("results")});
  }
  require(!recording.calls.empty(), "holds no calls");
  return recording;
}

}  // namespace

void write_recording(const std::string& path, const Recording& recording) {
  const ordered_json header{{"format", kFormat}, {"version", kVersion}, {"recorded_by", recording.recorded_by}};
  std::string text = header.dump();
  text.back() = ',';
  text += "\n\"calls\": [";
  const char* separator = "\n";
  for (const RecordedCall& call : recording.calls) {
    text += separator + ordered_json{{"name", call.name}, {"inputs", call.inputs}, {"results", call.results}}.dump();
    separator = ",\n";
  }
  text += "\n]}\n";
  layers::AtomicFile file(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
}

Recording read_recording(const std::string& path) {
  std::ifstream file(path);
  require(file.is_open(), "{}: cannot be opened", path);
  try {
    return recording_of(ordered_json::parse(file));
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  } catch (const nlohmann::json::exception& error) {
    fail("{}: is no recording of the op table: {}", path, error.what());
  }
}

}  // namespace tandem::test
