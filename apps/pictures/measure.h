// Measurements that pictures are drawn from, as the text of files that read_measured() reads.
#pragma once

#include <string>

namespace tandem::pictures {

/// How many gradients of small_cnn, late in a short training in f32, have which power of two.
std::string measure_gradients();

/// The loss scale by step in a short training of small_cnn in f16.
std::string measure_loss_scale();

/// The step of rank 0 that read_step() takes out of a trace. Throws Error where the file has no complete step.
std::string step_of_trace(const std::string& file);

}  // namespace tandem::pictures
