// A model of two inputs, an image and a few numbers beside it, which are joined half-way.
#include <tandem/tandem.h>
using namespace tandem;

class TwoInputs final : public layers::Module {
 public:
  explicit TwoInputs(layers::Initializer& random)
      : of_numbers_({.in = 4, .out = 16, .relu = true}, random), of_both_({.in = 8 * 4 * 4 + 16, .out = 2}, random) {
    of_image_.add<layers::Conv2d>({.in = 1, .out = 8, .kernel = 3, .stride = 2, .padding = 1, .relu = true}, random);
    of_image_.add<layers::Flatten>();
    register_module("of_image", of_image_);
    register_module("of_numbers", of_numbers_);
    register_module("of_both", of_both_);
  }
  Tensor operator()(const Tensor& image, const Tensor& numbers) {
    return of_both_(autograd::concat({of_image_(image), of_numbers_(numbers)}, 1));
  }
  std::string describe() const override { return "TwoInputs"; }

 private:
  layers::Sequential of_image_;
  layers::Linear of_numbers_, of_both_;
};

/// An image of noise, four numbers, and the class: whether the image's first pixel is larger than the first number.
data::Example example(std::int64_t i) {
  const RandomKey random{.seed = 7, .step = static_cast<std::uint32_t>(i)};
  std::vector<float> pixels, numbers;
  for (std::uint64_t n = 0; n < 64; ++n) pixels.push_back(random.normal(n));
  for (std::uint64_t n = 64; n < 68; ++n) numbers.push_back(random.normal(n));
  const std::int64_t label = pixels[0] > numbers[0] ? 1 : 0;
  return {Tensor::from(pixels, {1, 8, 8}), Tensor::from(numbers, {4}), Tensor::from<std::int64_t>({label}, {})};
}

int main() {
  return comm::run_program([](comm::MpiEnvironment&) {
    data::Loader training(data::dataset_of(4000, example), {.global_batch_size = 100, .seed = 1, .shuffle = true});
    layers::Initializer random(1);
    TwoInputs model(random);
    optim::Adam adam(model.parameters(), {.lr = 3e-3});
    const auto forward = [](layers::Module& both, const data::Batch& batch) {
      return dynamic_cast<TwoInputs&>(both)(batch.tensors[0], batch.tensors[1]);
    };
    train::Trainer trainer(model, adam, training, {.forward = forward});
    fmt::print("{:.0f} % are right\n", trainer.fit(10).train_accuracy);
    return 0;
  });
}
