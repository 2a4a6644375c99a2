// Writing safetensors files.
#include "tandem/layers/file.h"
#include "tandem/layers/safetensors/header_parser.h"

#include <nlohmann/json.hpp>

#include <set>

namespace tandem::layers {

namespace {

/// Where tensors lie in the data: wide elements first, so that each tensor starts on a multiple of its element size.
std::vector<std::size_t> order_in_file(const NamedTensors& tensors) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].second.dtype()) > size_of(tensors[b].second.dtype());
  });
  return order;
}

std::string make_header(const std::string& path, const NamedTensors& tensors, const std::vector<std::size_t>& order,
                        const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(safetensors::kMetadataKey)] = metadata;
  std::vector<std::pair<std::int64_t, std::int64_t>> offsets(tensors.size());
  std::int64_t end = 0;
  for (const std::size_t i : order) {
    const std::int64_t begin = end;
    end += tensors[i].second.numel() * size_of(tensors[i].second.dtype());
    offsets[i] = {begin, end};
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    header[name] = {{"dtype", safetensors::format_name(tensor.dtype())},
                    {"shape", std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())},
                    {"data_offsets", {offsets[i].first, offsets[i].second}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    fail("{}: cannot write: a tensor name or metadata text is not UTF-8", path);
  }
  // What the reader refuses is not written.
  require(!safetensors::long_token(text), "{}: cannot write: a tensor name or metadata text is longer than {} MiB",
          path, safetensors::kMaxTokenBytes >> 20);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins on a multiple of 8
  require(static_cast<std::int64_t>(text.size()) <= safetensors::kMaxHeaderBytes,
          "{}: cannot write: a header of {} bytes, at most {} are allowed", path, text.size(),
          safetensors::kMaxHeaderBytes);
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  require(tensors.size() <= safetensors::kMaxTensors && metadata.size() <= safetensors::kMaxMetadata,
          "{}: cannot write: {} tensors and {} entries of metadata, at most {} and {} are allowed", path,
          tensors.size(), metadata.size(), safetensors::kMaxTensors, safetensors::kMaxMetadata);
  std::set<std::string_view> names{safetensors::kMetadataKey};
  for (const auto& [name, tensor] : tensors) {
    require(tensor.defined(), "{}: cannot write: tensor {} is undefined", path, safetensors::escaped(name));
    require(names.insert(name).second, "{}: cannot write: the name {} is given twice or reserved", path,
            safetensors::escaped(name));
  }
  const std::vector<std::size_t> order = order_in_file(tensors);
  const std::string header = make_header(path, tensors, order, metadata);

  AtomicFile file(path);
  const std::uint64_t header_bytes = header.size();
  file.write(&header_bytes, sizeof(header_bytes));
  file.write(header.data(), static_cast<std::int64_t>(header.size()));
  const MemoryTagScope scope(MemoryTag::workspace);
  for (const std::size_t i : order) {
    const Tensor dense = tensors[i].second.detach().to(Device{}).contiguous();
    if (dense.numel() > 0) file.write(dense.raw_data(), dense.numel() * size_of(dense.dtype()));
  }
  file.commit();
}

}  // namespace tandem::layers
