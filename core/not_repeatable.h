// Why recorded work is to be recorded anew.
#pragma once

#include "tandem/core/error.h"

namespace tandem {

/// What was recorded in a WorkGraph would not do any more what is to be done: that can be done without the graph, and
/// recorded anew. Other Errors on the way to a launch, as where there is no memory, are no reason for that.
class NotRepeatable : public Error {
 public:
  using Error::Error;
};

}  // namespace tandem
