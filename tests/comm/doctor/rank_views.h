// Ranks that show what a test needs.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::test {

using comm::CollectiveKind;
using comm::GroupView;
using comm::OperationView;
using comm::ProcessState;
using comm::RankView;

inline OperationView sum(std::uint64_t number, std::int64_t count = 4) {
  return {.number = number, .kind = CollectiveKind::all_reduce, .dtype = DType::f32, .count = count};
}

inline OperationView receive_from(int rank) {
  return {.number = 1, .kind = CollectiveKind::receive, .dtype = DType::f32, .peer = rank, .count = 4};
}

inline OperationView send_to(int rank) {
  return {.number = 1, .kind = CollectiveKind::send, .dtype = DType::f32, .peer = rank, .count = 4};
}

inline OperationView broadcast_from(int rank, std::uint64_t number) {
  return {.number = number, .kind = CollectiveKind::broadcast, .dtype = DType::f32, .peer = rank, .count = 4};
}

/// A rank that has done collective `finished`.
inline RankView busy(int rank, std::uint64_t finished) {
  RankView view;
  view.rank = rank;
  view.is_known = true;
  view.host = "h";
  view.process = 400 + rank;
  view.state = ProcessState::runs;
  view.started = view.finished = finished;
  view.finished_ago = 2.9;
  if (finished > 0) view.collectives = {sum(finished)};
  return view;
}

/// One that waits for an operation.
inline RankView waits(int rank, const OperationView& operation) {
  RankView view = busy(rank, operation.is_message() ? 5 : operation.number - 1);
  view.is_waiting = true;
  view.waits_for = operation;
  view.waiting_time = 2.9;
  if (!operation.is_message()) {
    view.started = operation.number;
    view.collectives.push_back(operation);
  }
  return view;
}

/// `view`, but in a process of this state.
inline RankView in_state(RankView view, ProcessState state) {
  view.state = state;
  return view;
}

/// `view`, but has also begun collective `number`.
inline RankView has_begun(RankView view, std::uint64_t number) {
  view.started = number;
  view.collectives.push_back(sum(number));
  return view;
}

inline GroupView group_of(std::vector<RankView> ranks) {
  GroupView group;
  group.ranks = std::move(ranks);
  return group;
}

/// A rank of another host of which nothing has been heard for a while.
inline RankView silent(int rank, std::uint64_t finished, const std::string& host) {
  RankView view = busy(rank, finished);
  view.host = host;
  view.is_known = false;
  view.is_far = true;
  view.heard_ago = 3.1;
  return view;
}

}  // namespace tandem::test
