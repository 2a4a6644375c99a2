// Recording what a GPU does, by CUPTI's activity interface.
#pragma once

#include "tandem/core/cupti/clocks.h"
#include "tandem/core/cupti/library.h"
#include "tandem/core/cupti/records.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tandem::cupti {

/// What was recorded.
struct Recording {
  std::vector<Activity> activities;  // by their beginning
  std::string notes;                 // how well: "clocks agree within 0.04 us; dropped records: 3 ..."
};

/// Records kernels, copies and fills of all of this process's GPUs while it lives. One at a time: CUPTI has one set of
/// callbacks.
class Recorder {
 public:
  /// Begins. Throws Error with CUPTI's reason where it refuses.
  explicit Recorder(std::shared_ptr<const Library> library);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const std::shared_ptr<const Library>& library() const { return library_; }

  /// What there was since the beginning, of which the GPU must be done with all. Throws Error where CUPTI does not hand
  /// it out. To be called once.
  Recording stop();

 private:
  void disable() noexcept;

  std::shared_ptr<const Library> library_;
  std::vector<RecordKind> enabled_;
  ClockReading first_;
};

}  // namespace tandem::cupti
