// Parity cases of what is made of images before a training, and of what is said of them behind it.
#include "tandem/autograd/grad_mode.h"
#include "tandem/data/batch.h"
#include "tandem/layers/whitening.h"
#include "tandem/train/test_time_augmentation.h"
#include "tests/parity/parity_runner.h"

namespace tandem::parity {

NamedTensors run_views(const CaseFile& file) {
  const json& o = file.description;
  const auto model = load_model(file);
  model->train(false);
  const autograd::NoGrad no_grad;
  const auto views = train::parse_test_time_augmentation(o.at("views").get<std::string>());
  data::Batch batch;
  batch.images = batch.labels = file.at("images");
  batch.tensors = {batch.images, batch.labels};
  batch.local_count = batch.global_count = batch.images.size(0);
  return {{"logits", train::run_forward(train::over_views(views, {}, o.at("share")), *model, batch)}};
}

NamedTensors run_whitening(const CaseFile& file) {
  const json& o = file.description;
  return {{"filters", layers::whitening_filters(file.at("images"), pair_of(o, "kernel", 2), o.at("eps"))}};
}

}  // namespace tandem::parity
