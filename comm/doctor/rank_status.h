// What a rank shows of itself while it works: memory that the other ranks, and tandem_doctor, look into at any time.
#pragma once

#include "tandem/comm/collective.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::comm {

/// A short text that one thread at a time writes and others read meanwhile. What is longer is cut.
template <std::size_t Words>
class SharedText {
 public:
  static constexpr std::size_t kBytes = Words * sizeof(std::uint64_t);

  void set(std::string_view text) {
    std::array<std::uint64_t, Words> words{};
    text.copy(reinterpret_cast<char*>(words.data()), kBytes);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < Words; ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }
  /// "" where it is being written again and again.
  std::string get() const {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      std::array<std::uint64_t, Words> words;
      for (std::size_t i = 0; i < Words; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) continue;
      const std::string_view all(reinterpret_cast<const char*>(words.data()), kBytes);
      return std::string(all.substr(0, all.find('\0')));
    }
    return "";
  }

 private:
  std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<std::uint64_t>, Words> words_{};
};

/// An operation that was started: what must be alike on all ranks of a collective.
struct OperationView {
  std::uint64_t number = 0;  ///< from 1: of the collectives of a group, or of this rank's messages
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  int peer = 0;
  int tag = 0;
  std::int64_t count = 0;  ///< over all ranks; 0 for all_to_all, of which each pair of ranks has its own

  bool is_message() const { return comm::is_message(kind); }
  /// Whether ranks that start these as their collectives of one number can work together.
  bool fits(const OperationView& other) const;
};

/// "all_reduce #1042 sum f32[65536]", "broadcast #3 u8[12] from rank 0", "receive f32[4] from rank 1 (tag 0)"
std::string describe(const OperationView& operation);

OperationView view_of(const Collective& collective, std::uint64_t number);

/// The same in shared memory. Written by its rank alone.
class OperationRecord {
 public:
  void set(const OperationView& operation);
  /// What was last written; number 0 where it is being written, nothing was, or it is no operation.
  OperationView get() const;

 private:
  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::uint64_t> what_{0};
  std::atomic<std::uint64_t> whom_{0};
  std::atomic<std::int64_t> count_{0};
};

/// Where a rank is in the algorithm of an operation. Counting steps is one store; the rest is written by a rank that
/// has found nothing to do for a while.
class StepStatus {
 public:
  /// `steps`: that were done since the group began.
  void count(std::uint64_t steps) { done_.store(steps, std::memory_order_relaxed); }
  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  /// "step 2 of ring, for rank 3"; "" for not waiting.
  void wait(std::string_view text) { waits_.set(text); }
  std::string waits() const { return waits_.get(); }

 private:
  std::atomic<std::uint64_t> done_{0};
  SharedText<8> waits_;
};

enum class RankEnd : std::uint32_t { none, left, failed };

/// All that a rank shows. In memory of zeros at first; `magic` is written last.
struct alignas(128) RankStatus {
  static constexpr std::uint64_t kMagic = 0x366b'6e61'7274'6474;  // changes with the layout
  static constexpr std::uint64_t kElsewhere = kMagic + 1;         // of another host: only host and process are known
  static constexpr std::uint64_t kFar = kMagic + 2;               // of another host, which tells of it
  static constexpr std::size_t kCollectives = 64, kMessages = 16;

  // Written once.
  std::atomic<std::uint64_t> magic;
  std::int64_t process, process_start;  ///< number, and when it began, in the system's ticks
  char host[64];
  char backend[16];
  std::uint64_t time_namespace;  ///< of process_start
  double timeout;                ///< seconds; 0: none
  std::int64_t saved_at;         ///< of a copy in a file: nanoseconds of the host's steady clock
  std::int32_t saved_state;      ///< the ProcessState at that time
  std::int32_t whole_rank;       ///< its number in the group that this one was split off, else in this one

  // By the rank, in one thread at a time.
  alignas(128) std::atomic<std::uint64_t> started, finished;  ///< collectives
  std::atomic<std::uint64_t> messages_started;
  std::atomic<std::uint64_t> waits_for;  ///< a number as above, doubled, and one more for a message; 0: for nothing
  std::atomic<std::uint64_t> waits;      ///< that have begun
  OperationRecord awaited;               ///< which `waits_for` means: its place below may have gone to a later one
  std::atomic<RankEnd> end;
  std::atomic<std::int32_t> long_work;  ///< scopes of LongWork
  StepStatus step;
  SharedText<12> activity;    ///< the innermost profiler range of its thread
  OperationRecord elsewhere;  ///< what its thread waits for in another group
  OperationRecord collectives[kCollectives];
  OperationRecord messages[kMessages];

  // By its watchdog: nanoseconds of the host's steady clock.
  alignas(128) std::atomic<std::int64_t> finished_since, waits_since;
  std::atomic<std::uint32_t> has_found_fault, has_told;
  // Of a rank of another host, by the watchdog of this host's first rank, which also writes all of the above then.
  std::atomic<std::int64_t> heard_at;     ///< nanoseconds of this host's steady clock
  std::atomic<std::int32_t> heard_state;  ///< a ProcessState
  std::atomic<std::uint32_t> is_inferred;
  std::atomic<std::uint32_t> elsewhere_far;  ///< of RankView::waits_elsewhere

  /// `operation`: number 0 for nothing.
  void wait_for(const OperationView& operation) {
    if (operation.number != 0) awaited.set(operation);
    waits_for.store(2 * operation.number + (operation.is_message() ? 1 : 0), std::memory_order_release);
  }

  /// What `waits_for` means that was read before.
  OperationView awaited_as(std::uint64_t waits_for_then) const {
    const std::uint64_t number = waits_for_then / 2;
    const bool is_one = waits_for_then % 2 != 0;
    const OperationView view = awaited.get();
    if (view.number == number && view.is_message() == is_one) return view;
    return is_one ? message(number) : collective(number);  // it waits for another one by now
  }
  OperationView collective(std::uint64_t number) const { return record(collectives[number % kCollectives], number); }
  OperationView message(std::uint64_t number) const { return record(messages[number % kMessages], number); }

 private:
  /// Number 0 where another has taken its place.
  static OperationView record(const OperationRecord& record, std::uint64_t number) {
    const OperationView view = record.get();
    return view.number == number ? view : OperationView{};
  }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a lock would be one process's own");

}  // namespace tandem::comm
