// What is wrong with ranks that wait for messages of one another.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"

#include <optional>

namespace tandem::comm {

/// What to do about a message that one of two ranks does not answer.
inline constexpr const char* kPairRemedy =
    "each receive() needs a send() of the other rank with the same tag, and the other way round";

/// Of ranks that wait for each other's messages, and which `from` waits for in the end. Nothing where there are none.
std::optional<Diagnosis> find_circle(const GroupView& group, int from);

/// Of a message that `waiting` waits for, and which does not come or is not asked for.
Diagnosis explain_message(const GroupView& group, const RankView& waiting);

}  // namespace tandem::comm
