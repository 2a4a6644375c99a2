// Which code runs a convolution, decided by measurement instead of by a table.
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/dtype.h"
#include "tandem/kernels/conv/geometry.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::kernels {

/// What a pass does beside the convolution, and where its tensors are: who can run it, and how fast, depends on that.
struct TunedWork {
  bool bias = false, relu = false;  // forward
  bool mask = false;                // forward: is written; backward on the CPU: of grad_y; on a GPU: of the layer below
  bool sums = false;                // a bias gradient in the same pass
  bool gate = false;                // the output of the layer below is there, by which a library can mask
  std::uint8_t unaligned = 0;       // a bit for each tensor of the pass that begins at no multiple of 16 bytes

  friend auto operator<=>(const TunedWork&, const TunedWork&) = default;
};

/// One pass over one geometry, on the CPU or the GPUs of one machine: all that the candidates depend on.
struct TuningKey {
  DeviceType device;
  PassKind pass;
  DType dtype;
  ConvGeometry geometry;
  TunedWork work = {};

  friend auto operator<=>(const TuningKey&, const TuningKey&) = default;
};

struct TuningResult {
  std::string chosen;
  std::map<std::string, double> microseconds;  // of every candidate
};

/// One way to run a pass. `run` may be called any number of times; it enqueues the whole pass.
struct TuningCandidate {
  std::string_view name;
  std::function<void()> run;
};

/// Remembers what was measured. All member functions may be called from several threads.
class ConvTuner {
 public:
  /// Whether choose() measures what it does not know. Off at first.
  void set_measuring(bool measuring);

  /// False where choose() would give nothing but fallbacks.
  bool is_active() const { return active_; }

  /// The index of the candidate that is the fastest for `key` among those that are `allowed`; all are, by default. What
  /// was not measured yet, or of other candidates, is measured now, all of them, in three turns on `device`, or else is
  /// `fallback`.
  std::size_t choose(const TuningKey& key, Device device, std::span<const TuningCandidate> candidates,
                     std::size_t fallback, const std::function<bool(std::size_t)>& allowed = {});

  void add(const TuningKey& key, const TuningResult& result);
  std::map<TuningKey, TuningResult> results() const;

  /// Another number behind each call after which choose() may choose something else for what it was asked before:
  /// set_measuring(), add() and clear().
  std::int64_t generation() const { return generation_; }

  /// How many keys choose() has measured.
  std::int64_t measured() const;

  /// Forgets everything.
  void clear();

 private:
  void update_active() { active_ = measuring_ || !results_.empty(); }

  std::atomic<bool> active_ = false;
  std::atomic<std::int64_t> generation_ = 0;
  mutable std::mutex mutex_;
  std::recursive_mutex measuring_mutex_;  // taken first; again by candidates that choose for a part of what they do
  std::map<TuningKey, TuningResult> results_;
  bool measuring_ = false;
  std::int64_t measured_ = 0;
};

/// The one that all convolutions ask.
ConvTuner& conv_tuner();

}  // namespace tandem::kernels
