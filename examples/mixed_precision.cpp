// Half precision: what it rounds away, and a loss scale and masters, which keep training as good as in f32.
#include <tandem/tandem.h>
using namespace tandem;

int main() {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto rounded = [&](double value) { return Tensor::full({}, value, {.dtype = dtype}).item(); };
    fmt::print("{:4}: 1.001 is {:.6f}, 1e-8 is {:.1e}, 100000 is {}\n", name_of(dtype), rounded(1.001), rounded(1e-8),
               rounded(1e5));
  }

  const Tensor weight = autograd::set_requires_grad(Tensor::full({}, 2.0, {.dtype = DType::f16}));
  for (const double scale : {1.0, 1024.0}) {
    autograd::clear_grad(weight);
    autograd::backward(1e-4 * (1e-4 * weight), Tensor::full({}, scale, weight.options()));
    fmt::print("scaled by {}, the gradient is {:.2e}\n", scale, autograd::grad(weight).item() / scale);
  }

  const auto train_in = [](autograd::Precision precision, optim::LossScaling scaling) {
    const data::ImageDataset images = data::make_synthetic({.count = 1024, .side = 16});
    const DType dtype = autograd::storage_dtype(precision);
    data::Loader loader(images, {.global_batch_size = 64, .seed = 1, .shuffle = true, .dtype = dtype});
    const auto model = layers::make_model({.name = "small_cnn", .image_size = 16});
    model->set_precision(precision);
    optim::SGD sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9});
    optim::GradScaler scaler(scaling);
    reset_peak_memory();
    train::Trainer trainer(*model, sgd, loader, {.scaler = &scaler});
    const train::EpochRecord last = trainer.fit(6);
    const std::string activations = format_memory(memory_stats().peak_of(MemoryTag::activations));
    fmt::print("{}: {:.1f} %, activations {}, {} steps skipped, loss scale {}\n", name_of(precision),
               last.train_accuracy, activations, scaler.skipped_steps(), scaler.scale());
  };
  train_in(autograd::Precision::fp32, optim::LossScaling::none);
  train_in(autograd::Precision::fp16, optim::LossScaling::dynamic);
  train_in(autograd::Precision::bf16, optim::LossScaling::none);
}
