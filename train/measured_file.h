// JSON files that keep measurements from run to run. Not for headers that are installed.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tandem::train {

struct MeasuredFormat {
  std::string_view name;   ///< the file's "format"
  int version;             ///< the file's "version"
  std::string_view what;   ///< "tuning file"
  std::string_view maker;  ///< the option that makes it anew
  std::int64_t most_bytes = 8 << 20;
};

/// Gives `read` what the file holds. Returns "" if that worked or there is no such file yet, else why the file is of no
/// use, beginning with its name: another file, damaged, of another version, or what `read` threw as Error.
std::string read_measured_file(const std::string& path, const MeasuredFormat& format,
                               const std::function<void(const nlohmann::ordered_json&)>& read);

/// Whether write_measured_file() may take this name: of such a file, whole or damaged, of an empty one, or of none; not
/// of one that a newer program wrote, nor of one that is too large to be read.
bool can_hold_measured(const std::string& path, const MeasuredFormat& format);

/// Writes all of it behind the file's "format" and "version" or, throwing Error, nothing, as where it would be too
/// large to be read.
void write_measured_file(const std::string& path, const MeasuredFormat& format, const nlohmann::ordered_json& contents);

}  // namespace tandem::train
