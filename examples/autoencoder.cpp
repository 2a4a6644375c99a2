// Squeezes images into 32 numbers and unfolds them again: convolutions down, transposed convolutions up.
#include <tandem/tandem.h>
using namespace tandem;

struct Autoencoder final : layers::Module {
  layers::Sequential encoder, decoder;

  explicit Autoencoder(layers::Initializer& random) {
    encoder.add<layers::Conv2d>({.in = 3, .out = 16, .kernel = 3, .stride = 2, .padding = 1, .relu = true}, random);
    encoder.add<layers::Conv2d>({.in = 16, .out = 32, .kernel = 3, .stride = 2, .padding = 1, .relu = true}, random);
    encoder.add<layers::Flatten>();
    encoder.add<layers::Linear>({.in = 32 * 4 * 4, .out = 32}, random);
    decoder.add<layers::Linear>({.in = 32, .out = 32 * 4 * 4, .relu = true}, random);
    decoder.add([](const Tensor& x) { return autograd::reshape(x, {x.size(0), 32, 4, 4}); });
    decoder.add<layers::ConvTranspose2d>({.in = 32, .out = 16, .kernel = 4, .stride = 2, .padding = 1}, random);
    decoder.add<layers::ReLU>();
    decoder.add<layers::ConvTranspose2d>({.in = 16, .out = 3, .kernel = 4, .stride = 2, .padding = 1}, random);
    register_module("encoder", encoder);
    register_module("decoder", decoder);
  }
  Tensor forward(const Tensor& x) override { return decoder(encoder(x)); }
  std::string describe() const override { return "Autoencoder"; }
};

int main() {
  return comm::run_program([](comm::MpiEnvironment&) {
    // Without the label: an example's only tensor is input and target.
    const auto images = std::make_shared<const data::ImageDataset>(data::make_synthetic({.count = 1000, .side = 16}));
    const auto unlabelled = data::transformed(images, [](data::Example e) { return data::Example{e[0]}; });
    data::Loader training(unlabelled, {.global_batch_size = 50, .seed = 1, .shuffle = true});
    layers::Initializer random(1);
    Autoencoder model(random);
    fmt::print("{}", layers::summary(model, {1, 3, 16, 16}));
    optim::Adam adam(model.parameters(), {.lr = 2e-3});
    train::Trainer trainer(model, adam, training, {.loss = autograd::mse_loss});
    const double before = trainer.fit(1).train_loss, after = trainer.fit(9).train_loss;
    fmt::print("mean squared error {:.3f}, and after ten epochs {:.3f}\n", before, after);
    return 0;
  });
}
