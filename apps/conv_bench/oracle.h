// What a convolution's results should be, by the plain loops in f64, and how far off they may be.
#pragma once

#include "apps/conv_bench/contestants.h"
#include "tandem/kernels/conv/geometry.h"

#include <string>
#include <vector>

namespace tandem::conv_bench {

/// Some images and some output channels of a workload, next to each other.
struct Range {
  std::int64_t first, count;
};

/// Compares results with the reference: all of them where that is quick, else those of the first image, the last and
/// one between, and likewise output channels of grad_w; grad_bias always whole. A result may be off by what sums in
/// f32, in any order, and rounding to the dtype explain for random numbers: (8 sqrt(terms) + 40) eps_f32 times the
/// largest sum of |products|, which leaves Winograd's algorithm its transforms, two roundings of the result, and where
/// products are not exact `product_error` of that sum as well.
class Oracle {
 public:
  /// Keeps copies of the inputs; computes when asked.
  explicit Oracle(const Workload& workload);

  /// What is wrong with y, and with the mask if `masked`; empty if nothing is.
  std::string check_forward(const Workload& done, bool masked, double product_error = 0.0);

  /// The same for the gradients, where `done.mask` says where grad_y counts.
  std::string check_backward(const Workload& done, double product_error = 0.0);

 private:
  /// Part of a result: what it should be, and the sums of |products|.
  struct Expected {
    Range range;
    Tensor values, sizes;
  };
  /// The gradients for one mask.
  struct Gradients {
    std::vector<std::uint8_t> mask;
    std::vector<Expected> grad_x, grad_w;
    Expected grad_bias;
  };

  void expect_forward();
  void expect_backward(const Tensor& mask);

  kernels::ConvGeometry geometry_;
  kernels::Conv2dOptions options_;
  bool wants_grad_x_;
  std::vector<Range> images_, channels_;
  Tensor x_, w_, bias_, grad_y_;  // f64, on the CPU
  std::vector<Expected> y_;
  Gradients gradients_;
};

/// Runs both passes of a contestant on poisoned results; what is wrong with them, or empty. The workload is as before
/// afterwards, its gradients aside.
std::string verify(const Contestant& contestant, const Workload& workload, Oracle& oracle);

}  // namespace tandem::conv_bench
