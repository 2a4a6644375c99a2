// Prints tensors for compare_numpy.py. Each begins with a line on standard input: dtype, edge_items, threshold, line
// width, precision and sizes; then come its bytes. Texts end with a zero byte.
#include "tandem/core/out.h"
#include "tandem/core/print.h"

#include <iostream>
#include <sstream>

using namespace tandem;

namespace {

DType dtype_named(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  fail("no dtype is called {}", name);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string dtype;
    PrintOptions options;
    words >> dtype >> options.edge_items >> options.threshold >> options.line_width >> options.precision;
    Shape shape;
    for (std::int64_t size = 0; words >> size;) shape.push_back(size);
    const Tensor x = Tensor::empty(shape, {.dtype = dtype_named(dtype)});
    std::cin.read(static_cast<char*>(Out(x).raw_data()), x.numel() * size_of(x.dtype()));
    std::cout << to_string(x, options) << '\0';
  }
}
