// Walking the op table in a test.
#pragma once

#include "tests/op_cases/op_case.h"
#include "tests/support/catch.h"

namespace tandem::test {

/// Calls `test(op, call, shape)` for every op (each in its own section), shape and variant.
template <typename Test>
void for_each_call(Test&& test) {
  for (const OpCase& op : op_table()) {
    DYNAMIC_SECTION(op.name) {
      std::size_t calls = 0;
      for (const Shape& shape : nasty_shapes()) {
        for (const OpCall& call : op.calls(shape)) {
          INFO("op " << op.name << " " << call.variant << ", images " << to_string(shape));
          test(op, call, shape);
          ++calls;
        }
      }
      CHECK(calls >= 3);
    }
  }
}

}  // namespace tandem::test
