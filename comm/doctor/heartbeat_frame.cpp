// Numbers and texts one after another; hosts of one run have the same byte order.
#include "tandem/comm/doctor/heartbeat_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace tandem::comm {

namespace {

constexpr std::uint32_t kMagic = 0x3262'6874;  // changes with the layout
constexpr std::size_t kCollectives = 16, kMessages = 4;
constexpr std::size_t kStepBytes = 64, kActivityBytes = decltype(RankStatus::activity)::kBytes;

enum Flag : std::uint8_t { kWaits = 1, kLongWork = 2, kFault = 4, kElsewhere = 8 };

class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    std::array<char, sizeof value> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    bytes_.append(bytes.data(), bytes.size());
  }
  void text(std::string_view text, std::size_t most) {
    text = text.substr(0, most);
    number(static_cast<std::uint8_t>(text.size()));
    bytes_.append(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Whatever is not there is zero, and makes it fail.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T number() {
    T value{};
    if (bytes_.size() < sizeof value) {
      fails_ = true;
      return value;
    }
    std::array<char, sizeof value> bytes;
    bytes_.copy(bytes.data(), bytes.size());
    std::memcpy(&value, bytes.data(), bytes.size());
    bytes_.remove_prefix(bytes.size());
    return value;
  }
  template <typename Enumeration>
  Enumeration choice(Enumeration last) {
    const auto value = number<std::uint8_t>();
    check(value <= static_cast<std::uint8_t>(last));
    return fails_ ? Enumeration{} : static_cast<Enumeration>(value);
  }
  double seconds() {
    const auto value = number<double>();
    check(std::isfinite(value) && value >= 0.0);
    return value;
  }
  std::string text(std::size_t most) {
    const std::size_t size = number<std::uint8_t>();
    check(size <= most && size <= bytes_.size());
    if (fails_) return "";
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  void check(bool is_so) { fails_ = fails_ || !is_so; }
  bool fails() const { return fails_; }
  bool is_at_end() const { return !fails_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool fails_ = false;
};

void write(Writer& writer, const OperationView& operation) {
  writer.number(operation.number);
  writer.number(static_cast<std::uint8_t>(operation.kind));
  writer.number(static_cast<std::uint8_t>(operation.dtype));
  writer.number(static_cast<std::uint8_t>(operation.op));
  writer.number(static_cast<std::int32_t>(operation.peer));
  writer.number(static_cast<std::int32_t>(operation.tag));
  writer.number(operation.count);
}

OperationView read_operation(Reader& reader) {
  OperationView operation;
  operation.number = reader.number<std::uint64_t>();
  operation.kind = reader.choice(static_cast<CollectiveKind>(kCollectiveKinds - 1));
  operation.dtype = reader.choice(static_cast<DType>(kDTypeCount - 1));
  operation.op = reader.choice(ReduceOp::max);
  operation.peer = reader.number<std::int32_t>();
  operation.tag = reader.number<std::int32_t>();
  operation.count = reader.number<std::int64_t>();
  return operation;
}

/// The last ones.
void write(Writer& writer, const std::vector<OperationView>& operations, std::size_t most) {
  const std::size_t count = std::min(operations.size(), most);
  writer.number(static_cast<std::uint8_t>(count));
  for (std::size_t i = operations.size() - count; i < operations.size(); ++i) write(writer, operations[i]);
}

std::vector<OperationView> read_operations(Reader& reader, std::size_t most) {
  const std::size_t count = reader.number<std::uint8_t>();
  reader.check(count <= most);
  std::vector<OperationView> operations;
  for (std::size_t i = 0; i < count && !reader.fails(); ++i) {
    operations.push_back(read_operation(reader));
    reader.check(operations.back().number > 0);
  }
  return operations;
}

void write(Writer& writer, const RankView& view) {
  writer.number(static_cast<std::int32_t>(view.rank));
  writer.number(static_cast<std::uint8_t>(view.state));
  writer.number(static_cast<std::uint8_t>(view.end));
  writer.number(static_cast<std::uint8_t>((view.is_waiting ? kWaits : 0) | (view.is_in_long_work ? kLongWork : 0) |
                                          (view.has_found_fault ? kFault : 0) |
                                          (view.waits_elsewhere ? kElsewhere : 0)));
  writer.number(view.started);
  writer.number(view.finished);
  writer.number(view.finished_ago);
  writer.number(view.waiting_time);
  write(writer, view.waits_for);
  writer.text(view.step, kStepBytes);
  writer.text(view.activity, kActivityBytes);
  write(writer, view.collectives, kCollectives);
  write(writer, view.messages, kMessages);
}

RankView read_rank(Reader& reader) {
  RankView view;
  view.is_known = view.is_far = true;
  view.rank = reader.number<std::int32_t>();
  reader.check(view.rank >= 0);
  view.state = reader.choice(ProcessState::halted);
  view.end = reader.choice(RankEnd::failed);
  const auto flags = reader.number<std::uint8_t>();
  reader.check((flags & ~(kWaits | kLongWork | kFault | kElsewhere)) == 0);
  view.is_waiting = (flags & kWaits) != 0;
  view.is_in_long_work = (flags & kLongWork) != 0;
  view.has_found_fault = (flags & kFault) != 0;
  view.waits_elsewhere = (flags & kElsewhere) != 0;
  view.started = reader.number<std::uint64_t>();
  view.finished = reader.number<std::uint64_t>();
  view.finished_ago = reader.seconds();
  view.waiting_time = reader.seconds();
  view.waits_for = read_operation(reader);
  view.step = reader.text(kStepBytes);
  view.activity = reader.text(kActivityBytes);
  view.collectives = read_operations(reader, kCollectives);
  view.messages = read_operations(reader, kMessages);
  return view;
}

}  // namespace

std::string encode_ranks(const std::vector<RankView>& ranks) {
  Writer writer;
  writer.number(kMagic);
  writer.number(static_cast<std::uint32_t>(ranks.size()));
  for (const RankView& view : ranks) write(writer, view);
  return writer.take();
}

std::optional<std::vector<RankView>> decode_ranks(std::string_view bytes) {
  Reader reader(bytes);
  reader.check(reader.number<std::uint32_t>() == kMagic);
  const auto count = reader.number<std::uint32_t>();
  std::vector<RankView> ranks;
  for (std::uint32_t i = 0; i < count && !reader.fails(); ++i) ranks.push_back(read_rank(reader));
  if (!reader.is_at_end()) return std::nullopt;
  return ranks;
}

std::optional<std::string> FrameReader::next() {
  std::uint32_t size = 0;
  if (is_broken_ || bytes_.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes_.data(), sizeof size);
  if (size > kMostBytes) {
    is_broken_ = true;
    bytes_.clear();
    return std::nullopt;
  }
  if (bytes_.size() < sizeof size + size) return std::nullopt;
  std::string frame = bytes_.substr(sizeof size, size);
  bytes_.erase(0, sizeof size + size);
  return frame;
}

std::string frame_of(std::string_view bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame.append(bytes);
}

}  // namespace tandem::comm
