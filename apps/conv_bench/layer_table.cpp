// The table.
#include "apps/conv_bench/layer_table.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>

namespace tandem::conv_bench {

namespace {

constexpr std::array<std::string_view, 4> kNets{"vgg_lite", "mnist_cnn", "resnet18", "airbench94"};

struct Row {
  std::string_view net, name;
  std::int64_t c, size, k, kernel, stride, padding;  // images and kernels are square
  bool is_first;
  std::int64_t count;
};

// As layers/models has them for images of 32x32 (mnist_cnn: 28x28). mnist_cnn: with ten layers. airbench94 is the
// network of Keller Jordan's record for 94 % on CIFAR-10 (arXiv:2404.00498); its first layer is not trained.
constexpr Row kRows[] = {
    {"vgg_lite", "1", 3, 32, 32, 3, 1, 1, true, 1},
    {"vgg_lite", "2", 32, 32, 64, 3, 1, 1, false, 1},
    {"vgg_lite", "3", 64, 16, 128, 3, 1, 1, false, 1},
    {"vgg_lite", "4", 128, 16, 256, 3, 1, 1, false, 1},
    {"vgg_lite", "5-6", 256, 8, 256, 3, 1, 1, false, 2},
    {"mnist_cnn", "1", 1, 28, 32, 3, 1, 1, true, 1},
    {"mnist_cnn", "2-10", 32, 28, 32, 3, 1, 1, false, 9},
    {"resnet18", "conv1", 3, 32, 64, 3, 1, 1, true, 1},
    {"resnet18", "layer1", 64, 32, 64, 3, 1, 1, false, 4},
    {"resnet18", "layer2 in", 64, 32, 128, 3, 2, 1, false, 1},
    {"resnet18", "layer2 short", 64, 32, 128, 1, 2, 0, false, 1},
    {"resnet18", "layer2", 128, 16, 128, 3, 1, 1, false, 3},
    {"resnet18", "layer3 in", 128, 16, 256, 3, 2, 1, false, 1},
    {"resnet18", "layer3 short", 128, 16, 256, 1, 2, 0, false, 1},
    {"resnet18", "layer3", 256, 8, 256, 3, 1, 1, false, 3},
    {"resnet18", "layer4 in", 256, 8, 512, 3, 2, 1, false, 1},
    {"resnet18", "layer4 short", 256, 8, 512, 1, 2, 0, false, 1},
    {"resnet18", "layer4", 512, 4, 512, 3, 1, 1, false, 3},
    {"airbench94", "whiten", 3, 32, 24, 2, 1, 0, true, 1},
    {"airbench94", "1a", 24, 31, 64, 3, 1, 1, false, 1},
    {"airbench94", "1b", 64, 15, 64, 3, 1, 1, false, 1},
    {"airbench94", "2a", 64, 15, 256, 3, 1, 1, false, 1},
    {"airbench94", "2b, 3a", 256, 7, 256, 3, 1, 1, false, 2},
    {"airbench94", "3b", 256, 3, 256, 3, 1, 1, false, 1},
};

std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const char *at = text.data(), *const end = at + text.size();;) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (next != end && *next != ',')) return {};
    numbers.push_back(number);
    if (next == end) return numbers;
    at = next + 1;
  }
}

}  // namespace

std::string BenchLayer::text() const {
  const std::string geometry =
      fmt::format("{}x{} {}->{} {}x{}{}", h, w, c, k, r, s, stride == 1 ? "" : fmt::format(" stride {}", stride));
  return net.empty() ? geometry : fmt::format("{} {}: {}", net, name, geometry);
}

std::span<const std::string_view> net_names() { return kNets; }

std::vector<BenchLayer> layers_of(std::string_view net) {
  std::vector<BenchLayer> layers;
  for (const Row& row : kRows) {
    if (row.net != net) continue;
    layers.push_back({std::string(row.net), std::string(row.name), row.c, row.size, row.size, row.k, row.kernel,
                      row.kernel, row.stride, row.padding, row.is_first, row.count});
  }
  if (layers.empty()) {
    const std::string nearest = nearest_name(net, net_names());
    fail("--layers '{}': unknown network{}; known: {}", net,
         nearest.empty() ? nearest : fmt::format(", did you mean '{}'?", nearest), fmt::join(kNets, ", "));
  }
  return layers;
}

GivenShape parse_shape(std::string_view text) {
  const std::vector<std::int64_t> n = numbers_in(text);
  require(n.size() == 9, "--shape '{}': give nine whole numbers N,C,H,W,K,R,S,stride,pad", text);
  constexpr std::int64_t kMost = 1 << 20;
  for (std::size_t i = 0; i < 8; ++i)
    require(n[i] >= 1 && n[i] <= kMost, "--shape '{}': {} is not between 1 and {}", text, n[i], kMost);
  require(n[8] >= 0 && n[8] <= kMost, "--shape '{}': the padding {} is not between 0 and {}", text, n[8], kMost);
  GivenShape given{{"", "", n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]}, n[0]};
  given.layer.name = std::string(text);
  try {
    given.layer.geometry(given.batch);
  } catch (const Error& error) {
    fail("--shape '{}': {}", text, error.what());
  }
  constexpr double kMostElements = 0x1p33;
  const auto y = kernels::conv2d_output_shape(given.layer.x(given.batch), given.layer.weight(), given.layer.options());
  double elements = 0.0;
  for (const Shape& shape : {given.layer.x(given.batch), y, given.layer.weight()}) {
    double product = 1.0;
    for (int dim = 0; dim < shape.rank(); ++dim) product *= static_cast<double>(shape[dim]);
    elements += product;
  }
  require(elements <= kMostElements,
          "--shape '{}': its tensors have {:.3g} elements, more than can be timed here ({:.3g})", text, elements,
          kMostElements);
  return given;
}

}  // namespace tandem::conv_bench
