// optim/: optimizers, learning rate schedules, clipping, loss scaling.
// Example:
//     const Tensor w = autograd::set_requires_grad(Tensor::full({2}, 1.0));
//     SGD sgd({w}, {.lr = 0.5});
//     autograd::set_grad(w, Tensor::full({2}, 1.0));
//     sgd.step();
//     const std::vector<float> values = w.to_vector<float>();  // {0.5, 0.5}
#pragma once

#include "tandem/optim/adam.h"
#include "tandem/optim/by_name.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/ema.h"
#include "tandem/optim/finite_check.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/gradient_accumulation.h"
#include "tandem/optim/gradient_places.h"
#include "tandem/optim/l1_penalty.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/muon.h"
#include "tandem/optim/newton_schulz.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/parameter_group.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/schedule.h"
#include "tandem/optim/sgd.h"
#include "tandem/optim/step_control.h"
