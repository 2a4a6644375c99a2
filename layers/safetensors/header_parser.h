// From header text to entries: syntax only. Internal to this folder.
#pragma once

#include "tandem/layers/safetensors/header.h"

#include <optional>

namespace tandem::layers::safetensors {

/// Where a text or number begins that is longer than kMaxTokenBytes, if there is one.
std::optional<std::size_t> long_token(std::string_view json);

/// Throws Error where the text is not JSON of the format's form. Sizes and offsets are only known to be non-negative,
/// and tensors may have one name.
Header parse_header_json(std::string_view json, const std::string& path);

}  // namespace tandem::layers::safetensors
