// Which ranks reach each other, for programs.
#pragma once

#include "tandem/comm/transports/connectivity.h"

#include <string>

namespace tandem::allreduce_bench {

/// An object for each pair of ranks, a line each; `reached` is null where nobody could tell, and so are speeds that
/// were not measured. Seconds, and bytes per second.
std::string json_lines(const comm::Connectivity& all);

/// The same as CSV, with a heading; fields of what is not known are empty.
std::string csv_report(const comm::Connectivity& all);

}  // namespace tandem::allreduce_bench
