// Agreement by exchanging texts.
#include "tandem/comm/agreement.h"

#include "tandem/comm/ddp/hash.h"

#include <algorithm>

namespace tandem::comm {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::pair<std::string_view, std::string_view> key_and_value(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return {line, ""};
  return {line.substr(0, equals), line.substr(equals + 1)};
}

/// What to call the `at`-th line, of which one text has no counterpart.
std::string name_of_line(const std::vector<std::string_view>& lines, std::size_t at) {
  const std::string_view key = key_and_value(lines[at]).first;
  if (!key.empty()) return std::string(key);
  return fmt::format("line {}, {},", at + 1, lines[at].empty() ? "an empty one" : lines[at]);
}

/// What the first line that differs says on either side, of two texts that differ.
std::string first_difference(std::string_view expected, std::string_view actual, std::size_t rank) {
  const auto a = lines_of(expected), b = lines_of(actual);
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < common && a[at] == b[at]) ++at;
  const auto only_on_one = [&](std::string_view what, bool on_first) {
    return on_first ? fmt::format("{} is missing on rank {}", what, rank)
                    : fmt::format("{} is on rank {} but not on rank 0", what, rank);
  };
  // With all lines alike, what is left to differ is whether the last one ends.
  if (a.size() == b.size() && at == common) {
    return only_on_one("the newline at the end", expected.size() > actual.size());
  }
  if (at == common) return only_on_one(name_of_line(at < a.size() ? a : b, at), at < a.size());
  const auto [key_a, value_a] = key_and_value(a[at]);
  const auto [key_b, value_b] = key_and_value(b[at]);
  if (key_a == key_b && !key_a.empty() && value_a != value_b) {
    return fmt::format("{} is {} on rank 0 and {} on rank {}", key_a, value_a, value_b, rank);
  }
  const auto shown = [](std::string_view line) { return line.empty() ? "empty" : line; };
  return fmt::format("line {} is {} on rank 0 and {} on rank {}", at + 1, shown(a[at]), shown(b[at]), rank);
}

}  // namespace

void agree_or_fail(ProcessGroup& group, const std::optional<std::string>& local_error) {
  // Most of the time there is no error to report: one small reduction.
  const Tensor any = Tensor::full({1}, local_error ? 1.0 : 0.0, {DType::i32});
  group.all_reduce(Out(any), ReduceOp::max);
  if (any.item() == 0.0) return;
  const auto errors = group.all_gather_bytes(local_error ? "!" + *local_error : std::string());
  if (std::all_of(errors.begin(), errors.end(), [&](const std::string& error) { return error == errors.front(); })) {
    throw AgreedError(errors.front().substr(1));
  }
  std::string message;
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank].empty()) continue;
    message += fmt::format("{}rank {}: {}", message.empty() ? "" : "; ", rank, errors[rank].substr(1));
  }
  throw AgreedError(message);
}

void check_same(ProcessGroup& group, std::string_view name, std::string_view text) {
  if (group.size() == 1) return;
  const std::uint64_t hash = hash_bytes(text.data(), text.size());
  const auto hashes =
      group.all_gather(Tensor::from(std::vector{static_cast<std::int64_t>(hash)}, {1})).to_vector<std::int64_t>();
  if (std::all_of(hashes.begin(), hashes.end(), [&](std::int64_t other) { return other == hashes.front(); })) return;
  const auto texts = group.all_gather_bytes(text);
  std::string ranks, difference;
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts.front()) continue;
    if (difference.empty()) difference = first_difference(texts.front(), texts[rank], rank);
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  throw AgreedError(fmt::format("{} differs between ranks: {} (differing from rank 0: {})", name, difference, ranks));
}

}  // namespace tandem::comm
