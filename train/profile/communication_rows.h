// Operations between ranks as rows of a trace.
#pragma once

#include "tandem/core/communication_event.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::train {

/// What is shown in one row: lies within another one of it, or beside it.
struct RowEvent {
  int row = 0;
  std::string name;
  std::int64_t begin_ns = 0, end_ns = 0;
  const CommunicationEvent* event = nullptr;
  const CommunicationStep* step = nullptr;  ///< null: the whole event
  bool is_part = false;                     ///< of the step: waiting, copying or reducing
};

struct CommunicationRows {
  std::vector<std::string> names;  ///< "buckets", "collectives", "to rank 1", "from rank 1", "buckets (2)"
  std::vector<RowEvent> events;    ///< by row and rising begin, what lies within another behind that
};

/// Buckets, operations, with their steps in shared memory within them, and messages by rank: as many rows of each as
/// are needed for what runs at the same time. `events` must outlive the result.
CommunicationRows communication_rows(const std::vector<CommunicationEvent>& events);

}  // namespace tandem::train
