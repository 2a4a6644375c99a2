// Field by field; a file of another kind, or one that was cut, is an error.
#include "tandem/train/report/read_profile.h"

#include "tandem/core/error.h"
#include "tandem/train/report/json_fields.h"

namespace tandem::train::report {
namespace {

constexpr std::int64_t kMostBytes = 16 << 20;
constexpr std::size_t kMostEntries = 1000;

const Json& list_in(const Json& json, const char* name, const std::string& path) {
  const Json* const list = find_field(json, name);
  require(list != nullptr && list->is_array() && list->size() <= kMostEntries,
          "{}: '{}' is no list of at most {} entries", path, name, kMostEntries);
  return *list;
}

std::vector<double> numbers_in(const Json& list) {
  std::vector<double> numbers;
  for (const Json& value : list) numbers.push_back(value.is_number() ? value.get<double>() : kMissing);
  return numbers;
}

std::vector<Profile::Op> ops_in(const Json& json, const char* name, const std::string& path) {
  std::vector<Profile::Op> ops;
  for (const Json& op : list_in(json, name, path))
    ops.push_back({text_field(op, "name"), number_field(op, "calls"), number_field(op, "seconds"),
                   number_field(op, "flops"), number_field(op, "bytes")});
  return ops;
}

void read_memory(Profile& profile, const Json& json, const std::string& path) {
  const Json* const memory = find_field(json, "memory");
  require(memory != nullptr && memory->is_object(), "{}: 'memory' is no object", path);
  profile.memory_seconds = numbers_in(list_in(*memory, "seconds", path));
  const Json* const bytes = find_field(*memory, "bytes");
  require(bytes != nullptr && bytes->is_object(), "{}: 'memory.bytes' is no object", path);
  for (const auto& item : bytes->items()) {
    require(item.value().is_array() && item.value().size() == profile.memory_seconds.size(),
            "{}: 'memory.bytes.{}' has not one number for each time", path, item.key());
    profile.memory.emplace_back(item.key(), numbers_in(item.value()));
  }
}

}  // namespace

Profile read_profile(const std::string& path) {
  const Json json = read_json(path, kMostBytes);
  Profile profile;
  profile.steps = number_field(json, "steps");
  profile.seconds = number_field(json, "seconds");
  profile.flops_per_second = number_field(json, "flops_per_second");
  profile.bytes_per_second = number_field(json, "bytes_per_second");
  profile.peak_bytes = number_field(json, "peak_bytes");
  profile.device_times_from = text_field(json, "device_times_from");
  profile.ops = ops_in(json, "ops", path);
  if (find_field(json, "kernels") != nullptr) profile.kernels = ops_in(json, "kernels", path);
  for (const Json& storage : list_in(json, "largest_at_peak", path))
    profile.largest_at_peak.push_back({number_field(storage, "bytes"), text_field(storage, "kind"),
                                       text_field(storage, "made_in"), text_field(storage, "name")});
  read_memory(profile, json, path);
  return profile;
}

}  // namespace tandem::train::report
