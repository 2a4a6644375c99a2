// Batched products on the CPU: small matrices are multiplied as they lie in memory, panel by panel of b; large ones are
// packed, each by gemm.
#include "tandem/kernels/gemm/batched_gemm_implementations.h"

#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/pack.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"
#include "tandem/kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::cpu {
namespace {

using tiling::kPanel;

// Matrices of a that stay in the L2 cache while the panels of b pass.
constexpr std::int64_t kMostOfA = std::int64_t{1} << 17;
constexpr std::int64_t kMostRows = 1024;
constexpr std::int64_t kProductsPerWorker = std::int64_t{1} << 17;  // multiplications that are worth waking a thread
constexpr std::int64_t kTasksPerWorker = 4;

constexpr std::int64_t parts_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

using TileFunction = void (*)(const tiling::TileOperands&);

template <int kRows>
struct StridedTile {
  static void run(const tiling::TileOperands& operands) {
    const tiling::TileOperands own = operands;  // what stores to c cannot change: it stays in registers
    tiling::multiply_tile<kRows, tiling::kPanelVectors>(own);
  }
};

/// A matrix of T in memory that is written; columns are adjacent.
template <typename T>
struct MatrixOut {
  T* data;
  std::int64_t row_stride;
};

/// The sizes of one product.
struct ProductSize {
  std::int64_t m, n, k;

  std::int64_t panels() const { return parts_of(n, kPanel); }
};

template <typename T>
MatrixView<T> view(const Tensor& matrices, std::int64_t number) {
  return {matrices.data<T>() + matrix_offset(matrices, number), matrices.stride(-2), matrices.stride(-1)};
}

/// What one thread works with: a packed panel of b, the sums of a panel of c, and a as floats.
template <typename T>
class PanelWork {
 public:
  explicit PanelWork(const ProductSize& size, float* memory)
      : size_(size), packed_(memory), sums_(packed_ + packed_floats(size)), left_(sums_ + size.m * kPanel) {}

  /// Floats of memory that it takes.
  static std::int64_t floats(const ProductSize& size) {
    return packed_floats(size) + size.m * kPanel + (is_float<T> ? 0 : size.m * size.k);
  }

  /// The left operand of the products that follow.
  void set_left(const MatrixView<T>& a) {
    if constexpr (is_float<T>) {
      a_ = a;
    } else if (a.row_stride == 1) {
      for (std::int64_t k = 0; k < size_.k; ++k) widen(a.data + k * a.column_stride, size_.m, left_ + k * size_.m);
      a_ = {left_, 1, size_.m};
    } else {
      for (std::int64_t i = 0; i < size_.m; ++i)
        widen(a.data + i * a.row_stride, a.column_stride, size_.k, left_ + i * size_.k);
      a_ = {left_, size_.k, 1};
    }
  }

  /// c = a b for one panel of `columns` columns.
  void multiply(const MatrixView<T>& b, std::int64_t columns, const MatrixOut<T>& c) const {
    if constexpr (is_float<T>) {
      if (columns == kPanel) return add_up(b, columns, c.data, c.row_stride);
    }
    add_up(b, columns, sums_, kPanel);
    for (std::int64_t i = 0; i < size_.m; ++i) round_floats(sums_ + i * kPanel, columns, c.data + i * c.row_stride);
  }

 private:
  static std::int64_t packed_floats(const ProductSize& size) { return std::min(size.k, kBlockK) * kPanel; }

  /// True if the register tile may read whole panels of b where they are: for so few rows that packing does not pay, or
  /// where all of it is in the L1 cache.
  bool reads_in_place(const MatrixView<T>& b, std::int64_t columns) const {
    constexpr std::int64_t kFloatsInCache = 1 << 12;
    const bool pays = size_.m <= 2 * tiling::kTileRows || std::min(size_.k, kBlockK) * b.row_stride <= kFloatsInCache;
    return is_float<T> && columns == kPanel && b.column_stride == 1 && pays;
  }

  void add_up(const MatrixView<T>& b, std::int64_t columns, float* c, std::int64_t c_row) const {
    const bool in_place = reads_in_place(b, columns);
    for (std::int64_t k0 = 0; k0 < size_.k; k0 += kBlockK) {
      const std::int64_t depth = std::min(kBlockK, size_.k - k0);
      const MatrixView<T> block{b.data + k0 * b.row_stride, b.row_stride, b.column_stride};
      const float* panel = packed_;
      if constexpr (is_float<T>) {
        if (in_place) panel = block.data;
      }
      if (!in_place) pack_columns(block, columns, depth, packed_);
      tiling::for_each_row_tile(size_.m, [&](std::int64_t first, std::int64_t rows) {
        const auto& tiles = tiling::kKernelByRows<TileFunction, StridedTile>;
        tiles[static_cast<std::size_t>(rows - 1)]({.a = a_.data + first * a_.row_stride + k0 * a_.column_stride,
                                                   .a_row = a_.row_stride,
                                                   .a_k = a_.column_stride,
                                                   .a_segment = 0,
                                                   .segments = 1,
                                                   .segment = depth,
                                                   .b = panel,
                                                   .b_k = in_place ? b.row_stride : kPanel,
                                                   .b_vector = simd::kLanes,
                                                   .c = c + first * c_row,
                                                   .c_row = c_row,
                                                   .c_vector = simd::kLanes,
                                                   .accumulate = k0 > 0});
      });
    }
  }

  ProductSize size_;
  float* packed_;
  float* sums_;
  float* left_;
  MatrixView<float> a_{};
};

/// Every task has some panels of one product.
template <typename T>
void multiply_panels(const ProductSize& size, const Tensor& a, const Tensor& b, const Out& c) {
  const std::int64_t batches = matrix_count(c), panels = size.panels();
  const std::int64_t worth = parts_of(batches * size.m * size.n * size.k, kProductsPerWorker);
  const std::int64_t workers = std::min({worth, workers_for(worth), batches * panels});
  const std::int64_t groups = std::min(panels, parts_of(kTasksPerWorker * workers, batches));
  const std::int64_t floats = PanelWork<T>::floats(size);
  const Scratch memory(workers * floats);
  for_each_task(batches * groups, workers, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t batch = task / groups, group = task % groups;
    PanelWork<T> work(size, memory.data() + worker * floats);
    work.set_left(view<T>(a, batch));
    const MatrixView<T> right = view<T>(b, batch);
    T* const result = c.data<T>() + matrix_offset(c, batch);
    for (std::int64_t panel = panels * group / groups; panel < panels * (group + 1) / groups; ++panel) {
      const std::int64_t column = panel * kPanel;
      work.multiply({right.data + column * right.column_stride, right.row_stride, right.column_stride},
                    std::min<std::int64_t>(kPanel, size.n - column), {result + column, c.stride(-2)});
    }
  });
}

}  // namespace

bool supports_batched_gemm(const Tensor& c) { return computes_in_float(c.dtype()); }

void batched_gemm(const Tensor& a, const Tensor& b, const Out& c) {
  const ProductSize size{c.size(-2), c.size(-1), a.size(-1)};
  if (size.m > kMostRows || size.m * size.k > kMostOfA) {
    for (std::int64_t i = 0; i < matrix_count(c); ++i) gemm(matrix_at(a, i), matrix_at(b, i), {}, Out(matrix_at(c, i)));
    return;
  }
  dispatch_float(c.dtype(), "batched_gemm",
                 [&](auto tag) { multiply_panels<typename decltype(tag)::type>(size, a, b, c); });
}

}  // namespace tandem::kernels::cpu
