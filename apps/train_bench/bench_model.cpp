// The training step that is timed.
#include "apps/train_bench/bench_model.h"

#include "apps/arguments/arguments.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/out.h"
#include "tandem/core/parse_device.h"
#include "tandem/core/random.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/implementations.h"
#include "tandem/kernels/notice.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/safetensors.h"
#include "tandem/optim/by_name.h"
#include "tandem/train/stderr_line.h"
#include "tandem/train/weights.h"

#include <cstdio>

namespace tandem::apps {

namespace {

Tensor random_images(const Shape& shape) {
  const Tensor images = Tensor::empty(shape, {.layout = Layout::channels_last});
  const RandomKey key{.seed = 1, .stream = RandomStream::synthetic, .step = 0};
  float* const values = Out(images).data<float>();
  for (std::int64_t i = 0; i < images.numel(); ++i) values[i] = key.normal(static_cast<std::uint64_t>(i));
  return images;
}

Tensor random_labels(std::int64_t count, std::uint32_t classes) {
  const RandomKey key{.seed = 1, .stream = RandomStream::synthetic, .step = 1};
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(key.below(static_cast<std::uint64_t>(i), classes));
  return Tensor::from(labels, {count});
}

Tensor find(const NamedTensors& tensors, const std::string& name, const std::string& path) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return tensor;
  }
  fail("{}: no tensor '{}'; a batch has the tensors images and labels", path, name);
}

data::Batch batch_of(const Tensor& images, const Tensor& labels) {
  const std::int64_t count = images.size(0);
  return {.tensors = {images, labels}, .images = images, .labels = labels, .local_count = count, .global_count = count};
}

data::Batch read_batch(const std::string& path) {
  try {
    const auto tensors = layers::read_safetensors(path).tensors;
    const Tensor images = find(tensors, "images", path);
    return batch_of(images.contiguous(Layout::channels_last), find(tensors, "labels", path));
  } catch (const Error& error) {
    fail("--batch {}", error.what());
  }
}

data::Batch random_batch(std::int64_t size, const layers::ModelOptions& model) {
  return batch_of(random_images({size, model.in_channels, model.image_size, model.image_size}),
                  random_labels(size, static_cast<std::uint32_t>(model.classes)));
}

}  // namespace

BenchModel::BenchModel(const BenchSettings& settings)
    : scaler_({.mode = settings.precision == "fp16" ? optim::LossScaling::dynamic : optim::LossScaling::none}) {
  const layers::ModelOptions& options = settings.model;
  const Device device = parse_device(settings.device);
  const autograd::Precision precision = autograd::parse_precision(settings.precision);
  naming_flags([&] {
    kernels::check_implementations({options.conv_impl, options.gemm_impl}, device);
    autograd::use_products_of(precision, device);
  });
  const std::string missing = kernels::missing_libraries({options.conv_impl, options.gemm_impl}, device);
  if (!missing.empty()) train::print_to_stderr(fmt::format("note: {}", missing));
  model_ = layers::make_model(options);
  try {
    if (!settings.weights_file.empty()) train::load_weights(*model_, settings.model.name, settings.weights_file);
  } catch (const Error& error) {
    fail("--load-weights {}", error.what());
  }
  model_->to(device);
  model_->set_precision(precision);
  optim::OptimizerOptions plain = settings.optimizer;
  if (plain.name == "sgd") plain.weight_decay = 0.0;  // as PyTorch's, which times are compared with
  optimizer_ = optim::make_optimizer(model_->parameters(), plain);

  const MemoryTagScope scope(MemoryTag::data);
  const data::Batch batch =
      settings.batch_file.empty() ? random_batch(settings.batch_size, options) : read_batch(settings.batch_file);
  // As a loader for this precision makes them.
  batch_ = batch_of(autograd::cast(batch.images, storage_dtype(precision)).to(device), batch.labels.to(device));
  make_graph(settings.cuda_graph);
}

void BenchModel::make_graph(train::CudaGraph mode) {
  if (mode == train::CudaGraph::off) return;
  if (device().type != DeviceType::cuda) {
    require(mode != train::CudaGraph::on,
            "--cuda-graph on needs a GPU, and this run is on the CPU: choose auto or off");
    return kernels::notice("CUDA graph: off: the model is on the CPU");
  }
  random_state_ = std::make_shared<layers::RandomState>(1);
  model_->set_random_state(random_state_);
  graph_ = std::make_unique<train::StepGraph>(*model_, *optimizer_, random_state_, mode);
}

/// The loss of a step, which is enqueued.
Tensor BenchModel::take(const data::Batch& batch) {
  scaler_.abandon_step();  // of a recording that has failed
  optimizer_->zero_grad();
  const Tensor loss = autograd::softmax_cross_entropy((*model_)(batch.images), batch.labels);
  autograd::backward(loss, scaler_.start_gradient(loss));
  if (WorkGraph::is_recording()) graph_->check_places();
  scaler_.step(*optimizer_);
  scaler_.update();
  return loss.detach();
}

double BenchModel::step() {
  if (!graph_) return take(batch_).item();
  random_state_->advance();
  graph_->take(batch_, [&](const data::Batch& given) {
    const Tensor loss = take(given);
    if (!loss_.defined()) loss_ = empty_like(loss);
    loss_.copy_from_async(loss);  // out of the graph's memory
  });
  return loss_.item();
}

std::int64_t BenchModel::flops_per_step() {
  std::int64_t forward = 0, first = 0;
  const auto modules = model_->named_modules();
  for (const auto& [name, module] : modules) {
    for (const auto& [parameter, tensor] : module->named_parameters()) {
      if (parameter != "weight" || tensor.rank() < 2) continue;
      const std::int64_t per_output = 2 * tensor.numel() / tensor.size(0);
      module->set_observer([&forward, &first, per_output](const Tensor& output) {
        if (forward == 0) first = per_output * output.numel();
        forward += per_output * output.numel();
      });
    }
  }
  {
    const autograd::NoGrad no_grad;
    (*model_)(batch_.images);
  }
  for (const auto& [name, module] : modules) module->set_observer({});
  return 3 * forward - first;
}

}  // namespace tandem::apps
