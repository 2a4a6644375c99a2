// Whether gradients are finite, which a GPU answers later than it is asked.
#pragma once

#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <memory>
#include <span>

namespace tandem::optim {

/// The answer to the question whether tensors hold finite numbers only. On the CPU it is known at once. A GPU is asked
/// behind the work that it has, and goes on: its kernels look at found(), and the host waits only if it asks passed().
/// A handle: copies share the answer. Example:
///     #include <limits>
///     const Tensor good = Tensor::full({3}, 1.0);
///     const Tensor bad = Tensor::full({3}, std::numeric_limits<double>::infinity());
///     const bool first = FiniteCheck(std::vector<Tensor>{good}).passed();        // true
///     const bool second = FiniteCheck(std::vector<Tensor>{good, bad}).passed();  // false
class FiniteCheck {
 public:
  /// Of no tensors: passed.
  FiniteCheck() = default;
  /// Asks. Dense floating tensors on one device; throws Error for others, and for f64 on a GPU. Where that is recorded
  /// in a WorkGraph, found() is for kernels of the same recording, and passed() throws Error; `table` must then have
  /// been given for these tensors before (kernels::any_non_finite()).
  explicit FiniteCheck(std::span<const Tensor> tensors, kernels::TableCache* table = nullptr);
  /// The answer that the work of the current stream has left in `found`, a word on a GPU as any_non_finite() gives it,
  /// which later work may change once that stream is done with what looks at it.
  static FiniteCheck of_word(const Tensor& found);

  /// True if all are finite. Waits for the answer of a GPU.
  bool passed() const;
  /// passed(), so that what GradScaler::step() returns says whether the step was taken.
  operator bool() const { return passed(); }  // NOLINT(google-explicit-constructor): it stands for a bool
  /// Whether passed() does not wait.
  bool is_known() const;
  /// Whether it is part of a recording.
  bool is_recorded() const { return answer_ != nullptr && answer_->is_recorded; }
  /// For kernels on the current stream: i32, rank 0, on the GPU that was asked; not 0 where something is not finite.
  /// Undefined on the CPU.
  Tensor found() const;

 private:
  /// Has the answer brought here.
  void fetch() const;

  struct Answer {
    Tensor found, here;  // on the GPU, and its copy on the CPU
    Stream asked;        // whose work finds the answer
    Event arrived;
    bool is_known = false, passed = true, is_recorded = false;
  };

  std::shared_ptr<Answer> answer_;  // null: passed
};

}  // namespace tandem::optim
