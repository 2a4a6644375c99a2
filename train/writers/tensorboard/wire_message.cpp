// Varints hold seven bits a byte, the lowest first; all else is little-endian.
#include "tandem/train/writers/tensorboard/wire_message.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace tandem::train::detail {
namespace {

constexpr unsigned kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

/// nlohmann's JSON library knows what UTF-8 is.
std::string as_utf8(std::string_view text) {
  using Json = nlohmann::json;
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

}  // namespace

WireMessage& WireMessage::integer(int field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::real32(int field, float value) {
  key(field, kFixed32);
  little_endian(std::bit_cast<std::uint32_t>(value));
  return *this;
}

WireMessage& WireMessage::real64(int field, double value) {
  key(field, kFixed64);
  little_endian(std::bit_cast<std::uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::reals64(int field, std::span<const double> values) {
  key(field, kLengthDelimited);
  varint(values.size() * sizeof(double));
  for (const double value : values) little_endian(std::bit_cast<std::uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::bytes(int field, std::string_view value) {
  key(field, kLengthDelimited);
  varint(value.size());
  encoded_ += value;
  return *this;
}

WireMessage& WireMessage::text(int field, std::string_view value) { return bytes(field, as_utf8(value)); }

void WireMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) encoded_ += static_cast<char>(0x80 | (value & 0x7f));
  encoded_ += static_cast<char>(value);
}

void WireMessage::key(int field, unsigned wire_type) { varint(static_cast<std::uint64_t>(field) << 3 | wire_type); }

template <typename Bits>
void WireMessage::little_endian(Bits bits) {
  for (std::size_t i = 0; i < sizeof bits; ++i) encoded_ += static_cast<char>(bits >> 8 * i & 0xff);
}

}  // namespace tandem::train::detail
