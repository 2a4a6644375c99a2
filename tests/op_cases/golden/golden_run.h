// What recordings of the op table consist of: every op and variant, in every dtype of the GPU.
#pragma once

#include "tests/op_cases/op_case.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::test {

/// One call with its inputs.
struct GoldenRun {
  const OpCase& op;
  const OpCall& call;
  std::string name;  // unlike all others: "relu, images [1, 8, 3, 3], f16, integers"
  DType dtype = DType::f32;
  /// Whole numbers in and out: every correct device gives the same bits. Else random ones: each device rounds its own
  /// way.
  bool integers = false;
  std::vector<Tensor> inputs = {};  // leaves on the CPU
};

/// Visits all runs on images of these shapes, those of ops whose results leave the integers with fractions only.
/// `ops`: names of cases, empty for all; throws Error for a name that the table has not.
void for_each_golden_run(const std::vector<Shape>& shapes, const std::vector<std::string>& ops,
                         const std::function<void(const GoldenRun&)>& visit);

/// The output, then the gradient of each input (undefined where none is wanted), on the CPU, row-major.
std::vector<Tensor> results_of(const GoldenRun& run, Device device);

/// How far each element of each of results_of may be from the exact result.
std::vector<std::vector<double>> bounds_of(const GoldenRun& run, const std::vector<Tensor>& results);

/// "output", or "gradient of input 1": the index-th of results_of.
std::string result_name(std::size_t index);

}  // namespace tandem::test
