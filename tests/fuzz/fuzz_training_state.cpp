// A run's state of any tensors is loaded, or refused with an Error, and the run can go on either way.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/layers/safetensors.h"
#include "tests/fuzz/input_file.h"
#include "tests/train/checkpoint/small_run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tandem::comm::ProcessGroup group(tandem::comm::make_self_backend());
  static const tandem::fuzz::InputFile file;
  static const tandem::test::SmallRun run(group);
  file.fill(data, size);
  try {
    run.trainer->load_state_dict(tandem::layers::read_safetensors(file.path()).tensors);
  } catch (const tandem::Error&) {  // refused
  }
  tandem::fuzz::expect(run.trainer->steps_done() >= 0 && run.trainer->epochs_done() >= 0);
  tandem::fuzz::expect(run.trainer->state_dict().size() >= 12);
  return 0;
}
