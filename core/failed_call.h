// One text for failed calls of other libraries: CUDA, cuDNN, cuBLAS, NCCL, MPI. Their check macros end here.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// A line of a source. std::source_location, where the compiler has it (clang does from 16 on), becomes one by itself.
struct SourceLine {
  std::string_view file;
  std::uint_least32_t number;

  SourceLine(std::string_view path, std::uint_least32_t line) : file(path), number(line) {}
  template <typename Location>
    requires requires(const Location& where) { where.file_name(), where.line(); }
  SourceLine(const Location& where) : file(where.file_name()), number(where.line()) {}
};

/// A call into another library that did not succeed.
struct FailedCall {
  std::string_view library;  // "NCCL"
  std::string_view error;    // the library's own words
  std::string_view call;     // the expression, of which the text keeps the function's name
  SourceLine where;
  std::string_view more = {};  // what else is known and what to do; may be empty
};

/// Throws Error: "NCCL: invalid usage from ncclAllReduce at communicator.cpp:80; NCCL_DEBUG=WARN shows more".
[[noreturn]] void fail_call(const FailedCall& failed);

}  // namespace tandem
