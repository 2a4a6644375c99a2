// The implementations of loss_scale.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/loss_scale.h"

namespace tandem::kernels {

namespace cuda {
decltype(kernels::update_loss_scale) update_loss_scale;
decltype(kernels::clip_by_loss_scale) clip_by_loss_scale;
decltype(kernels::fill_loss_scale) fill_loss_scale;
}  // namespace cuda

}  // namespace tandem::kernels
