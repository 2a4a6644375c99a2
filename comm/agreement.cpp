// Agreement by exchanging texts.
#include "comm/agreement.h"

#include "comm/hash.h"

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

/// What the first line that differs says on either side.
std::string first_difference(std::string_view expected, std::string_view actual, std::size_t rank) {
  const auto a = lines_of(expected), b = lines_of(actual);
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < common && a[at] == b[at]) ++at;
  if (at == b.size()) return fmt::format("{} is missing on rank {}", key_and_value(a[at]).first, rank);
  if (at == a.size()) return fmt::format("{} is on rank {} but not on rank 0", key_and_value(b[at]).first, rank);
  const auto [key_a, value_a] = key_and_value(a[at]);
  const auto [key_b, value_b] = key_and_value(b[at]);
  if (key_a == key_b) return fmt::format("{} is {} on rank 0 and {} on rank {}", key_a, value_a, value_b, rank);
  return fmt::format("line {} is {} on rank 0 and {} on rank {}", at + 1, a[at], b[at], rank);
}

}  // namespace

void agree_or_fail(ProcessGroup& group, const std::optional<std::string>& local_error) {
  // Most of the time there is nothing to tell: one small reduction.
  const Tensor any = Tensor::full({1}, local_error ? 1.0 : 0.0, {DType::i32});
  group.all_reduce(any, ReduceOp::max);
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
