// The messages of event files, with the numbers of their fields.
// Source: tensorflow/core/util/event.proto, framework/summary.proto, framework/tensor.proto
#pragma once

#include "tandem/train/writers/tensorboard/histogram.h"
#include "tandem/train/writers/tensorboard/wire_message.h"

#include <string_view>

namespace tandem::train::detail {

/// Event with a wall time and a step.
WireMessage event_at(double wall_time, std::int64_t step);
/// Event.file_version, what a file begins with; readers take it that sessions are marked from version 2 on.
WireMessage file_version_event(double wall_time);
/// Event.session_log with START: readers forget what they know of `step` and later ones.
WireMessage session_start_event(double wall_time, std::int64_t step);
/// Event.summary of one value.
WireMessage summary_event(double wall_time, std::int64_t step, const WireMessage& value);

/// Summary.Value of each kind; what the program shows beside an image may differ from its tag.
WireMessage scalar_value(std::string_view tag, double value);
WireMessage histogram_value(std::string_view tag, const Histogram& histogram);
WireMessage text_value(std::string_view tag, std::string_view markdown);
/// Throws Error where `png` does not begin as a PNG file does.
WireMessage image_value(std::string_view tag, std::string_view png, std::string_view title);
/// What only a plugin of TensorBoard reads.
WireMessage plugin_value(std::string_view tag, std::string_view plugin, const WireMessage& content);

}  // namespace tandem::train::detail
