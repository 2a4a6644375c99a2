// Tensors: shape, strides, views, broadcasting, and a picture made of them: first_tensor [spots.png]
#include <tandem/tandem.h>
using namespace tandem;

int main(int argc, char** argv) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  fmt::print("{}\n", x);

  const Tensor turned = x.transpose(0, 1);
  fmt::print("strides {} {}, and {} {}\n", x.stride(0), x.stride(1), turned.stride(0), turned.stride(1));
  fmt::print("{}\n", turned);

  const Tensor column = x.select(1, 2);
  column.fill(0);
  fmt::print("{}\n", x);

  fmt::print("{}\n", 10 * x + 1);
  fmt::print("{}\n", autograd::sum(x, 1));
  fmt::print("{}\n", autograd::matmul(x, turned));

  const Tensor row = Tensor::from<float>({100, 200, 300}, {3});
  fmt::print("{}\n", x + row);

  std::vector<float> positions(96);
  for (int i = 0; i < 96; ++i) positions[i] = i / 48.0f - 1;
  const Tensor across = Tensor::from(positions, {1, 96}), down = Tensor::from(positions, {96, 1});
  const Tensor centres = Tensor::from<float>({-0.3f, 0, 0.3f}, {3, 1, 1});
  const Tensor dx = across - centres, dy = down - centres * centres * 4;
  const Tensor spots = autograd::exp(-4 * (dx * dx + dy * dy));
  fmt::print("{}, largest {:.3f}\n", describe(spots), autograd::topk(autograd::reshape(spots, {-1}), 1).values.item());
  if (argc > 1) {
    const auto bytes = data::encode_png(autograd::cast(255 * spots, DType::u8));
    std::FILE* file = std::fopen(argv[1], "wb");
    require(file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(), "cannot write {}", argv[1]);
    std::fclose(file);
  }
}
