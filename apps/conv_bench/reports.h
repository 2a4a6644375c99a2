// Results as a table, as JSON and as a picture.
#pragma once

#include "apps/conv_bench/bench.h"

#include <string>

namespace tandem::conv_bench {

/// What was timed where, above the rows.
std::string table_heading(const BenchSettings& settings);

/// The rows of one layer.
std::string table_rows(const std::vector<Result>& of_layer);

/// Below the rows: for each contestant and pass the geometric mean of its ratios to the best library; empty without
/// libraries.
std::string table_summary(const std::vector<Result>& results);

/// What is to be said of ceilings that were beaten.
std::string raised_ceilings(const BenchSettings& settings, const Report& report);

/// One JSON object with the machine, the protocol and all results so far; "complete" says whether that is all.
std::string json_report(const BenchSettings& settings, const Report& report);

/// An SVG drawing: bars of operations per second for each layer, and the same as points under the machine's roofline.
std::string svg_report(const BenchSettings& settings, const std::vector<Result>& results);
}  // namespace tandem::conv_bench
