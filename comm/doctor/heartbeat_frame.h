// What the ranks of a host show, as bytes for another host.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// Of each rank what a diagnosis needs, and the last 16 collectives and 4 messages: about 600 bytes.
std::string encode_ranks(const std::vector<RankView>& ranks);

/// The same again, as known here (is_far). Nothing for bytes that are anything else, whatever they are.
std::optional<std::vector<RankView>> decode_ranks(std::string_view bytes);

/// Bytes as they come on a connection, in frames: a length of four bytes before each.
class FrameReader {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  /// Where what comes is appended.
  std::string& buffer() { return bytes_; }
  /// The next whole frame, if there is one.
  std::optional<std::string> next();
  /// Whether something that is no frame has come: all that follows means nothing.
  bool is_broken() const { return is_broken_; }

 private:
  std::string bytes_;
  bool is_broken_ = false;
};

/// With its length before it. At most FrameReader::kMostBytes.
std::string frame_of(std::string_view bytes);

}  // namespace tandem::comm
