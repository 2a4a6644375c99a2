// Who has read a word since it was last written: all readers that nothing orders before later ones.
#pragma once

#include "tandem/simulator/site.h"
#include "tandem/simulator/stamp.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tandem::simulator {

/// Lanes of one warp that read at the same epoch. `stamp` is that of lane 0, whether it is one of them or not.
struct Readers {
  std::uint64_t stamp = Stamp::kNever;
  std::uint32_t lanes = 0;
  SiteId site = 0;  // of the first of them
};

/// Lists of readers, for the words that have more than one group of them. A list is named by a number; 0 is empty.
class ReaderLists {
 public:
  using List = std::uint32_t;

  void add(List& list, const Readers& readers);
  void clear(List& list);
  List copy(List list);

  /// The first group for which `accept(group)` holds, or null.
  template <typename Accept>
  Readers* find(List list, Accept&& accept) {
    for (; list != 0; list = nodes_[list].next) {
      Node& node = nodes_[list];
      for (std::uint32_t i = 0; i < node.count; ++i)
        if (accept(node.groups[i])) return &node.groups[i];
    }
    return nullptr;
  }

  /// Drops the groups for which `unwanted(group)` holds.
  template <typename Unwanted>
  void erase_if(List& list, Unwanted&& unwanted) {
    List kept = 0;
    for (List at = list; at != 0; at = nodes_[at].next) {
      for (std::uint32_t i = 0; i < nodes_[at].count; ++i) {
        const Readers group = nodes_[at].groups[i];
        if (!unwanted(group)) add(kept, group);
      }
    }
    clear(list);
    list = kept;
  }

 private:
  struct alignas(64) Node {
    std::array<Readers, 3> groups;
    List next = 0;
    std::uint32_t count = 0;
  };

  List take_node();

  std::vector<Node> nodes_;  // the first one is none
  List free_ = 0;
};

}  // namespace tandem::simulator
