// Sums over dimensions on CUDA: which kernel adds them up, and in how many parts.
#include "tandem/kernels/reduce/sum_to_implementations.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/nest.h"
#include "tandem/kernels/reduce/sum_implementations.h"
#include "tandem/kernels/reduce/sum_kernels.cuh"

#include <vector>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock, device::kWarpThreads;

/// How one launch covers `terms` terms of each of `sums` sums, in several parts if it may.
struct SumPlan {
  bool rows;           // else columns
  std::int64_t lanes;  // sums per block
  unsigned parts, per_part;

  SumPlan(std::int64_t sums, std::int64_t terms, bool by_rows, bool in_parts) : rows(by_rows) {
    constexpr std::int64_t kShortRow = 1024;      // one warp is enough for fewer terms
    constexpr std::int64_t kTermsPerThread = 16;  // for a part to be worth a block
    constexpr std::int64_t kBlocks = 132 * 8;     // fill a large GPU
    if (rows) {
      lanes = !in_parts || terms < kShortRow ? kThreadsPerBlock / kWarpThreads : 1;
    } else {
      lanes = 1;
      while (lanes < std::min<std::int64_t>(sums, kWarpThreads)) lanes *= 2;
    }
    const std::int64_t blocks = (sums + lanes - 1) / lanes;
    const std::int64_t most = in_parts ? terms * lanes / (kThreadsPerBlock * kTermsPerThread) : 1;
    const std::int64_t wanted = std::max<std::int64_t>(std::min(kBlocks / blocks, most), 1);
    per_part = static_cast<unsigned>((terms + wanted - 1) / wanted);
    parts = static_cast<unsigned>((terms + per_part - 1) / per_part);
  }
};

/// The nest of vectors of `width` elements, if x can be read in those, and how many elements are left; else `width`
/// is 1.
struct RowVectors {
  device::Nest<1> terms;
  unsigned tail = 0;
  int width = 1;

  RowVectors(const void* x, const device::Nest<2>& sums, const device::Nest<1>& elements, int most) : terms(elements) {
    bool aligned = device::aligned_for_vectors(x) && elements.rank == 1 && elements.steps[0][0] == 1;
    for (int dim = 0; dim < sums.rank; ++dim) aligned = aligned && sums.steps[0][dim] % most == 0;
    if (!aligned) return;
    width = most;
    tail = elements.count % static_cast<unsigned>(most);
    terms.count = terms.sizes[0] = elements.count / static_cast<unsigned>(most);
    terms.steps[0][0] = most;
  }
};

template <typename T>
void launch_sum(cudaStream_t stream, const T* x, const device::Nest<2>& sums, const device::Nest<1>& terms,
                const SumPlan& plan, const SumOutput& out) {
  const auto blocks = static_cast<unsigned>((sums.count + plan.lanes - 1) / plan.lanes);
  const LaunchShape shape{dim3(blocks, plan.parts), dim3(kThreadsPerBlock)};
  if (!plan.rows) {
    return launch(sum_columns<T>, shape, stream, x, sums, terms, static_cast<unsigned>(plan.lanes), plan.per_part, out);
  }
  if constexpr (!std::is_same_v<T, double>) {  // which parts of sums are, and these are few
    if (plan.lanes == 1) {
      constexpr int kWidth = device::kVectorWidth<T>;
      const RowVectors vectors(x, sums, terms, kWidth);
      const auto width = static_cast<unsigned>(vectors.width);
      const auto kernel = width == 1 ? sum_rows<kThreadsPerBlock, 1, T> : sum_rows<kThreadsPerBlock, kWidth, T>;
      return launch(kernel, shape, stream, x, sums, vectors.terms, vectors.tail, (plan.per_part + width - 1) / width,
                    out);
    }
  }
  launch(sum_rows<kWarpThreads, 1, T>, shape, stream, x, sums, terms, 0u, plan.per_part, out);
}

/// The same nest with the sums numbered one after another as `operand`.
device::Nest<2> numbered(device::Nest<2> sums, int operand) {
  std::int64_t step = 1;
  for (int dim = 0; dim < sums.rank; ++dim) {
    sums.steps[operand][dim] = step;
    step *= sums.sizes[dim];
  }
  return sums;
}

/// Adds up `terms` for each of the sums, of which there are few enough for one launch.
template <typename T>
void sum_part(const Tensor& model, const T* x, const device::Nest<2>& sums, const device::HostNest<1>& terms, bool rows,
              const SumOutput& out) {
  const cudaStream_t stream = tandem::cuda::current_stream(model);
  struct Piece {
    device::Nest<1> terms;
    const T* x;
    SumPlan plan;
  };
  std::vector<Piece> pieces;
  std::int64_t parts = 0;
  terms.for_each_part([&](const device::Nest<1>& nest, const auto& starts) {
    pieces.push_back({nest, x + starts[0], SumPlan(sums.count, nest.count, rows, true)});
    parts += pieces.back().plan.parts;
  });
  if (parts == 1) return launch_sum(stream, x, sums, pieces[0].terms, pieces[0].plan, out);

  const MemoryTagScope scope(MemoryTag::workspace);
  using Partial = PartialSum<T>;
  const Out partial(Tensor::empty({parts, sums.count}, {.dtype = dtype_of<Partial>, .device = model.device()}));
  Partial* to = partial.data<Partial>();
  for (const Piece& piece : pieces) {
    launch_sum(stream, piece.x, numbered(sums, 1), piece.terms, piece.plan, {to, dtype_of<Partial>, 1.0, sums.count});
    to += piece.plan.parts * std::int64_t{sums.count};
  }
  device::Nest<1> of_parts;
  of_parts.rank = 1;
  of_parts.count = of_parts.sizes[0] = static_cast<unsigned>(parts);
  of_parts.steps[0][0] = sums.count;
  const SumPlan plan(sums.count, parts, sums.count == 1, false);
  launch_sum(stream, static_cast<const Partial*>(partial.data<Partial>()), numbered(sums, 0), of_parts, plan, out);
}

/// out = sum over the dimensions along which `out` would be expanded, divided by `divisor`.
void sum_over(std::string_view op, const Tensor& x, const Out& out, double divisor) {
  device::dispatch_with_integers(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Result = SumResult<T>;
    if (out.numel() == 0) return;
    if (x.numel() == 0) return out.fill(0.0 / divisor);
    const Strides out_strides = out.tensor().expand(x.shape()).strides();
    Shape sizes[2];  // of dimensions that stay, and that are summed up
    Strides x_steps[2], out_steps[2];
    for (int dim = 0; dim < x.rank(); ++dim) {
      const int which = out_strides[dim] == 0 ? 1 : 0;
      sizes[which].push_back(x.size(dim));
      x_steps[which].push_back(x.stride(dim));
      out_steps[which].push_back(out_strides[dim]);
    }
    const device::HostNest<2> sums(sizes[0], {x_steps[0], out_steps[0]});
    const device::HostNest<1> terms(sizes[1], {x_steps[1]});
    const bool rows = sums.count() == 1 || (terms.count() > 1 && terms.inner_step(0) < sums.inner_step(0));
    sums.for_each_part([&](const device::Nest<2>& part, const auto& starts) {
      sum_part<T>(x, x.data<T>() + starts[0], part, terms, rows,
                  {out.data<Result>() + starts[1], out.dtype(), divisor, 0});
    });
  });
}

}  // namespace

void sum_to(const Tensor& x, const Out& out) { sum_over("sum_to", x, out, 1.0); }

void sum(const Tensor& x, const Out& out) { sum_over("sum", x, out, 1.0); }

void mean(const Tensor& x, const Out& out) { sum_over("mean", x, out, static_cast<double>(x.numel())); }

}  // namespace tandem::kernels::cuda
