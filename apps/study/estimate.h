// How long runs take, before they are made.
#pragma once

#include "apps/study/plan.h"

#include <functional>
#include <map>
#include <string>

namespace tandem::study {

/// Images that a run of cifar_train trains on and tests on in an epoch, and its epochs, by its settings.
struct RunSize {
  double train_images = 0.0, test_images = 0.0, epochs = 0.0;
};
RunSize size_of(const Settings& settings);

/// What a few steps tell of a machine.
struct ProbedSpeed {
  double images_per_second = 0.0;  ///< of training, over all ranks; 0: not known
  double start_seconds = 0.0;      ///< of a run, beside its epochs
};

/// Seconds of a run; NaN where the speed is not known. An image is tested in about a third of the time that training
/// takes: the forward pass alone.
double seconds_by(const RunSize& size, const ProbedSpeed& speed);

/// What remains to be done by estimates, times what the runs that are done took against theirs. Estimates that are NaN
/// count as the mean of the others.
class Remaining {
 public:
  void add(double estimate);
  /// A run that was added has taken so long.
  void finish(double estimate, double seconds);
  /// A run that was added is not to be made any more.
  void leave(double estimate);
  double seconds() const;

 private:
  double planned_ = 0.0, estimated_ = 0.0, taken_ = 0.0;
  int known_ = 0, unknown_ = 0;
};

/// Estimates by probes below a folder, which are runs of three steps, each made once: one for each network, precision
/// and way of working together.
class Estimator {
 public:
  Estimator(std::string folder, std::function<bool()> stop) : folder_(std::move(folder)), stop_(std::move(stop)) {}

  /// NaN where the run cannot be probed.
  double seconds_of(const Plan& plan, const Point& point);

 private:
  ProbedSpeed probe(const Study& study, const Settings& settings, const std::string& key);

  std::string folder_;
  std::function<bool()> stop_;
  std::map<std::string, ProbedSpeed> known_;  ///< by the probe's key
};

}  // namespace tandem::study
