// The JSON header of a safetensors file. Internal to this library.
#pragma once

#include "tandem/layers/safetensors.h"

namespace tandem::layers::safetensors {

constexpr std::int64_t kMaxHeaderBytes = 100'000'000;
// A tensor or an entry of metadata takes a few hundred bytes of memory where it may take ten in the header, and a text
// several times its length while it is parsed: these limits keep that within 64 MiB.
constexpr std::size_t kMaxTensors = 100'000, kMaxMetadata = 100'000;
constexpr std::size_t kMaxTokenBytes = std::size_t{4} << 20;
constexpr std::string_view kMetadataKey = "__metadata__";

/// One tensor of the header; offsets count from the end of the header.
struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t begin = 0, end = 0;
};

struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

/// Parses a header and checks it against the `data_bytes` that follow it. Throws Error, beginning with `path`.
Header parse_header(std::string_view json, std::int64_t data_bytes, const std::string& path);

/// The format's name of a dtype: "F32".
std::string_view format_name(DType dtype);

/// `text` in quotes, with everything but printable ASCII escaped, cut where it is very long: file contents in messages.
std::string escaped(std::string_view text);

}  // namespace tandem::layers::safetensors
