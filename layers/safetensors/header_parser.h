// From header text to entries: syntax only. Internal to header.cpp.
#pragma once

#include "layers/safetensors/header.h"

namespace tandem::layers::safetensors {

/// Throws Error where the text is not JSON of the format's form; sizes and offsets are only known to be non-negative.
Header parse_header_json(std::string_view json, const std::string& path);

}  // namespace tandem::layers::safetensors
