// Who can be timed: ways to compute convolution, bias and ReLU, and their gradients.
#pragma once

#include "apps/conv_bench/workload.h"
#include "tandem/kernels/conv/conv.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::conv_bench {

struct Contestant {
  std::string name, description;
  bool is_library = false;     // of the others: what ours are compared with
  bool writes_mask = true;     // its forward pass leaves the sign mask, not y alone
  bool reads_mask = true;      // its backward pass works from `mask` or `y`, else from what its own forward pass left
  double product_error = 0.0;  // how far off each product of two numbers may be, relative to it
  std::optional<kernels::ConvImpl> impl = {};  // what convolves, where it is one of ours
  bool can_be_recorded = true;                 // enqueues the same work each time, and nothing else
  /// Why it cannot run on a device in this process; empty if it can, whatever the geometry.
  std::function<std::string(Device)> obstacle;
  /// y and the mask, or y alone.
  std::function<void(Workload&)> forward;
  /// grad_x, and grad_w with grad_bias, each unless undefined.
  std::function<void(Workload&)> backward;
};

/// The steps of kernels/conv/ladder, each a contestant; none in builds without CUDA.
std::vector<Contestant> ladder_contestants();

/// The families of kernels/conv/families.h, each a contestant.
std::vector<Contestant> family_contestants();

/// All, ours first.
const std::vector<Contestant>& contestants();

/// Of those that run on a device, in this build and on this machine.
std::vector<std::string_view> contestant_names(Device device);

/// Throws Error for an unknown name, suggesting the nearest and listing what runs on the device.
const Contestant& find_contestant(std::string_view name, Device device = {});

/// What is timed on a device unless --impl says otherwise: ours and the libraries there are.
std::vector<Contestant> usual_contestants(Device device);

}  // namespace tandem::conv_bench
