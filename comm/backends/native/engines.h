// The engines of the native backend, which move on together, and the works of what they do.
#pragma once

#include "tandem/comm/backends/native/collective_agreement.h"
#include "tandem/comm/backends/native/device_engine.h"
#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/work.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tandem::comm {

class StepStatus;

/// Whichever operation is polled or waited for, all move on.
class Engines : public std::enable_shared_from_this<Engines> {
 public:
  explicit Engines(NativeEngine engine) : messages(std::move(engine)) {}

  /// From now on collectives begin when all ranks have announced them: on the GPUs, or elsewhere. On all ranks alike.
  void use_devices(std::unique_ptr<DeviceEngine> engine);

  std::unique_ptr<Work> start(const Collective& collective);
  /// True if anything moved. Throws Error where a rank that this one waits for has ended.
  bool poll();

  NativeEngine messages;
  std::int64_t moves = 0;                 ///< polls that moved anything
  StepStatus* steps = nullptr;            ///< where they are shown
  bool many_ranks = false;                ///< more of them than cores
  std::unique_ptr<WindowEngine> window;   ///< null where ranks exchange messages only
  std::unique_ptr<DeviceEngine> devices;  ///< null where tensors of GPUs come by host memory

 private:
  std::unique_ptr<Work> begin(const Collective& collective);
  bool begin_agreed();
  void check_agreement();
  std::string waits_for() const;
  void show_step();

  std::optional<CollectiveAgreement> agreement_;  // with `devices`
  std::optional<EndedPeer> ended_;
  int idle_looks_ = 0;  // since the last step
};

}  // namespace tandem::comm
