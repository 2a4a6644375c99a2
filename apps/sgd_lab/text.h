// The lesson as text.
#pragma once

#include "apps/sgd_lab/lesson.h"

#include <string>

namespace tandem::sgd_lab {

std::string lesson_text(const Lesson& lesson);

/// Of a run without a part, in a sentence: the step from which on its replicas differ, and it from the intact run.
std::string difference_text(const BrokenRun& run);

/// "rank 0 -> 1: chunk 2, 5 (added)"
std::string message_text(const Message& message);

}  // namespace tandem::sgd_lab
