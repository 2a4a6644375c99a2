// Sorting by what it is, and into rows without overlap.
#include "tandem/train/profile/communication_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::train {

namespace {

/// What may go into a row, with what lies within it.
struct Block {
  RowEvent whole;
  std::vector<RowEvent> inner = {};
};

bool is_message(const CommunicationStep& step) { return step.peer >= 0; }

/// Parts that can be seen, where there are several.
void add_parts(const CommunicationEvent& event, const CommunicationStep& step, std::vector<RowEvent>& parts) {
  constexpr std::int64_t kLeastNs = 100;
  std::int64_t begin = step.begin_ns;
  for (const auto& [name, length] :
       {std::pair{"wait", step.wait_ns}, std::pair{"copy", step.copy_ns}, std::pair{"combine", step.reduce_ns}}) {
    if (length >= kLeastNs && length < step.end_ns() - step.begin_ns)
      parts.push_back(
          {.name = name, .begin_ns = begin, .end_ns = begin + length, .event = &event, .step = &step, .is_part = true});
    begin += length;
  }
}

Block block_of(const CommunicationEvent& event) {
  Block block{
      {.name = event.name, .begin_ns = event.begin_ns, .end_ns = event.begin_ns + event.duration_ns, .event = &event}};
  for (const CommunicationStep& step : event.steps) {
    if (is_message(step)) continue;
    block.inner.push_back({.name = std::string(step.action),
                           .begin_ns = step.begin_ns,
                           .end_ns = step.end_ns(),
                           .event = &event,
                           .step = &step});
    add_parts(event, step, block.inner);
  }
  return block;
}

Block block_of(const CommunicationEvent& event, const CommunicationStep& step) {
  Block block{{.name = std::string(step.action),
               .begin_ns = step.begin_ns,
               .end_ns = step.end_ns(),
               .event = &event,
               .step = &step}};
  add_parts(event, step, block.inner);
  return block;
}

class RowMaker {
 public:
  /// Puts blocks of one kind each into the first row that is free.
  void add(const std::string& kind, std::vector<Block> blocks) {
    std::ranges::stable_sort(blocks, {}, [](const Block& block) { return block.whole.begin_ns; });
    std::vector<std::int64_t> ends;  // of each row of this kind
    std::vector<std::vector<RowEvent>> rows;
    for (Block& block : blocks) {
      const auto free = std::ranges::find_if(ends, [&](std::int64_t end) { return end <= block.whole.begin_ns; });
      const auto row = static_cast<std::size_t>(free - ends.begin());
      if (free == ends.end()) {
        ends.emplace_back();
        rows.emplace_back();
      }
      ends[row] = block.whole.end_ns;
      rows[row].push_back(std::move(block.whole));
      std::ranges::move(block.inner, std::back_inserter(rows[row]));
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const int number = static_cast<int>(result_.names.size());
      result_.names.push_back(row == 0 ? kind : fmt::format("{} ({})", kind, row + 1));
      for (RowEvent& event : rows[row]) {
        event.row = number;
        result_.events.push_back(std::move(event));
      }
    }
  }
  CommunicationRows take() { return std::move(result_); }

 private:
  CommunicationRows result_;
};

}  // namespace

CommunicationRows communication_rows(const std::vector<CommunicationEvent>& events) {
  std::vector<Block> buckets, operations;
  int ranks = 0;
  for (const CommunicationEvent& event : events) {
    (event.kind == CommunicationKind::bucket ? buckets : operations).push_back(block_of(event));
    for (const CommunicationStep& step : event.steps) ranks = std::max(ranks, step.peer + 1);
  }
  RowMaker rows;
  rows.add("buckets", std::move(buckets));
  rows.add("collectives", std::move(operations));
  for (int peer = 0; peer < ranks; ++peer) {
    std::vector<Block> sent, received;
    for (const CommunicationEvent& event : events)
      for (const CommunicationStep& step : event.steps)
        if (step.peer == peer) (step.action == "send" ? sent : received).push_back(block_of(event, step));
    rows.add(fmt::format("to rank {}", peer), std::move(sent));
    rows.add(fmt::format("from rank {}", peer), std::move(received));
  }
  return rows.take();
}

}  // namespace tandem::train
