// How a model computes what a batch asks for.
#pragma once

#include "tandem/data/batch.h"
#include "tandem/layers/module.h"

#include <functional>

namespace tandem::train {

/// What `model` computes of a batch that is not empty: for models of several inputs, which have a function of their own
/// beside forward(). A model with parts may be cast to its class.
using ForwardFunction = std::function<Tensor(layers::Module& model, const data::Batch& batch)>;

/// forward(model, batch); without a function `model(batch.images)`, and then an Error for batches with several inputs,
/// all but the first of which it would leave out.
/// Example:
///     #include "tandem/layers/layers.h"
///     layers::Flatten model;
///     data::Batch batch;
///     batch.images = batch.labels = Tensor::zeros({4, 2, 3});
///     batch.tensors = {batch.images, batch.labels};
///     const Tensor output = run_forward({}, model, batch);  // [4, 6]
Tensor run_forward(const ForwardFunction& forward, layers::Module& model, const data::Batch& batch);

}  // namespace tandem::train
