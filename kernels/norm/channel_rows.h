// Work on [rows, C] matrices whose columns are channels, cut up in a way that depends on the shape alone.
#pragma once

#include "tandem/kernels/norm/channel_values.h"

#include <algorithm>
#include <span>

namespace tandem::kernels::detail {

/// Several rows side by side form one wide row, long enough for vector loops whatever the number of channels. A chunk
/// is a run of wide rows short enough to be summed in f32; a block is a run of chunks, the unit that threads share out.
class ChannelRows {
 public:
  /// The rows of an [N, C, H, W] tensor stored channels_last, or of an [N, C] one.
  explicit ChannelRows(const Tensor& x) : rows_(x.numel() / x.size(1)), channels_(x.size(1)) {
    rows_per_wide_ = (kMinWidth + channels_ - 1) / channels_;
    rows_per_chunk_ = kWidePerChunk * rows_per_wide_;
    const std::int64_t chunks = (rows_ + rows_per_chunk_ - 1) / rows_per_chunk_;
    rows_per_block_ = (chunks + kMaxBlocks - 1) / kMaxBlocks * rows_per_chunk_;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t width() const { return rows_per_wide_ * channels_; }
  std::int64_t blocks() const { return (rows_ + rows_per_block_ - 1) / rows_per_block_; }
  std::int64_t rows_in(std::int64_t block) const { return std::min(rows_per_block_, rows_ - block * rows_per_block_); }

  /// Calls visit(first_row, row_count) for the chunks of a block, in order.
  template <typename Visitor>
  void for_each_chunk(std::int64_t block, Visitor&& visit) const {
    const std::int64_t end = std::min((block + 1) * rows_per_block_, rows_);
    for (std::int64_t row = block * rows_per_block_; row < end; row += rows_per_chunk_) {
      visit(row, std::min(rows_per_chunk_, end - row));
    }
  }

  /// Calls visit(offset, length) for the wide rows among `row_count` rows: elements [offset, offset + length) of the
  /// matrix.
  template <typename Visitor>
  void for_each_wide(std::int64_t first_row, std::int64_t row_count, Visitor&& visit) const {
    const std::int64_t end = (first_row + row_count) * channels_;
    for (std::int64_t offset = first_row * channels_; offset < end; offset += width()) {
      visit(offset, std::min(width(), end - offset));
    }
  }

  /// One value per channel, repeated over a wide row.
  std::vector<float> widen(const ChannelValues& values) const {
    std::vector<float> wide(static_cast<std::size_t>(width()));
    widen(values, wide);
    return wide;
  }

  /// Likewise, into a wide row that is there already.
  void widen(std::span<const double> values, std::vector<float>& wide) const {
    for (std::size_t offset = 0; offset < wide.size(); offset += values.size()) {
      for (std::size_t c = 0; c < values.size(); ++c) wide[offset + c] = static_cast<float>(values[c]);
    }
  }

  /// Adds the columns of a wide row up by channel.
  void fold(const std::vector<float>& wide, std::span<double> sums) const {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t offset = 0; offset < wide.size(); offset += sums.size()) {
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(wide[offset + c]);
    }
  }

 private:
  static constexpr std::int64_t kMinWidth = 64, kWidePerChunk = 64, kMaxBlocks = 64;

  std::int64_t rows_, channels_, rows_per_wide_, rows_per_chunk_, rows_per_block_;
};

/// Two values per channel for every block, 0 at first, in one piece of memory: a batch norm has up to 64 blocks.
class BlockValues {
 public:
  explicit BlockValues(const ChannelRows& rows)
      : channels_(static_cast<std::size_t>(rows.channels())),
        values_(2 * channels_ * static_cast<std::size_t>(rows.blocks())) {}

  std::span<double> first(std::int64_t block) { return row(2 * static_cast<std::size_t>(block)); }
  std::span<double> second(std::int64_t block) { return row(2 * static_cast<std::size_t>(block) + 1); }

 private:
  std::span<double> row(std::size_t number) { return std::span(values_).subspan(number * channels_, channels_); }

  std::size_t channels_;
  std::vector<double> values_;
};

/// How x becomes y, per column of a wide row. Forward and backward share it, so that they agree on the sign of y.
struct WideTransform {
  std::vector<float> mean, scale, bias;

  WideTransform(const ChannelRows& rows, const ChannelValues& mean_values, const ChannelValues& inverse_std,
                const Tensor& weight, const Tensor& bias_tensor)
      : mean(rows.widen(mean_values)), bias(rows.widen(load_channels(bias_tensor, rows.channels(), 0.0))) {
    ChannelValues product = load_channels(weight, rows.channels(), 1.0);
    for (std::size_t c = 0; c < product.size(); ++c) product[c] *= inverse_std[c];
    scale = rows.widen(product);
  }

  static float apply(float x, float mean, float scale, float bias) { return (x - mean) * scale + bias; }
};

}  // namespace tandem::kernels::detail
