// The table of a network.
#include "tandem/layers/summary.h"

#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::layers {

namespace {

constexpr std::size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

/// "12.3 KiB" or "1.2 MiB".
std::string size_text(std::int64_t bytes) {
  const double kibibytes = static_cast<double>(bytes) / 1024.0;
  return kibibytes < 1024.0 ? fmt::format("{:.1f} KiB", kibibytes) : fmt::format("{:.1f} MiB", kibibytes / 1024.0);
}

/// "0", "864", "1.77 k", "37.7 M", "1.2 G": three digits.
std::string count_text(double count) {
  constexpr std::string_view kUnits[] = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  while (count >= 999.5 && unit + 1 < std::size(kUnits)) {
    count /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.3g}{}", count, kUnits[unit]);
}

Row row_of(const LayerSummary& layer) {
  const std::string repeats = layer.calls > 1 ? fmt::format(", used {} times", layer.calls) : std::string();
  return {layer.name, layer.what + repeats, layer.calls > 0 ? to_string(layer.output) : "not called",
          layer.parameters > 0 ? with_separators(layer.parameters) : "-",
          layer.flops > 0.0 ? count_text(layer.flops) : "-"};
}

}  // namespace

std::string to_string(const ModelSummary& summary) {
  std::vector<Row> rows{{"layer", "what", "output", "parameters", "FLOPs"}};
  for (const LayerSummary& layer : summary.layers) rows.push_back(row_of(layer));
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}\n", row[0], widths[0], row[1], widths[1], row[2],
                        widths[2], row[3], widths[3], row[4], widths[4]);
  }
  const std::string frozen = summary.frozen_parameters > 0
                                 ? fmt::format(" ({} of them frozen)", with_separators(summary.frozen_parameters))
                                 : std::string();
  text += fmt::format("{} parameters{} in {} tensors, {}; buffers {}\n", with_separators(summary.parameters), frozen,
                      summary.parameter_tensors, size_text(summary.parameter_bytes), size_text(summary.buffer_bytes));
  text += fmt::format("{} FLOPs in a forward pass; {} of activations kept for backward\n", count_text(summary.flops),
                      size_text(summary.activation_bytes));
  return text;
}

}  // namespace tandem::layers
