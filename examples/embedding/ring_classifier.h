// What the host program sees: plain types, and nothing of Tandem.
#pragma once

#include <memory>
#include <string>

/// Tells whether a point lies on the ring that examples/own_dataset.cpp learns.
class RingClassifier {
 public:
  /// Reads the weights. Null, and the reason in `problem`, where the file cannot be read or is of another network.
  static std::unique_ptr<RingClassifier> load(const std::string& path, std::string& problem);
  virtual ~RingClassifier() = default;

  virtual bool is_on_ring(float x, float y) = 0;
};
