// Whether ranks call the same collective, by what each has offered for it.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/comm/transports/shared_memory/window.h"

namespace tandem::comm {

/// Of a collective, but for where its data are.
Offer offer_of(const Collective& collective);

/// Throws Error, which says what rank 0 and the other one call, unless their offers are alike.
void require_alike(const Offer& of_rank_0, const Offer& other, int rank);

}  // namespace tandem::comm
