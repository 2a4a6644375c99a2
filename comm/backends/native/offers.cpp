// The comparison, and its text.
#include "tandem/comm/backends/native/offers.h"

#include "tandem/core/error.h"

namespace tandem::comm {

namespace {

/// What all ranks have the same number of. Those of all_to_all are in its pieces.
std::int64_t common_count(const Collective& collective) {
  return collective.kind == CollectiveKind::all_to_all ? 0 : collective.total();
}

bool are_alike(const Offer& a, const Offer& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.count == b.count && a.root == b.root;
}

}  // namespace

std::string text_of(const Offer& offer) {
  return describe(
      {.kind = offer.kind, .dtype = offer.dtype, .op = offer.op, .peer = offer.root, .counts = {offer.count}});
}

Offer offer_of(const Collective& c) {
  return {.count = common_count(c), .root = c.peer, .kind = c.kind, .dtype = c.dtype, .op = c.op};
}

void require_alike(const Offer& of_rank_0, const Offer& other, int rank) {
  if (are_alike(of_rank_0, other)) return;
  fail(
      "{} on rank 0 meets {} on rank {}: all ranks must call the same collectives in the same order, with the same "
      "shapes and arguments",
      text_of(of_rank_0), text_of(other), rank);
}

}  // namespace tandem::comm
