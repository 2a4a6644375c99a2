// Writing and checking hashes.
#include "tandem/train/tensor_hashes.h"

#include "tandem/comm/ddp/hash.h"
#include "tandem/core/error.h"

#include <map>
#include <utility>

namespace tandem::train {

namespace {

std::string hash_text(const Tensor& tensor) { return fmt::format("{:016x}", comm::hash_tensor(tensor)); }

/// Takes the hashes out of the metadata.
std::map<std::string, std::string> take_hashes(layers::Metadata& metadata) {
  std::map<std::string, std::string> hashes;
  for (auto entry = metadata.begin(); entry != metadata.end();) {
    if (!entry->first.starts_with(kHashPrefix)) {
      ++entry;
      continue;
    }
    hashes[entry->first.substr(kHashPrefix.size())] = entry->second;
    entry = metadata.erase(entry);
  }
  return hashes;
}

std::string hash_of_all(const std::map<std::string, std::string>& hashes) {
  std::string text;
  for (const auto& [name, hash] : hashes) text += fmt::format("{}={}\n", name, hash);
  return fmt::format("{:016x}", comm::hash_bytes(text.data(), text.size()));
}

}  // namespace

std::string write_hashed(const std::string& path, const NamedTensors& tensors, layers::Metadata metadata) {
  for (const auto& [key, value] : metadata) {
    require(!key.starts_with(kHashPrefix),
            "{}: cannot write: metadata may not have the key {}: those with {} are the hashes; choose another", path,
            key, kHashPrefix);
  }
  std::map<std::string, std::string> hashes;
  for (const auto& [name, tensor] : tensors) {
    require(tensor.defined(), "{}: cannot write: tensor {} is undefined", path, name);
    hashes[name] = metadata[fmt::format("{}{}", kHashPrefix, name)] = hash_text(tensor);
  }
  layers::write_safetensors(path, tensors, metadata);
  return hash_of_all(hashes);
}

HashedFile read_hashed(const std::string& path, HashesAre needed) {
  layers::SafetensorsFile file = layers::read_safetensors(path);
  std::map<std::string, std::string> hashes = take_hashes(file.metadata);
  const std::string_view what = needed == HashesAre::required ? "checkpoint" : "file";
  if (hashes.empty() && needed == HashesAre::checked_where_there) return {std::move(file), ""};
  const std::string hash_of_file = hash_of_all(hashes);
  for (const auto& [name, tensor] : file.tensors) {
    const auto hash = hashes.find(name);
    require(hash != hashes.end(), "{}: has no hash of tensor {}: it is no file of a checkpoint", path, name);
    const std::string found = hash_text(tensor);
    require(found == hash->second, "{}: damaged: tensor {} has the hash {}, and {} was written; take another {}", path,
            name, found, hash->second, what);
    hashes.erase(hash);
  }
  require(hashes.empty(), "{}: damaged: tensor {} is not there; take another {}", path,
          hashes.empty() ? "" : hashes.begin()->first, what);
  return {std::move(file), hash_of_file};
}

}  // namespace tandem::train
