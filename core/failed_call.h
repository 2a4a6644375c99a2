// One text for failed calls of other libraries: CUDA, cuDNN, cuBLAS, NCCL, MPI. Their check macros end here.
#pragma once

#include <source_location>
#include <string_view>

namespace tandem {

/// A call into another library that did not succeed.
struct FailedCall {
  std::string_view library;  // "NCCL"
  std::string_view error;    // the library's own words
  std::string_view call;     // the expression, of which the text keeps the function's name
  std::source_location where;
  std::string_view more = {};  // what else is known and what to do; may be empty
};

/// Throws Error: "NCCL: invalid usage from ncclAllReduce at communicator.cpp:80; NCCL_DEBUG=WARN tells more".
[[noreturn]] void fail_call(const FailedCall& failed);

}  // namespace tandem
