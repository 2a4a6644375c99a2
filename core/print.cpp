// Tensors as text: which elements are shown, and in which lines.
#include "tandem/core/print.h"

#include "tandem/core/describe.h"
#include "tandem/core/number_column.h"

#include <algorithm>
#include <ostream>

namespace tandem {

namespace {

/// "tensor(", behind which lines begin.
constexpr std::string_view kPrefix = "tensor(";

/// Copies the ends of the dimensions from `dim` on to `to`, which has 2 * edge_items elements in each dimension that is
/// longer.
void copy_ends(const Tensor& from, const Tensor& to, int dim, std::int64_t edge_items) {
  if (dim == from.rank()) return to.copy_from(from);
  if (from.size(dim) == to.size(dim)) return copy_ends(from, to, dim + 1, edge_items);
  copy_ends(from.narrow(dim, 0, edge_items), to.narrow(dim, 0, edge_items), dim + 1, edge_items);
  copy_ends(from.narrow(dim, from.size(dim) - edge_items, edge_items), to.narrow(dim, edge_items, edge_items), dim + 1,
            edge_items);
}

/// What is shown of a tensor, on the CPU.
Tensor shown_part(const Tensor& tensor, bool shortened, std::int64_t edge_items) {
  Shape shape = tensor.shape();
  for (int dim = 0; shortened && dim < shape.rank(); ++dim)
    if (edge_items <= shape[dim] / 2) shape[dim] = 2 * edge_items;
  const Tensor part = Tensor::empty(shape, {.dtype = tensor.dtype()});
  copy_ends(tensor.detach(), part, 0, edge_items);
  return part;
}

/// Texts of numbers in brackets and lines, as NumPy's _formatArray() puts them.
class Lines {
 public:
  Lines(const Shape& full, const Shape& shown, std::vector<std::string> texts)
      : full_(full), shown_(shown), texts_(std::move(texts)) {}

  /// The part from dimension `dim` on whose texts come next. Lines begin with `indent`, and have `width` characters at
  /// most.
  std::string text(int dim, const std::string& indent, std::size_t width) {
    if (dim == full_.rank()) return texts_.at(next_++);
    return dim + 1 == full_.rank() ? row(dim, indent, width) : rows(dim, indent, width);
  }

 private:
  /// Where the dots go: before this element, or nowhere (-1).
  std::int64_t gap(int dim) const { return shown_[dim] < full_[dim] ? shown_[dim] / 2 : -1; }

  std::string row(int dim, const std::string& indent, std::size_t width) {
    std::string done, line = indent;
    const auto add = [&](const std::string& word) {
      if (line.size() + word.size() + 1 > width && line.size() > indent.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        done += line;
        done += '\n';
        line = indent;
      }
      line += word;
    };
    for (std::int64_t i = 0; i < shown_[dim]; ++i) {
      if (i == gap(dim)) {
        add("...");
        line += ", ";
      }
      add(text(dim + 1, indent + " ", width - 1));
      if (i + 1 < shown_[dim]) line += ", ";
    }
    done += line;
    return fmt::format("[{}]", std::string_view(done).substr(indent.size()));
  }

  std::string rows(int dim, const std::string& indent, std::size_t width) {
    const std::string between = fmt::format(",{:\n<{}}", "", full_.rank() - dim - 1);
    std::string result;
    for (std::int64_t i = 0; i < shown_[dim]; ++i) {
      if (i == gap(dim)) result += fmt::format("{}...{}", indent, between);
      result += indent;
      result += text(dim + 1, indent + " ", width - 1);
      if (i + 1 < shown_[dim]) result += between;
    }
    return fmt::format("[{}]", std::string_view(result).substr(indent.size()));
  }

  Shape full_, shown_;
  std::vector<std::string> texts_;  // of what is shown, in row-major order
  std::size_t next_ = 0;
};

std::string values_of(const Tensor& tensor, const PrintOptions& options) {
  if (tensor.numel() == 0) return "[]";
  const Tensor part = shown_part(tensor, tensor.numel() > options.threshold, options.edge_items);
  Lines lines(tensor.shape(), part.shape(), number_column(part, options.precision));
  // The closing parenthesis belongs to the last line.
  return lines.text(0, std::string(kPrefix.size() + 1, ' '), static_cast<std::size_t>(options.line_width - 1));
}

}  // namespace

std::string to_string(const Tensor& tensor, const PrintOptions& options) {
  require(options.precision >= 0 && options.precision <= 100, "to_string: precision must lie between 0 and 100, got {}",
          options.precision);
  require(options.edge_items >= 1, "to_string: edge_items must be at least 1, got {}", options.edge_items);
  require(options.line_width >= 20, "to_string: line_width must be at least 20, got {}", options.line_width);
  require(options.threshold >= 0, "to_string: threshold must not be negative, got {}", options.threshold);
  if (!tensor.defined()) return "tensor(undefined)";
  const std::string text = fmt::format("{}{},", kPrefix, values_of(tensor, options));
  const auto& meta = tensor.autograd_meta();
  const std::string what = fmt::format("{}, {}{}", describe(tensor), tensor.device(),
                                       meta != nullptr && meta->requires_grad ? ", requires_grad" : "");
  const std::size_t last_line = text.size() - (text.rfind('\n') + 1);  // npos + 1 is 0
  const bool fits = last_line + 1 + what.size() + 1 <= static_cast<std::size_t>(options.line_width);
  return fits ? fmt::format("{} {})", text, what) : fmt::format("{}\n{:{}}{})", text, "", kPrefix.size(), what);
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) { return stream << to_string(tensor); }
std::ostream& operator<<(std::ostream& stream, const Shape& shape) { return stream << to_string(shape); }
std::ostream& operator<<(std::ostream& stream, const Strides& strides) { return stream << to_string(strides); }
std::ostream& operator<<(std::ostream& stream, DType dtype) { return stream << name_of(dtype); }
std::ostream& operator<<(std::ostream& stream, Device device) { return stream << name_of(device); }

}  // namespace tandem
