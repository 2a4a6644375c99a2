// Announcements and their comparison.
#include "tandem/comm/backends/native/collective_agreement.h"

#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tandem::comm {

CollectiveAgreement::CollectiveAgreement(std::vector<AnnouncementArea*> areas, int rank)
    : areas_(std::move(areas)), rank_(rank) {}

AnnouncementArea::Announcement& CollectiveAgreement::place(int rank, std::uint64_t ordinal) const {
  return area(rank).places[ordinal % AnnouncementArea::kPlaces];
}

void CollectiveAgreement::add(std::shared_ptr<AnnouncedCollective> collective) {
  queue_.push_back(std::move(collective));
  announce();
}

/// A place is written again when all have read it.
void CollectiveAgreement::announce() {
  while (announced_ < settled_ + queue_.size()) {
    const bool has_room = std::ranges::all_of(areas_, [&](const AnnouncementArea* area) {
      return announced_ < area->read.get() + AnnouncementArea::kPlaces;
    });
    if (!has_room) return;
    const AnnouncedCollective& one = *queue_[static_cast<std::size_t>(announced_ - settled_)];
    AnnouncementArea::Announcement& mine = place(rank_, ++announced_);
    mine.is_on_gpu = one.is_on_gpu;
    mine.offer = offer_of(one.collective);
    mine.ordinal.store(announced_, std::memory_order_release);
  }
}

bool CollectiveAgreement::waits_for(int rank) const {
  return place(rank, settled_ + 1).ordinal.load(std::memory_order_acquire) != settled_ + 1;
}

std::string CollectiveAgreement::waits_for() const {
  for (int rank = 0; !queue_.empty() && rank < static_cast<int>(areas_.size()); ++rank)
    if (rank != rank_ && waits_for(rank))
      return fmt::format("{} memory, for rank {} to enter", queue_.front()->is_on_gpu ? "GPU" : "shared", rank);
  return "";
}

std::shared_ptr<AnnouncedCollective> CollectiveAgreement::take() {
  if (queue_.empty()) return nullptr;
  announce();
  for (int rank = 0; rank < static_cast<int>(areas_.size()); ++rank)
    if (waits_for(rank)) return nullptr;
  try {
    require_agreement();
  } catch (...) {
    queue_.front()->fault = std::current_exception();
  }
  return pop();
}

bool CollectiveAgreement::cancel_next(std::exception_ptr fault) {
  if (waits_for(rank_)) return false;
  queue_.front()->fault = std::move(fault);
  pop();
  return true;
}

std::shared_ptr<AnnouncedCollective> CollectiveAgreement::pop() {
  std::shared_ptr<AnnouncedCollective> first = std::move(queue_.front());
  queue_.pop_front();
  area(rank_).read.set(++settled_);
  announce();
  return first;
}

/// All ranks come to the same result, with the same text.
void CollectiveAgreement::require_agreement() const {
  const auto way_of = [](const AnnouncementArea::Announcement& one) -> std::string_view {
    return one.is_on_gpu ? "between GPUs" : "by host memory";
  };
  const AnnouncementArea::Announcement& first = place(0, settled_ + 1);
  for (int rank = 1; rank < static_cast<int>(areas_.size()); ++rank) {
    const AnnouncementArea::Announcement& other = place(rank, settled_ + 1);
    if (first.is_on_gpu != other.is_on_gpu)
      fail(
          "{} {} on rank 0 meets {} {} on rank {}: all ranks must call the same collectives in the same order, with "
          "tensors on the GPUs of their group, or all elsewhere",
          text_of(first.offer), way_of(first), text_of(other.offer), way_of(other), rank);
    if (first.is_on_gpu) require_alike(first.offer, other.offer, rank);
  }
}

}  // namespace tandem::comm
