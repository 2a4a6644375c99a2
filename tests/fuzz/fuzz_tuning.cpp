// Tuning files of any bytes are taken as a whole, or not at all.
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/train/tuning_file.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile file;
  file.fill(data, size);
  auto& tuner = tandem::kernels::conv_tuner();
  tuner.clear();
  const std::string problem = tandem::train::load_tuning(file.path(), "this machine");
  tandem::fuzz::expect(problem.empty() || tuner.results().empty());
  return 0;
}
