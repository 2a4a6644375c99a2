// A function of a tensor as a module.
#include "tandem/layers/lambda.h"

namespace tandem::layers {

Lambda::Lambda(Function function, std::string description)
    : function_(std::move(function)), description_(std::move(description)) {
  require(function_ != nullptr, "Lambda: got an empty function; give one that makes a tensor of a tensor");
}

}  // namespace tandem::layers
