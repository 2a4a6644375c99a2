// The tree: a rank's own branches as on a counter of binary digits, those above by exchanging parts.
#include "tandem/comm/ddp/micro_batch_sum.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/elementwise/add.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tandem::comm {

namespace {

bool is_power_of_two(int number) { return number > 0 && std::has_single_bit(static_cast<unsigned>(number)); }

}  // namespace

MicroBatchSum::MicroBatchSum(ProcessGroup& group, int micro_batches, std::vector<Tensor> like)
    : group_(group), micro_batches_(micro_batches), like_(std::move(like)) {
  require(is_power_of_two(micro_batches), "canonical sums are over 1, 2, 4, 8, ... micro-batches, not {}",
          micro_batches);
  require(is_power_of_two(group.size()) && group.size() <= micro_batches,
          "canonical sums over {} micro-batches are shared by 1, 2, 4, ... up to {} ranks, not by {}", micro_batches,
          micro_batches, group.size());
  for (std::size_t i = 0; i < like_.size(); ++i) {
    require(like_[i].defined() && is_floating(like_[i].dtype()), "canonical sums are of floating tensors, not of {}",
            like_[i]);
    const DType dtype = autograd::wide_dtype(like_[i].dtype());
    const Device device = like_[i].device();
    auto flat =
        std::ranges::find_if(flats_, [&](const Flat& one) { return one.dtype == dtype && one.device == device; });
    if (flat == flats_.end()) flat = flats_.insert(flats_.end(), {.dtype = dtype, .device = device});
    flat->members.push_back(i);
    flat->begins.push_back(flat->elements);
    flat->elements += like_[i].numel();
  }
}

void MicroBatchSum::start() {
  partials_.clear();
  added_ = 0;
}

Tensor MicroBatchSum::view(const Flat& flat, const Tensor& memory, std::size_t member) const {
  const Tensor& like = like_[flat.members[member]];
  const Strides strides = like.is_dense() ? like.strides() : dense_strides(like.shape(), Layout::row_major);
  return memory.as_strided(like.shape(), strides, flat.begins[member]);
}

void MicroBatchSum::add(std::span<const Tensor> tensors, double weight) {
  require(tensors.size() == like_.size(), "a canonical sum of {} tensors was given {}", like_.size(), tensors.size());
  require(added_ < local_count(), "a canonical sum has {} micro-batches on this rank, and was given one more",
          local_count());
  const autograd::NoGrad no_grad;
  Partial mine;
  for (const Flat& flat : flats_) {
    const auto marks = static_cast<std::int64_t>(flat.members.size());
    const std::int64_t ranks = group_.size(), size = (flat.elements + marks + ranks - 1) / ranks * ranks;
    const Tensor memory = Tensor::zeros({size}, {.dtype = flat.dtype, .device = flat.device});
    std::vector<double> is_there;
    for (std::size_t member = 0; member < flat.members.size(); ++member) {
      const Tensor& like = like_[flat.members[member]];
      const Tensor& tensor = tensors[flat.members[member]];
      is_there.push_back(tensor.defined() ? 1.0 : 0.0);
      if (!tensor.defined()) continue;
      require(tensor.shape() == like.shape() && tensor.device() == like.device() && is_floating(tensor.dtype()),
              "a canonical sum of {} on {} was given {} on {}", like, name_of(like.device()), tensor,
              name_of(tensor.device()));
      const Tensor wide = autograd::cast(tensor.detach(), flat.dtype);
      view(flat, memory, member).copy_from(weight == 1.0 ? wide : autograd::scale(wide, weight));
    }
    memory.narrow(0, flat.elements, marks).copy_from(autograd::cast(Tensor::from(is_there, {marks}), flat.dtype));
    mine.flats.push_back(memory);
  }
  ++added_;
  while (!partials_.empty() && partials_.back().level == mine.level) {
    for (std::size_t i = 0; i < mine.flats.size(); ++i)
      kernels::add(partials_.back().flats[i], mine.flats[i], Out(mine.flats[i]));
    ++mine.level;
    partials_.pop_back();
  }
  partials_.push_back(std::move(mine));
}

/// Rank r adds up the r-th part of all ranks' elements, and gives the sum to all.
Tensor MicroBatchSum::sum_over_ranks(const Tensor& mine) const {
  if (group_.size() == 1) return mine;
  const std::int64_t ranks = group_.size(), part = mine.numel() / ranks;
  const Tensor parts = group_.all_to_all(mine.view({ranks, part}));
  std::vector<Tensor> sums;
  for (std::int64_t rank = 0; rank < ranks; ++rank) sums.push_back(parts.narrow(0, rank, 1).view({part}));
  for (; sums.size() > 1; sums.resize(sums.size() / 2))
    for (std::size_t i = 0; i < sums.size() / 2; ++i) sums[i] = autograd::add(sums[2 * i], sums[2 * i + 1]);
  return group_.all_gather(sums.front()).view({mine.numel()});
}

std::vector<Tensor> MicroBatchSum::finish() {
  require(added_ == local_count(), "a canonical sum has {} micro-batches on this rank, and was given {}", local_count(),
          added_);
  const autograd::NoGrad no_grad;
  std::vector<Tensor> sums(like_.size());
  for (std::size_t i = 0; i < flats_.size(); ++i) {
    const Flat& flat = flats_[i];
    const Tensor all = sum_over_ranks(partials_.front().flats[i]);
    const auto marks = static_cast<std::int64_t>(flat.members.size());
    const auto is_there = all.narrow(0, flat.elements, marks).to(Device{}).to_vector<double>();
    for (std::size_t member = 0; member < flat.members.size(); ++member)
      if (is_there[member] > 0.0) sums[flat.members[member]] = view(flat, all, member);
  }
  start();
  return sums;
}

}  // namespace tandem::comm
