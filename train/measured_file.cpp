// What is wrong with such a file, in one line.
#include "tandem/train/measured_file.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/parse_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::string& path, const MeasuredFormat& format) {
  const layers::InputFile file(path);
  require(file.size() <= format.most_bytes, "{}: larger than any {}; name another", path, format.what);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(text.data(), file.size(), 0);
  return text;
}

bool is_there(const std::string& path) {
  std::error_code missing;
  return std::filesystem::exists(path, missing);
}

}  // namespace

std::string read_measured_file(const std::string& path, const MeasuredFormat& format,
                               const std::function<void(const Json&)>& read) {
  if (!is_there(path)) return "";
  try {
    const std::string text = text_of(path, format);
    require(text.find(format.name) != text.npos, "not a {}", format.what);
    const Json json = parse_json(text, true);
    require(json.at("format").get<std::string>() == format.name, "not a {}", format.what);
    const Json& stated = json.at("version");
    require(stated.is_number_integer(), "its version is {}", stated.dump());
    const auto version = stated.get<std::int64_t>();
    require(version == format.version, "version {} of the format, this is for {}; {}", version, format.version,
            version < format.version ? "measure anew" : "name another file, as no older program replaces it");
    read(json);
  } catch (const Error& error) {
    const std::string_view reason = error.what();
    return reason.starts_with(path) ? std::string(reason) : fmt::format("{}: {}", path, reason);
  } catch (const Json::parse_error& error) {
    return fmt::format("{}: damaged at byte {}: {} makes it anew", path, error.byte, format.maker);
  } catch (const Json::exception&) {
    return fmt::format("{}: damaged: something of it is missing or no proper value: {} makes it anew", path,
                       format.maker);
  }
  return "";
}

bool can_hold_measured(const std::string& path, const MeasuredFormat& format) {
  if (!is_there(path)) return true;
  const layers::InputFile file(path);
  std::string beginning(static_cast<std::size_t>(std::min<std::int64_t>(file.size(), 256)), '\0');
  file.read(beginning.data(), static_cast<std::int64_t>(beginning.size()), 0);
  if (beginning.empty()) return true;
  if (file.size() > format.most_bytes || beginning.find(format.name) == std::string::npos) return false;
  const Json json = parse_json(text_of(path, format));
  if (!json.is_object() || !json.contains("version")) return true;
  const Json& version = json.at("version");
  return !version.is_number_integer() || version.get<std::int64_t>() <= format.version;
}

void write_measured_file(const std::string& path, const MeasuredFormat& format, const Json& contents) {
  Json json{{"format", format.name}, {"version", format.version}};
  json.update(contents);
  const std::string text = json.dump(1) + "\n";
  require(static_cast<std::int64_t>(text.size()) <= format.most_bytes,
          "{}: would become larger than any {}; name another", path, format.what);
  layers::write_file(path, text);
}

}  // namespace tandem::train
