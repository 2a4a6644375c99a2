// Config files of any bytes are read, or refused with an Error.
#include "config_file.h"
#include "tandem/core/error.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile file;
  file.fill(data, size);
  try {
    for (const auto& entry : tandem::apps::read_config(file.path())) tandem::fuzz::expect(!entry.name.empty());
  } catch (const tandem::Error&) {  // refused
  }
  return 0;
}
