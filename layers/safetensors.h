// Weights in files: the safetensors format (https://github.com/huggingface/safetensors), which PyTorch reads and
// writes.
//
//   u64 N, little endian | N bytes of JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//   "__metadata__": {"key": "value"}} | the elements of all tensors, row-major, without gaps
#pragma once

#include "tandem/layers/module.h"

#include <map>
#include <string>

namespace tandem::layers {

/// Texts by name, which a file keeps beside its tensors.
using Metadata = std::map<std::string, std::string>;

/// What a file holds.
struct SafetensorsFile {
  NamedTensors tensors;  ///< row-major CPU tensors, in the order of the header
  Metadata metadata;     ///< empty where the file has none
};

/// Writes tensors with their logical shapes (N,C,H,W and K,C,R,S, whatever their strides). `path` holds either what it
/// held before or the whole new file, at every moment: the data goes to a temporary file in the same directory, to
/// disk, and is then renamed. Throws Error for undefined tensors, names that are double, "__metadata__" or not UTF-8,
/// for more or longer names than are read again, and where the file cannot be written; no temporary file is left then.
void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata = {});

/// Reads a file that may come from anywhere. Takes no more memory than twice the file's size and 64 MiB, runs nothing,
/// and throws Error, naming file and tensor, unless every rule of the format holds: header of at most 100,000,000 bytes
/// inside the file, UTF-8 JSON object without duplicate keys, metadata of strings only, tensors that fill the data
/// exactly, without hole, overlap or rest. Beyond the format's rules, more than 100,000 tensors or entries of metadata
/// are refused, and texts longer than 4 MiB. Reads F64, F32, F16, BF16, I64, I32, U8 and up to 8 dimensions; other
/// dtypes of the format are refused by name.
/// Example:
///     #include "tandem/layers/linear.h"
///     Initializer initializer(1);
///     Linear layer({.in = 256, .out = 10}, initializer);
///     write_safetensors("linear.safetensors", layer.state_dict(), {{"epochs", "3"}});
///     const SafetensorsFile file = read_safetensors("linear.safetensors");
///     layer.load_state_dict(file.tensors);
///     const std::string epochs = file.metadata.at("epochs");  // "3"
SafetensorsFile read_safetensors(const std::string& path);

}  // namespace tandem::layers
