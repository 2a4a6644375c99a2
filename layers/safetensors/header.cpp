// Checks of a safetensors header that concern the data: sizes, offsets, dtypes.
#include "tandem/layers/safetensors/header.h"

#include "tandem/layers/safetensors/header_parser.h"

#include <nlohmann/json.hpp>

namespace tandem::layers::safetensors {

namespace {

/// False where the product leaves the range of a signed 64-bit number; the empty tensor's other sizes count, too, as
/// strides are made from them.
bool multiply_sizes(const Shape& shape, std::int64_t element_bytes, std::int64_t& bytes) {
  std::int64_t positive = element_bytes;
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(positive, size, &positive)) return false;
  }
  bytes = empty ? 0 : positive;
  return true;
}

void check_names(const std::vector<Entry>& entries, const std::string& path) {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail("{}: bad safetensors header: key {} is there twice", path, escaped(*twice));
}

}  // namespace

std::string escaped(std::string_view text) {
  constexpr std::size_t kShown = 80;
  const std::string all = nlohmann::json(text.substr(0, kShown + 1))
                              .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  return all.size() <= kShown ? all : all.substr(0, kShown) + "...\"";
}

std::string_view format_name(DType dtype) {
  constexpr std::string_view kFormatNames[] = {"F64", "F32", "F16", "BF16", "I64", "I32", "U8"};
  return kFormatNames[static_cast<int>(dtype)];
}

Header parse_header(std::string_view json, std::int64_t data_bytes, const std::string& path) {
  require(!json.empty() && json.front() == '{', "{}: not a safetensors file: its header does not start with '{{'",
          path);
  const std::size_t null = json.find('\0');  // the parser would take it for the end and pass over what follows
  require(null == std::string_view::npos, "{}: bad safetensors header: null byte at {}", path, null);
  Header header = parse_header_json(json, path);
  check_names(header.entries, path);

  std::vector<const Entry*> by_place;
  for (const Entry& entry : header.entries) {
    std::int64_t bytes = 0;
    require(multiply_sizes(entry.shape, size_of(entry.dtype), bytes),
            "{}: tensor {} of shape {} is too large to address", path, escaped(entry.name), to_string(entry.shape));
    require(entry.begin <= entry.end, "{}: tensor {} ends at {}, before its begin {}", path, escaped(entry.name),
            entry.end, entry.begin);
    require(entry.end - entry.begin == bytes, "{}: tensor {} of {} {} takes {} bytes, but its data_offsets span {}",
            path, escaped(entry.name), format_name(entry.dtype), to_string(entry.shape), bytes,
            entry.end - entry.begin);
    by_place.push_back(&entry);
  }
  std::sort(by_place.begin(), by_place.end(), [](const Entry* a, const Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::int64_t filled = 0;
  for (const Entry* entry : by_place) {
    require(entry->begin >= filled, "{}: tensor {} begins at {}, inside another one that ends at {}", path,
            escaped(entry->name), entry->begin, filled);
    require(entry->begin == filled, "{}: {} bytes before tensor {} belong to no tensor", path, entry->begin - filled,
            escaped(entry->name));
    filled = entry->end;
  }
  require(filled <= data_bytes, "{}: truncated: its tensors take {} bytes, the file holds {}", path, filled,
          data_bytes);
  require(filled == data_bytes, "{}: {} bytes after the last tensor belong to no tensor", path, data_bytes - filled);
  return header;
}

}  // namespace tandem::layers::safetensors
