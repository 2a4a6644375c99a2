// An answer that is copied to the CPU behind the work that gives it.
#include "tandem/optim/finite_check.h"

#include "tandem/core/memory.h"
#include "tandem/kernels/optimizer/all_finite.h"

namespace tandem::optim {

FiniteCheck::FiniteCheck(std::span<const Tensor> tensors) : answer_(std::make_shared<Answer>()) {
  const Tensor found = kernels::any_non_finite(tensors);
  if (found.device() == Device{}) {
    answer_->passed = found.item() == 0.0;
    answer_->is_known = true;
    return;
  }
  const MemoryTagScope scope(MemoryTag::workspace);
  answer_->found = found;
  answer_->here = Tensor::empty({}, {.dtype = DType::i32, .pinned = true});
  answer_->here.copy_from_async(found);
  answer_->asked = current_stream(found.device());
  answer_->arrived.record(answer_->asked);
}

bool FiniteCheck::passed() const {
  if (answer_ == nullptr) return true;
  if (!answer_->is_known) {
    answer_->arrived.synchronize();
    answer_->passed = answer_->here.item() == 0.0;
    answer_->is_known = true;
  }
  return answer_->passed;
}

bool FiniteCheck::is_known() const { return answer_ == nullptr || answer_->is_known; }

Tensor FiniteCheck::found() const {
  if (answer_ == nullptr || !answer_->found.defined()) return {};
  const Stream now = current_stream(answer_->found.device());
  if (!(now == answer_->asked)) {
    now.wait(answer_->arrived);
    answer_->found.storage()->record_stream(now);
  }
  return answer_->found;
}

}  // namespace tandem::optim
