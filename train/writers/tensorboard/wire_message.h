// Messages in protocol buffers' wire format, as far as event files need it: a message is a sequence of numbered fields,
// each a key (number and wire type) and a value. Hand-written, for a dozen messages of a few fields each are no reason
// for a code generator in the build and a library in every program. Source: protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::train::detail {

/// Fields stand in the order they are added. Zeros and empty texts are written, too: readers take them for what they
/// are.
class WireMessage {
 public:
  /// int32, int64, bool or enum: as a varint.
  WireMessage& integer(int field, std::int64_t value);
  /// float
  WireMessage& real32(int field, float value);
  /// double
  WireMessage& real64(int field, double value);
  /// repeated double, packed
  WireMessage& reals64(int field, std::span<const double> values);
  /// bytes
  WireMessage& bytes(int field, std::string_view value);
  /// string: readers refuse a message in which one is no UTF-8, so what is none of it is replaced by U+FFFD.
  WireMessage& text(int field, std::string_view value);
  /// A message.
  WireMessage& message(int field, const WireMessage& value) { return bytes(field, value.encoded_); }

  const std::string& encoded() const { return encoded_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, unsigned wire_type);
  template <typename Bits>
  void little_endian(Bits bits);

  std::string encoded_;
};

}  // namespace tandem::train::detail
