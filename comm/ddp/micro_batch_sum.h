// Sums over micro-batches whose bits do not depend on how many ranks share them.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/tensor.h"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace tandem::comm {

/// Adds up tensors of M micro-batches, M a power of two, which N ranks share, N a power of two up to M: rank r has the
/// M / N that follow those of the ranks before it. They are added by one fixed binary tree, ((0+1)+(2+3))+..., of which
/// each rank adds what is its own. So a sum has the same bits for each N and backend, which only moves elements. Halves
/// are added up in f32. It takes log2(M / N) + 1 copies of what is added up at most, and two more while ranks
/// exchange theirs. Not for use by several threads.
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     MpiEnvironment environment;
///     const auto group = make_process_group("auto", environment);
///     const std::vector<Tensor> like{Tensor::zeros({2})};
///     MicroBatchSum sum(*group, 4 * group->size(), like);
///     for (int i = 0; i < sum.local_count(); ++i) sum.add({Tensor::full({2}, sum.first() + i)});
///     const std::vector<float> all = sum.finish().front().to_vector<float>();  // on one rank {6, 6}
class MicroBatchSum {
 public:
  /// `like` has the shapes, strides, dtypes and the device of what is added up. Throws Error unless the numbers of
  /// ranks and of micro-batches are as above, and for dtypes that are not floating. `group` must outlive this object.
  MicroBatchSum(ProcessGroup& group, int micro_batches, std::vector<Tensor> like);

  /// The number of this rank's first micro-batch.
  int first() const { return group_.rank() * local_count(); }
  /// How many micro-batches this rank has.
  int local_count() const { return micro_batches_ / group_.size(); }

  /// Begins a sum, and forgets what was added since the last one.
  void start();

  /// This rank's next micro-batch: `weight` times each tensor, which is copied; an undefined one counts as zeros.
  /// Throws Error for tensors of another shape or device than those given, for integers, and for one micro-batch too
  /// many. Any floating dtype will do.
  void add(std::span<const Tensor> tensors, double weight = 1.0);
  void add(std::initializer_list<Tensor> tensors, double weight = 1.0) {
    add(std::span(tensors.begin(), tensors.size()), weight);
  }

  /// The sums over all ranks' micro-batches, f32 of halves, the same on every rank; undefined where no micro-batch had
  /// a tensor. Begins the next sum. Throws Error before local_count() micro-batches. Collective.
  std::vector<Tensor> finish();

 private:
  /// All tensors of one dtype and device, one after another, and a mark for each that is 1 where it is there.
  struct Flat {
    DType dtype;
    Device device;
    std::vector<std::size_t> members = {};
    std::vector<std::int64_t> begins = {};
    std::int64_t elements = 0;
  };
  /// A sum over 2^level micro-batches that follow each other.
  struct Partial {
    int level = 0;
    std::vector<Tensor> flats;
  };

  Tensor view(const Flat& flat, const Tensor& memory, std::size_t member) const;
  Tensor sum_over_ranks(const Tensor& mine) const;

  ProcessGroup& group_;
  int micro_batches_;
  std::vector<Tensor> like_;
  std::vector<Flat> flats_;
  std::vector<Partial> partials_;  // of falling levels
  int added_ = 0;
};

}  // namespace tandem::comm
