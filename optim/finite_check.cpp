// An answer that is copied to the CPU behind the work that gives it.
#include "tandem/optim/finite_check.h"

#include "tandem/core/error.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/optim/copy_to_host.h"

namespace tandem::optim {

FiniteCheck::FiniteCheck(std::span<const Tensor> tensors, kernels::TableCache* table)
    : answer_(std::make_shared<Answer>()) {
  const Tensor found = kernels::any_non_finite(tensors, table);
  if (found.device() == Device{}) {
    answer_->passed = found.item() == 0.0;
    answer_->is_known = true;
    return;
  }
  answer_->found = found;
  answer_->asked = current_stream(found.device());
  answer_->is_recorded = WorkGraph::is_recording();
  if (!answer_->is_recorded) fetch();
}

FiniteCheck FiniteCheck::of_word(const Tensor& found) {
  FiniteCheck check;
  check.answer_ = std::make_shared<Answer>();
  check.answer_->found = found;
  check.answer_->asked = current_stream(found.device());
  check.fetch();
  return check;
}

void FiniteCheck::fetch() const {
  answer_->here = begin_copy_to_host(answer_->found);
  answer_->arrived.record(answer_->asked);
}

bool FiniteCheck::passed() const {
  if (answer_ == nullptr) return true;
  if (!answer_->is_known) {
    require(!answer_->is_recorded,
            "finite check: it was recorded in a WorkGraph, whose launches have answers of their own");
    if (!answer_->arrived.is_done()) answer_->arrived.synchronize();
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
