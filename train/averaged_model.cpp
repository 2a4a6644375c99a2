// Values in and out.
#include "tandem/train/averaged_model.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/memory.h"

#include <map>
#include <string_view>

namespace tandem::train {

AveragedModel::AveragedModel(layers::Module& model, const optim::ExponentialMovingAverage& ema) {
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  std::map<std::string_view, Tensor> averages;
  for (const auto& [name, average] : ema.averages()) averages.emplace(name, average);
  for (const auto& [name, tensor] : model.state_dict()) {
    const auto average = averages.find(name);
    if (average == averages.end()) continue;
    own_.emplace_back(tensor, tensor.clone());
    tensor.copy_from(is_floating(tensor.dtype()) ? autograd::cast(average->second, tensor.dtype()) : average->second);
  }
}

AveragedModel::~AveragedModel() {
  // The last first: of a tensor that has two names, the value from before both.
  for (; !own_.empty(); own_.pop_back()) {
    const auto& [tensor, value] = own_.back();
    tensor.copy_from(value);
  }
}

}  // namespace tandem::train
