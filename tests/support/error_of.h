// What a call complains about.
#pragma once

#include "tandem/core/error.h"

#include <string>
#include <utility>

namespace tandem::test {

/// The text of the Error that `call` throws, or "no error".
template <typename Call>
std::string error_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tandem::test
