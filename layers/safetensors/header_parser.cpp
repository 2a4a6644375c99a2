// The header parser: events of a streaming JSON parser, which, unlike a parsed document, shows duplicate keys and
// numbers beyond 64 bits.
#include "tandem/layers/safetensors/header_parser.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <set>

namespace tandem::layers::safetensors {

namespace {

constexpr std::array<std::string_view, 15> kOtherDTypes{"BOOL",    "F4",      "F6_E2M3", "F6_E3M2",     "I8",
                                                        "F8_E5M2", "F8_E4M3", "F8_E8M0", "I16",         "U16",
                                                        "U32",     "U64",     "C64",     "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

class HeaderEvents {
 public:
  using json = nlohmann::json;

  explicit HeaderEvents(const std::string& path) : path_(path) {}

  Header take() { return std::move(header_); }

  bool key(std::string& text) {
    if (place_ == Place::top) {
      at_metadata_ = text == kMetadataKey;
      if (at_metadata_ && std::exchange(had_metadata_, true)) bad("key {} is there twice", escaped(text));
      if (at_metadata_) return true;
      if (header_.entries.size() == kMaxTensors) bad("more than {} tensors", kMaxTensors);
      header_.entries.emplace_back().name = std::string(text);  // a copy: the parser's own has spare capacity
    } else if (place_ == Place::metadata) {
      if (header_.metadata.contains(text)) bad("key {} is there twice in the metadata", escaped(text));
      if (header_.metadata.size() == kMaxMetadata) bad("more than {} entries of metadata", kMaxMetadata);
      metadata_key_ = std::string(text);
    } else {
      if (text != "dtype" && text != "shape" && text != "data_offsets")
        bad("{} has an unknown key {}", tensor(), escaped(text));
      if (!fields_.insert(text).second) bad("{} has the key {} twice", tensor(), escaped(text));
      field_ = text;
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = at_metadata_ ? Place::metadata : Place::tensor;
      fields_.clear();
    } else {
      misplaced("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!fields_.contains(field)) bad("{} has no {}", tensor(), field);
      }
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(std::size_t /*size*/) {
    if (place_ != Place::tensor || field_ == "dtype") misplaced("an array");
    place_ = field_ == "shape" ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && offsets_ != 2) bad("{} has {} data_offsets instead of 2", tensor(), offsets_);
    place_ = Place::tensor;
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(std::string(metadata_key_), std::string(text));
    } else if (place_ == Place::tensor && field_ == "dtype") {
      entry().dtype = parse_dtype(text);
    } else {
      misplaced("a text");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) {
    if (place_ != Place::shape && place_ != Place::offsets) misplaced("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      bad("{} has the number {}, too large", tensor(), value);
    const auto number = static_cast<std::int64_t>(value);
    if (place_ == Place::offsets) {
      ++offsets_;
      (offsets_ == 1 ? entry().begin : entry().end) = number;
      return true;
    }
    if (entry().shape.rank() == kMaxRank) bad("{} has more than {} dimensions", tensor(), kMaxRank);
    entry().shape.push_back(number);
    return true;
  }

  bool number_integer(std::int64_t value) {
    if (place_ != Place::shape && place_ != Place::offsets) misplaced("a number");
    bad("{} has the number {} where none below 0 may be", tensor(), value);
  }

  bool number_float(double /*value*/, const std::string& text) {
    if (place_ != Place::shape && place_ != Place::offsets) misplaced("a number");
    bad("{} has the number {} where a whole one below 2^63 must be", tensor(), escaped(text));
  }

  bool null() { misplaced("null"); }
  bool boolean(bool /*value*/) { misplaced("true or false"); }
  bool binary(json::binary_t& /*value*/) { misplaced("binary data"); }

  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) {
    const bool utf8 = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    bad("{} at byte {}", utf8 ? "text that is not UTF-8" : "not JSON", position);
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };

  template <typename... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail("{}: bad safetensors header: {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void misplaced(std::string_view what) const {
    switch (place_) {
      case Place::outside:
        bad("{} instead of an object", what);
      case Place::top:
        bad("{} under {}, where an object must be", what, at_metadata_ ? escaped(kMetadataKey) : escaped(entry().name));
      case Place::metadata:
        bad("{} under {} of the metadata, where a text must be", what, escaped(metadata_key_));
      default:
        bad("{} has {} in its {}", tensor(), what, field_);
    }
  }

  DType parse_dtype(const std::string& text) const {
    for (int i = 0; i < kDTypeCount; ++i) {
      if (format_name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
    }
    const bool known = std::find(kOtherDTypes.begin(), kOtherDTypes.end(), text) != kOtherDTypes.end();
    bad("{} has the {} dtype {}; this program reads F64, F32, F16, BF16, I64, I32 and U8", tensor(),
        known ? "unsupported" : "unknown", escaped(text));
  }

  const Entry& entry() const { return header_.entries.back(); }
  Entry& entry() { return header_.entries.back(); }
  std::string tensor() const { return "tensor " + escaped(entry().name); }

  const std::string& path_;
  Header header_;
  Place place_ = Place::outside;
  std::set<std::string, std::less<>> fields_;
  bool at_metadata_ = false;  // the value of __metadata__ comes next, or is being read
  bool had_metadata_ = false;
  std::string metadata_key_, field_;
  int offsets_ = 0;
};

}  // namespace

std::optional<std::size_t> long_token(std::string_view json) {
  bool in_text = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_text && c == '\\') {
      ++at;
    } else if (c == '"') {
      in_text = !in_text;
      begin = at + 1;
    } else if (!in_text && std::string_view("{}[],: \t\n\r").find(c) != std::string_view::npos) {
      begin = at + 1;
    }
    if (at + 1 - begin > kMaxTokenBytes) return begin;
  }
  return std::nullopt;
}

Header parse_header_json(std::string_view json, const std::string& path) {
  const auto too_long = long_token(json);  // the parser would keep copies of it
  require(!too_long, "{}: bad safetensors header: the text or number at byte {} is longer than {} MiB", path,
          too_long.value_or(0), kMaxTokenBytes >> 20);
  HeaderEvents events(path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);  // every error throws
  return events.take();
}

}  // namespace tandem::layers::safetensors
