// Which rounds of a schedule have their turn, on one rank and in one direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::comm {

/// What a rank sends, or what it receives, goes round by round where there are several other ranks: segments of a later
/// round do not take bandwidth from those of an earlier one, which others wait for. Segments with the same place in
/// their chunks, a wave, have rounds of their own. Rounds of up to 8 KiB take no turns: they take little bandwidth, and
/// each wait costs them the latency. Example:
///     Turns turns;
///     turns.add(0, 0, 65536);  // a segment of round 0, and one of round 1
///     turns.add(0, 1, 65536);
///     turns.begin();
///     const bool may_begin = turns.has_turn(0, 1);  // false
///     const bool is_next = turns.end(0, 0);         // true: round 1 has its turn now
class Turns {
 public:
  void add(std::size_t wave, std::size_t round, std::int64_t bytes) {
    if (waves_.size() <= wave) waves_.resize(wave + 1);
    std::vector<Round>& rounds = waves_[wave].rounds;
    if (rounds.size() <= round) rounds.resize(round + 1);
    ++rounds[round].open;
    rounds[round].bytes += bytes;
  }
  /// Behind the last add().
  void begin() {
    for (Wave& wave : waves_) wave.skip_complete();
  }

  bool is_empty() const { return waves_.empty(); }
  std::size_t waves() const { return waves_.size(); }
  /// Whether segments of the round wait for those of the rounds before, and later ones for them.
  bool takes_turn(std::size_t wave, std::size_t round) const { return waves_[wave].rounds[round].takes_turn(); }
  /// Whether all of the rounds before are complete, or the round takes no turn.
  bool has_turn(std::size_t wave, std::size_t round) const {
    return round <= waves_[wave].first_open || !takes_turn(wave, round);
  }
  /// One segment is complete; whether a later round has its turn now.
  bool end(std::size_t wave, std::size_t round) {
    const std::size_t before = waves_[wave].first_open;
    --waves_[wave].rounds[round].open;
    waves_[wave].skip_complete();
    return waves_[wave].first_open != before;
  }

 private:
  struct Round {
    int open = 0;  // segments that are not complete
    std::int64_t bytes = 0;

    bool takes_turn() const { return bytes > std::int64_t{8} << 10; }
  };
  struct Wave {
    std::vector<Round> rounds;
    std::size_t first_open = 0;  // the first of those that take turns which is not complete

    void skip_complete() {
      while (first_open < rounds.size() && (rounds[first_open].open == 0 || !rounds[first_open].takes_turn()))
        ++first_open;
    }
  };

  std::vector<Wave> waves_;
};

}  // namespace tandem::comm
