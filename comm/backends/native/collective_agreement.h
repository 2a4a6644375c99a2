// What ranks with GPUs tell each other of a collective before it begins: what it is, and where its tensors are.
#pragma once

#include "tandem/comm/backends/native/offers.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/transports/shared_memory/window.h"
#include "tandem/comm/work.h"
#include "tandem/core/stream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace tandem::comm {

/// Of one rank: written by it, read by all.
struct AnnouncementArea {
  struct alignas(kSharedLineBytes) Announcement {
    std::atomic<std::uint64_t> ordinal{0};  ///< of the collective, from 1; written last
    bool is_on_gpu = false;
    Offer offer;
  };
  /// More collectives wait for their turn.
  static constexpr std::uint64_t kPlaces = 64;

  Announcement places[kPlaces];  ///< at their ordinals modulo kPlaces
  Counter read;                  ///< collectives of which this rank has read all announcements
};

/// A collective that was called, and what became of it.
struct AnnouncedCollective {
  Collective collective;
  bool is_on_gpu = false;           ///< all tensors are on the GPU of the group
  Event ready = Event();            ///< what the tensors' stream did before
  std::unique_ptr<Work> work = {};  ///< once it has begun
  std::exception_ptr fault = {};    ///< why it has not begun

  bool is_settled() const { return work != nullptr || fault != nullptr; }
};

/// Collectives begin one after another, in the order of the calls: each when all ranks have announced it. Where some
/// have their tensors on GPUs and others not, or where they call different collectives of GPUs, it begins on no rank,
/// and the next one can.
class CollectiveAgreement {
 public:
  /// `areas`: of all ranks, by rank, zeros at first; they outlive this.
  CollectiveAgreement(std::vector<AnnouncementArea*> areas, int rank);

  /// Announces it, as soon as there is room.
  void add(std::shared_ptr<AnnouncedCollective> collective);
  /// The next one that all ranks have announced, once; null: there is none. It has a fault where it must not begin.
  std::shared_ptr<AnnouncedCollective> take();
  /// The next one is not to begin on this rank, and has a fault. False where it could not be announced yet: it stays.
  bool cancel_next(std::exception_ptr fault);

  /// The one that is next; null where there is none.
  const AnnouncedCollective* next() const { return queue_.empty() ? nullptr : queue_.front().get(); }
  /// Whether the next one waits for this rank to announce it.
  bool waits_for(int rank) const;
  /// "GPU memory, for rank 3 to enter", or shared memory; "" where there is none that waits.
  std::string waits_for() const;

 private:
  AnnouncementArea::Announcement& place(int rank, std::uint64_t ordinal) const;
  AnnouncementArea& area(int rank) const { return *areas_[static_cast<std::size_t>(rank)]; }
  void announce();
  void require_agreement() const;
  std::shared_ptr<AnnouncedCollective> pop();

  std::vector<AnnouncementArea*> areas_;
  int rank_;
  std::deque<std::shared_ptr<AnnouncedCollective>> queue_;
  std::uint64_t settled_ = 0;    // collectives that have left the queue
  std::uint64_t announced_ = 0;  // collectives, by this rank
};

}  // namespace tandem::comm
