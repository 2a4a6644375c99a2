// Sharing out GPUs by their UUIDs.
#include "tandem/comm/launch/gpu_sharing.h"

#include "tandem/core/device_query.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tandem::comm {

namespace {

/// "NODE\nUUID\nUUID\n...", and back.
std::string text_of(const VisibleGpus& gpus) {
  std::string text = fmt::format("{}\n", gpus.node);
  for (const std::string& uuid : gpus.uuids) text += uuid + "\n";
  return text;
}

VisibleGpus read_text(const std::string& text) {
  VisibleGpus gpus;
  std::size_t at = text.find('\n');
  gpus.node = std::stoi(text.substr(0, at));
  for (++at; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    gpus.uuids.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return gpus;
}

}  // namespace

std::vector<int> share_out_gpus(std::span<const VisibleGpus> ranks) {
  std::map<int, std::size_t> ranks_of_node;
  std::vector<std::size_t> local_rank;
  for (const VisibleGpus& rank : ranks) local_rank.push_back(ranks_of_node[rank.node]++);

  // Who has the least to choose from chooses first.
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a].uuids.size() < ranks[b].uuids.size(); });

  std::map<std::pair<int, std::string>, int> users;
  std::vector<int> chosen(ranks.size(), -1);
  for (const std::size_t rank : order) {
    const auto& [node, uuids] = ranks[rank];
    if (uuids.empty()) continue;
    std::size_t best = local_rank[rank] % uuids.size();
    for (std::size_t step = 1; step < uuids.size(); ++step) {
      const std::size_t other = (local_rank[rank] + step) % uuids.size();
      if (users[{node, uuids[other]}] < users[{node, uuids[best]}]) best = other;
    }
    ++users[{node, uuids[best]}];
    chosen[rank] = static_cast<int>(best);
  }
  return chosen;
}

Device share_out_gpus(ProcessGroup& group, Device wanted) {
  VisibleGpus mine{group.node(), {}};
  if (wanted.type == DeviceType::cuda) {
    for (const DeviceDescription& device : list_devices()) {
      if (device.device.type == DeviceType::cuda) mine.uuids.push_back(device.uuid);
    }
  }
  std::vector<VisibleGpus> ranks;
  for (const std::string& text : group.all_gather_bytes(text_of(mine))) ranks.push_back(read_text(text));
  const int index = share_out_gpus(ranks)[static_cast<std::size_t>(group.rank())];
  return index < 0 ? wanted : Device{wanted.type, index};
}

}  // namespace tandem::comm
