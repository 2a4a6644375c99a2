// Agreement between ranks: one rank's error becomes everybody's, so that nobody waits for a rank that gave up.
// Example:
//     #include "tandem/comm/launch/mpi_environment.h"
//     MpiEnvironment environment;
//     const auto group = make_process_group("auto", environment);
//     check_same(*group, "config", "lr=0.1\nbatch_size=128\n");
//     const int threads = run_agreed(*group, [] { return std::stoi("2"); });  // 2: where one throws, all do
#pragma once

#include "tandem/comm/process_group.h"

#include <exception>
#include <optional>
#include <utility>

namespace tandem::comm {

/// An Error that every rank throws at the same point, with the same text. One rank printing it is enough, and no rank
/// needs to be aborted.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Every rank contributes its error, or none. If any has one, all throw the same AgreedError: "rank 1: <text>", or the
/// text alone where all ranks have the same. Collective.
void agree_or_fail(ProcessGroup& group, const std::optional<std::string>& local_error);

/// Runs `body` on every rank and returns its result; if it throws on any rank, all throw, as above. `body`
/// must hold no collective operation. Collective.
template <typename Body>
auto run_agreed(ProcessGroup& group, Body&& body) {
  std::optional<std::string> error;
  if constexpr (std::is_void_v<decltype(body())>) {
    try {
      body();
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    agree_or_fail(group, error);
  } else {
    std::optional<decltype(body())> result;
    try {
      result.emplace(body());
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    agree_or_fail(group, error);
    return std::move(*result);
  }
}

/// Throws the same AgreedError on all ranks unless `text`, lines of key=value, is the same everywhere. It names the
/// ranks that differ from rank 0 and the first line that does: "config differs between ranks: lr is 0.1 on rank 0 and
/// 0.2 on rank 1". `name` says what the text describes. Collective.
void check_same(ProcessGroup& group, std::string_view name, std::string_view text);

}  // namespace tandem::comm
