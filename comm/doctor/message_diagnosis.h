// What is wrong with ranks that wait for messages of one another.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"

#include <optional>

namespace tandem::comm {

/// What to do about a message that one of two ranks does not answer.
inline constexpr const char* kPairRemedy =
    "each receive() needs a send() of the other rank with the same tag, and the other way round";

/// What to do about a message that does not arrive.
inline constexpr const char* kLostRemedy =
    "a message may be lost: look at the network between the hosts, and for a rank that is very slow";

/// Whether the rank whose message `rank` waits for waits in what answers it: a receive for a send, with the same tag.
bool is_answered(const GroupView& group, const RankView& rank);

/// Of ranks that wait for each other's messages, which do not answer each other, and which `from` waits for in the end.
/// Nothing where there are none, or where they may just be between two messages.
std::optional<Diagnosis> find_circle(const GroupView& group, int from);

/// Of a message that `waiting` waits for, and which does not come or is not asked for.
Diagnosis explain_message(const GroupView& group, const RankView& waiting);

}  // namespace tandem::comm
