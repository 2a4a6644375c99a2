// A page with pictures of one step of a trace.
#pragma once

#include <string>
#include <string_view>

namespace tandem::train::report {

/// Of what trace_of() (train/profile/trace.h) gave: the step that took the median time on rank 0, with a row for what
/// each rank computes, its layers, buckets and messages; its largest exchange between ranks, enlarged; and a table of
/// where each rank's time went. An HTML page that loads nothing; at most 8 ranks are drawn. Empty where the trace has
/// no complete step. Example:
///     const std::string page = report::step_page("{\"traceEvents\":[]}");
///     const bool has_page = !page.empty();  // false
std::string step_page(std::string_view trace);

}  // namespace tandem::train::report
