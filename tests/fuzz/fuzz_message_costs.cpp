// Files of message costs of any bytes are taken as a whole, or not at all; what is taken has times at every size.
#include "tandem/train/message_costs_file.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile file;
  file.fill(data, size);
  const tandem::train::LoadedCosts loaded = tandem::train::load_message_costs(file.path(), "two");
  if (!loaded.costs) return 0;
  tandem::fuzz::expect(loaded.problem.empty());
  for (const std::int64_t bytes : {0, 1, 1000, 1 << 30}) {
    tandem::fuzz::expect(loaded.costs->within_host.at(bytes) >= 0.0);
    tandem::fuzz::expect(loaded.costs->between_hosts.at(bytes) >= 0.0);
    tandem::fuzz::expect(loaded.costs->combine.at(bytes) >= 0.0);
  }
  return 0;
}
