// Which rounds of a schedule have their turn, on one rank and in one direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::comm {

/// What a rank sends, or what it receives, goes round by round where there are several other ranks: segments of a later
/// round do not take bandwidth from those of an earlier one, which others wait for. Segments with the same place in
/// their chunks, a wave, have rounds of their own. Example:
///     Turns turns;
///     turns.add(0, 0);  // a segment of round 0, and one of round 1
///     turns.add(0, 1);
///     turns.begin();
///     const bool may_begin = turns.has_turn(0, 1);  // false
///     const bool is_next = turns.end(0, 0);         // true: round 1 has its turn now
class Turns {
 public:
  /// Small segments take none: they take little bandwidth, and each wait costs them the latency.
  static bool takes_turns(std::int64_t bytes) { return bytes > std::int64_t{8} << 10; }

  void add(std::size_t wave, std::size_t round) {
    if (waves_.size() <= wave) waves_.resize(wave + 1);
    if (waves_[wave].open.size() <= round) waves_[wave].open.resize(round + 1);
    ++waves_[wave].open[round];
  }
  /// Behind the last add().
  void begin() {
    for (Wave& wave : waves_) wave.skip_complete();
  }

  bool is_empty() const { return waves_.empty(); }
  std::size_t waves() const { return waves_.size(); }
  /// Whether all of the rounds before are complete.
  bool has_turn(std::size_t wave, std::size_t round) const { return round <= waves_[wave].first_open; }
  /// One segment is complete; whether a later round has its turn now.
  bool end(std::size_t wave, std::size_t round) {
    const std::size_t before = waves_[wave].first_open;
    --waves_[wave].open[round];
    waves_[wave].skip_complete();
    return waves_[wave].first_open != before;
  }

 private:
  struct Wave {
    std::vector<int> open;       // of each round, how many are not complete
    std::size_t first_open = 0;  // the first round with some

    void skip_complete() {
      while (first_open < open.size() && open[first_open] == 0) ++first_open;
    }
  };

  std::vector<Wave> waves_;
};

}  // namespace tandem::comm
