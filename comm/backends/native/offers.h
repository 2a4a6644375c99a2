// Whether ranks call the same collective, by what each has offered for it.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/comm/transports/shared_memory/window.h"

#include <string>

namespace tandem::comm {

/// Of a collective, but for where its data are.
Offer offer_of(const Collective& collective);

/// "all_reduce sum f32[1024]"
std::string text_of(const Offer& offer);

/// Throws Error, which says what rank 0 and the other one call, unless their offers are alike.
void require_alike(const Offer& of_rank_0, const Offer& other, int rank);

}  // namespace tandem::comm
