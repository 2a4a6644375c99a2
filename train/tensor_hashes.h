// Hashes of tensors in a file's metadata, by which damage is found when the file is read.
#pragma once

#include "tandem/layers/safetensors.h"

#include <string>
#include <string_view>

namespace tandem::train {

/// Of metadata: "xxh3.<name>" is the hash of that tensor, 16 hexadecimal digits.
inline constexpr std::string_view kHashPrefix = "xxh3.";

/// Writes a safetensors file whose metadata has the hash of each tensor beside what is given. Returns a hash of all of
/// these, by which another file can name this one. Throws Error as
/// layers::write_safetensors() does, and for undefined tensors and metadata that begins with kHashPrefix.
std::string write_hashed(const std::string& path, const NamedTensors& tensors, layers::Metadata metadata);

enum class HashesAre { required, checked_where_there };

struct HashedFile {
  layers::SafetensorsFile file;
  std::string hash;  ///< what write_hashed() returned; "" for a file without hashes
};

/// Reads such a file; the hashes are not in the metadata of the result. Throws Error as layers::read_safetensors()
/// does, and where a tensor has another hash or is not there. Without hashes, as of another program's file, it is
/// refused where they are required.
HashedFile read_hashed(const std::string& path, HashesAre hashes);

}  // namespace tandem::train
