// Lists of readers: nodes of three groups each, which fit into a cache line.
#include "tandem/simulator/readers.h"

#include <limits>
#include <stdexcept>

namespace tandem::simulator {

ReaderLists::List ReaderLists::take_node() {
  if (free_ != 0) {
    const List node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {};
    return node;
  }
  if (nodes_.size() == std::numeric_limits<List>::max())
    throw std::length_error("simulator: too many words with too many readers");
  if (nodes_.empty()) nodes_.emplace_back();
  nodes_.emplace_back();
  return static_cast<List>(nodes_.size() - 1);
}

void ReaderLists::add(List& list, const Readers& readers) {
  if (list == 0 || nodes_[list].count == nodes_[list].groups.size()) {
    const List node = take_node();
    nodes_[node].next = list;
    list = node;
  }
  Node& first = nodes_[list];
  first.groups[first.count++] = readers;
}

void ReaderLists::clear(List& list) {
  while (list != 0) {
    const List next = nodes_[list].next;
    nodes_[list].next = free_;
    free_ = list;
    list = next;
  }
}

ReaderLists::List ReaderLists::copy(List list) {
  List result = 0;
  for (; list != 0; list = nodes_[list].next)
    for (std::uint32_t i = 0; i < nodes_[list].count; ++i) add(result, Readers(nodes_[list].groups[i]));
  return result;
}

}  // namespace tandem::simulator
