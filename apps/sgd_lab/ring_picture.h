// Ranks on a circle, what they hold, and what they send.
#pragma once

#include "apps/sgd_lab/ring.h"
#include "tandem/train/plot/canvas.h"

#include <cstddef>
#include <string>

namespace tandem::sgd_lab {

/// What a chunk is coloured by.
train::plot::Colour colour_of_chunk(int chunk);

/// Width and height of a number on its way.
inline constexpr double kMessageSize = 25.0;
void draw_message(train::plot::Canvas& canvas, const Message& message, train::plot::Point centre);

/// The picture of one round, or of what is before them (round 0). A chunk is the darker the more ranks are in its sum.
class RingPicture {
 public:
  RingPicture(const RingLesson& ring, std::size_t round) : ring_(ring), round_(round) {}

  train::plot::Size size() const;
  std::string description() const;

  /// Ranks, what they hold behind the round, and arrows from who has sent to who has received.
  void draw(train::plot::Canvas& canvas) const;
  /// Where the number on its way is: in the middle of its arrow.
  train::plot::Point middle_of(const Message& message) const { return arrow_of(message).middle(); }
  /// And where it comes from.
  train::plot::Point start_of(const Message& message) const { return arrow_of(message).from; }

 private:
  train::plot::Point place_of(int rank) const;
  train::plot::Size box() const;
  /// Ends of a message's arrow, beside the boxes of its ranks.
  struct Arrow {
    train::plot::Point from, to;
    train::plot::Point middle() const { return {(from.x + to.x) / 2.0, (from.y + to.y) / 2.0}; }
  };
  Arrow arrow_of(const Message& message) const;
  void draw_rank(train::plot::Canvas& canvas, int rank) const;

  const RingLesson& ring_;
  std::size_t round_;
};

}  // namespace tandem::sgd_lab
