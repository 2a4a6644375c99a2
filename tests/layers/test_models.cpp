// The networks: names, shapes, sizes, gradients, options.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/dropout.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/safetensors.h"
#include "tandem/layers/summary.h"
#include "tests/kernels/image_support.h"
#include "tests/layers/model_support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <cmath>
#include <set>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

TEST_CASE("every network maps images to logits, and gradients reach every parameter") {
  for (const std::string& name : model_names()) {
    for (const std::int64_t size : {28, 32}) {
      const std::int64_t channels = size == 28 ? 1 : 3;
      INFO(name << " on " << channels << " channels of " << size);
      const auto model = make_model({.name = name, .in_channels = channels, .image_size = size, .classes = 7});
      const Tensor logits = (*model)(random_images({2, channels, size, size}, 9));
      CHECK(logits.shape() == Shape{2, 7});
      if (size == 28) continue;
      const Tensor labels = Tensor::from<std::int64_t>({3, 6}, {2});
      autograd::backward(autograd::softmax_cross_entropy(logits, labels));
      for (const auto& [parameter_name, parameter] : model->named_parameters()) {
        INFO(parameter_name);
        const Tensor gradient = autograd::grad(parameter);
        if (!autograd::requires_grad(parameter)) {
          CHECK_FALSE(gradient.defined());
          continue;
        }
        REQUIRE(gradient.defined());
        double largest = 0.0;
        bool finite = true;
        for (const double value : gradient.to_vector<double>()) {
          finite = finite && std::isfinite(value);
          largest = std::max(largest, std::abs(value));
        }
        CHECK(finite);
        CHECK(largest > 0.0);
      }
    }
  }
}

TEST_CASE("vgg_lite has the documented names") {
  const std::set<std::string> linear{"classifier.0[256, 4096]", "classifier.3[32, 256]", "classifier.6[10, 32]"};
  std::set<std::string> expected{"features.0[32, 3, 3, 3]",     "features.2[64, 32, 3, 3]",
                                 "features.5[128, 64, 3, 3]",   "features.7[256, 128, 3, 3]",
                                 "features.10[256, 256, 3, 3]", "features.12[256, 256, 3, 3]"};
  expected.insert(linear.begin(), linear.end());
  CHECK(weights_of(*make_model({.name = "vgg_lite"})) == expected);
  CHECK(weights_of(*make_model({.name = "vgg_lite", .dropout = 0.5})) == expected);
  CHECK(make_model({.name = "vgg_lite"})->parameter_count() == 2'625'962);

  std::set<std::string> with_norm{
      "features.0[32, 3, 3, 3]",     "features.1[32]",   "features.3[64, 32, 3, 3]",    "features.4[64]",
      "features.7[128, 64, 3, 3]",   "features.8[128]",  "features.10[256, 128, 3, 3]", "features.11[256]",
      "features.14[256, 256, 3, 3]", "features.15[256]", "features.17[256, 256, 3, 3]", "features.18[256]"};
  with_norm.insert(linear.begin(), linear.end());
  CHECK(weights_of(*make_model({.name = "vgg_lite", .batch_norm = true})) == with_norm);
}

TEST_CASE("small_cnn has the documented names and size") {
  const auto model = make_model({.name = "small_cnn"});
  CHECK(weights_of(*model) ==
        std::set<std::string>{"features.0[32, 3, 3, 3]", "features.2[32]", "features.4[64, 32, 3, 3]", "features.6[64]",
                              "features.8[128, 64, 3, 3]", "features.10[128]", "features.12[128, 128, 3, 3]",
                              "features.13[128]", "classifier.2[10, 128]"});
  CHECK(model->parameter_count() == 242'474);
}

TEST_CASE("mnist_cnn has L layers of its own or two that share") {
  const ModelOptions options{.name = "mnist_cnn", .in_channels = 1, .image_size = 28, .layers = 5};
  CHECK(weights_of(*make_model(options)) ==
        std::set<std::string>{"features.0[32, 1, 3, 3]", "features.2[32, 32, 3, 3]", "features.4[32, 32, 3, 3]",
                              "features.6[32, 32, 3, 3]", "features.8[32, 32, 3, 3]", "classifier.2[10, 6272]"});
  ModelOptions shared = options;
  shared.shared_weights = true;
  const auto model = make_model(shared);
  CHECK(weights_of(*model) ==
        std::set<std::string>{"features.0[32, 1, 3, 3]", "features.2[32, 32, 3, 3]", "classifier.2[10, 6272]"});

  // Sharing means the same function as five layers with equal weights.
  const auto distinct = make_model(options);
  NamedTensors state;
  for (const auto& [name, tensor] : model->state_dict()) state.emplace_back(name, tensor);
  for (const auto& [name, tensor] : model->state_dict()) {
    if (!name.starts_with("features.2.")) continue;
    for (const char* layer : {"features.4.", "features.6.", "features.8."})
      state.emplace_back(layer + name.substr(11), tensor);
  }
  distinct->load_state_dict(state);
  const Tensor x = random_images({1, 1, 28, 28}, 9);
  CHECK((*model)(x).to_vector<float>() == (*distinct)(x).to_vector<float>());
}

TEST_CASE("the residual networks have the documented names and sizes") {
  const auto resnet9 = make_model({.name = "resnet9"});
  CHECK(weights_of(*resnet9) ==
        std::set<std::string>{"prep.0[64, 3, 3, 3]", "prep.1[64]", "layer1.0[128, 64, 3, 3]", "layer1.1[128]",
                              "layer1.4.body.0[128, 128, 3, 3]", "layer1.4.body.1[128]",
                              "layer1.4.body.3[128, 128, 3, 3]", "layer1.4.body.4[128]", "layer2.0[256, 128, 3, 3]",
                              "layer2.1[256]", "layer3.0[512, 256, 3, 3]", "layer3.1[512]",
                              "layer3.4.body.0[512, 512, 3, 3]", "layer3.4.body.1[512]",
                              "layer3.4.body.3[512, 512, 3, 3]", "layer3.4.body.4[512]", "classifier.2[10, 512]"});
  CHECK(resnet9->parameter_count() == 6'573'120);

  const auto tricks = make_model({.name = "bag_of_tricks"});
  CHECK(weights_of(*tricks) ==
        std::set<std::string>{"prep.0[27, 3, 3, 3]", "prep.1[64, 27, 1, 1]", "prep.2[64]", "layer1.0[128, 64, 3, 3]",
                              "layer1.2[128]", "layer1.4.body.0[128, 128, 3, 3]", "layer1.4.body.1[128]",
                              "layer1.4.body.3[128, 128, 3, 3]", "layer1.4.body.4[128]", "layer2.0[256, 128, 3, 3]",
                              "layer2.2[256]", "layer3.0[512, 256, 3, 3]", "layer3.2[512]",
                              "layer3.4.body.0[512, 512, 3, 3]", "layer3.4.body.1[512]",
                              "layer3.4.body.3[512, 512, 3, 3]", "layer3.4.body.4[512]", "classifier.2[10, 512]"});

  const auto resnet18 = make_model({.name = "resnet18"});
  CHECK(resnet18->parameter_count() == 11'173'962);  // of the usual CIFAR variant
  const auto names = weights_of(*resnet18);
  CHECK(names.size() == 41);
  for (const char* name :
       {"conv1[64, 3, 3, 3]", "bn1[64]", "layer1.1.conv2[64, 64, 3, 3]", "layer2.0.downsample.0[128, 64, 1, 1]",
        "layer4.0.downsample.1[512]", "layer4.1.bn2[512]", "fc[10, 512]"}) {
    CHECK(names.contains(name));
  }
  CHECK(resnet18->named_buffers().size() == 60);
}

TEST_CASE("the seed alone decides the weights") {
  const auto weights = [](std::uint64_t seed) {
    return make_model({.name = "vgg_lite", .seed = seed})->parameters()[2].to_vector<float>();
  };
  CHECK(weights(1) == weights(1));
  CHECK(weights(1) != weights(2));
}

TEST_CASE("weights go through a file and give the same network") {
  const TemporaryDirectory directory;
  const std::string path = directory / "small.safetensors";
  const auto first = make_model({.seed = 1}), second = make_model({.seed = 2});
  const Tensor x = random_images({2, 3, 32, 32}, 9);
  (*first)(x);  // moves the statistics
  write_safetensors(path, first->state_dict());
  second->load_state_dict(read_safetensors(path).tensors);
  first->eval();
  second->eval();
  CHECK((*first)(x).to_vector<float>() == (*second)(x).to_vector<float>());
  CHECK(second->state_dict()[3].second.to_vector<float>()[0] != 0.0f);
  CHECK_THROWS_WITH(make_model({.name = "vgg_lite"})->load_state_dict(read_safetensors(path).tensors),
                    ContainsText("unexpected: features.2.running_mean"));
}

TEST_CASE("names and options that do not fit are refused") {
  const auto message = [](const ModelOptions& options) {
    try {
      make_model(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message({.name = "resnet-18"}) ==
        "unknown model 'resnet-18': did you mean resnet18? (choices: vgg_lite, "
        "small_cnn, mnist_cnn, resnet9, resnet18, airbench94, airbench95, airbench96, bag_of_tricks)");
  CHECK_THAT(message({.name = "perceptron"}), ContainsText("unknown model 'perceptron' (choices: "));
  CHECK_THAT(message({.name = "vgg_lite", .image_size = 7}), ContainsText("too small"));
  CHECK_THAT(message({.name = "vgg_lite", .classes = 0}), ContainsText("must be positive"));
  CHECK_THAT(message({.name = "vgg_lite", .layers = 3}), ContainsText("only mnist_cnn"));
  CHECK_THAT(message({.name = "vgg_lite", .dropout = 1.0}), ContainsText("[0, 1)"));
  CHECK_THAT(message({.name = "mnist_cnn", .layers = -1}), ContainsText("must be positive"));
  CHECK_THAT(message({.name = "mnist_cnn", .layers = 1, .shared_weights = true}), ContainsText("2 or more"));
  CHECK_THAT(message({.name = "resnet9", .shared_weights = true}), ContainsText("no shared weights"));
  CHECK_THAT(message({.name = "small_cnn", .dropout = -0.1}), ContainsText("[0, 1)"));
  CHECK_THAT(message({.name = "resnet9", .drop_path = 1.0}), ContainsText("drop_path must be in [0, 1)"));
  CHECK(message({.name = "small_cnn", .drop_path = 0.1}) ==
        "model small_cnn has no residual branches to drop; resnet9, resnet18, airbench96 and bag_of_tricks do");
  CHECK(message({.name = "resnet9", .width = 0.5}) ==
        "model resnet9 has a fixed width; airbench94, airbench95, airbench96 and bag_of_tricks take a factor");
  CHECK(message({.name = "airbench94", .activation = "tanh"}) ==
        "model airbench94: activation 'tanh': choose from gelu, silu");
  CHECK_THAT(message({.name = "resnet9", .activation = "silu"}), ContainsText("an activation of its own"));
  CHECK_THAT(message({.name = "resnet9", .unit_head = true}), ContainsText("model resnet9 has no unit_head"));
  CHECK_THAT(message({.name = "bag_of_tricks", .draw_whitening_bias = true}), ContainsText("no bias of a whitening"));
  CHECK_THAT(
      message({.name = "bag_of_tricks", .whitening = false}),
      ContainsText("model bag_of_tricks cannot do without whitening; airbench94, airbench95 and airbench96 can"));
  CHECK_THAT(message({.name = "resnet9", .identity_filters = false}),
             ContainsText("model resnet9 has no identity_filters"));
  CHECK_THAT(message({.name = "airbench94", .draw_whitening_bias = true, .whitening = false}),
             ContainsText("draw_whitening_bias without whitening"));
  for (const double alpha : {0.0, -0.3, std::nan("")})
    CHECK_THAT(message({.name = "bag_of_tricks", .celu_alpha = alpha}),
               ContainsText("celu_alpha must be a finite number above 0"));
  CHECK_THAT(message({.name = "resnet9", .celu_alpha = 0.5}), ContainsText("has no CELUs; only bag_of_tricks does"));
  CHECK_THAT(message({.name = "bag_of_tricks", .ghost_batch = -1}), ContainsText("ghost_batch must be a number"));
  CHECK_THAT(message({.name = "resnet9", .ghost_batch = 32}), ContainsText("takes no ghost_batch"));
  CHECK_THAT(message({.name = "bag_of_tricks", .norm_momentum = 1.5}),
             ContainsText("norm_momentum must be from 0 to 1"));
  CHECK_THAT(message({.name = "resnet9", .norm_momentum = 0.5}), ContainsText("a fixed momentum of batch norm"));
  for (const double width : {0.0, -1.0, 16.5, std::nan("")})
    CHECK_THAT(message({.name = "airbench94", .width = width}),
               ContainsText("width must be above 0 and at most 16, got"));
  CHECK_THAT(message({.name = "airbench94", .image_size = 8}), ContainsText("it needs 9x9 or more"));
}

TEST_CASE("mnist_cnn takes batch norm behind each convolution, shared or not") {
  const Tensor x = Tensor::full({3, 1, 8, 8}, 0.5, {.layout = Layout::channels_last});
  for (const bool shared : {false, true}) {
    INFO(shared);
    const auto model = make_model({.name = "mnist_cnn",
                                   .in_channels = 1,
                                   .image_size = 8,
                                   .layers = 3,
                                   .shared_weights = shared,
                                   .batch_norm = true});
    std::vector<std::string> modules;
    for (const auto& [path, module] : model->named_modules()) modules.push_back(module->describe());
    const auto count = [&](std::string_view start) {
      return std::ranges::count_if(modules, [&](const std::string& text) { return text.starts_with(start); });
    };
    CHECK(count("BatchNormReLU(") == 3);
    CHECK(count("Conv2d") == (shared ? 2 : 3));
    (*model)(x);
    for (const auto& [name, buffer] : model->named_buffers()) {
      if (!name.ends_with("running_mean")) continue;
      INFO(name);
      const auto means = buffer.to_vector<float>();
      CHECK(std::ranges::any_of(means, [](float mean) { return mean != 0.0f; }));  // each norm saw images
    }
    // ReLU comes behind the norm: what the first norm gives has a half or so of zeros, and nothing below.
    const auto gamma = model->named_parameters();
    CHECK(std::ranges::count_if(gamma, [](const auto& entry) { return entry.first.ends_with(".weight"); }) ==
          (shared ? 2 : 3) + 3 + 1);
  }
}

TEST_CASE("networks take dropout and DropPath, by which the names of weights stay as they are") {
  for (const ModelEntry& entry : models()) {
    INFO(entry.name);
    const double drop_path = entry.has_drop_path ? 0.8 : 0.0;
    const std::string name(entry.name);
    const auto plain = make_model({.name = name, .image_size = 16, .seed = 1});
    const auto regular =
        make_model({.name = name, .image_size = 16, .dropout = 0.5, .drop_path = drop_path, .seed = 1});
    const auto state = plain->state_dict(), same = regular->state_dict();
    REQUIRE(state.size() == same.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      CHECK(state[i].first == same[i].first);
      CHECK(state[i].second.to_vector<float>() == same[i].second.to_vector<float>());
    }
    std::vector<std::string> random;
    for (const auto& [path, module] : regular->named_modules())
      if (dynamic_cast<const RandomLayer*>(module) != nullptr) random.push_back(module->describe());
    if (name == "resnet18") {
      const std::vector<std::string> expected{"DropPath(0.1)",
                                              "DropPath(0.2)",
                                              "DropPath(0.30000000000000004)",
                                              "DropPath(0.4)",
                                              "DropPath(0.5)",
                                              "DropPath(0.6000000000000001)",
                                              "DropPath(0.7000000000000001)",
                                              "DropPath(0.8)",
                                              "Dropout(0.5)"};
      CHECK(random == expected);
    } else if (name == "resnet9" || name == "bag_of_tricks") {
      CHECK(random == std::vector<std::string>{"DropPath(0.4)", "DropPath(0.8)", "Dropout(0.5)"});
    } else if (name == "airbench96") {
      CHECK(random.size() == 4);
    } else {
      CHECK(random.size() == (name == "vgg_lite" ? 2u : 1u));
    }
    const Tensor x = random_images({2, 3, 16, 16}, 9);
    CHECK((*regular)(x).to_vector<float>() != (*regular)(x).to_vector<float>());
    plain->eval();
    regular->load_state_dict(plain->state_dict());
    regular->eval();
    CHECK((*regular)(x).to_vector<float>() == (*plain)(x).to_vector<float>());
  }
}

TEST_CASE("a network prints itself as a table and stays as it was") {
  const auto model = make_model({.name = "small_cnn"});
  int observed = 0;
  model->named_modules()[2].second->set_observer([&](const Tensor&) { ++observed; });
  model->named_modules()[2].second->eval();
  const auto buffers_before = model->named_buffers()[0].second.to_vector<float>();
  const std::string table = summary(*model, {1, 3, 32, 32});
  CHECK_THAT(
      table,
      ContainsText(
          "features.0    Conv2d(3, 32, kernel 3x3, padding 1x1, no bias)     [1, 32, 32, 32]         864  1.77 M\n"));
  CHECK_THAT(table, ContainsText("features.5    MaxPool2d(kernel 2x2)"));
  CHECK_THAT(table, ContainsText("[1, 64, 8, 8]"));
  CHECK_THAT(table, ContainsText("classifier.2  Linear(128, 10)"));
  CHECK_THAT(table, ContainsText("242,474 parameters in 14 tensors, 947.2 KiB; buffers 2.8 KiB"));
  CHECK(model->training());
  CHECK_FALSE(model->named_modules()[2].second->training());
  CHECK(model->named_buffers()[0].second.to_vector<float>() == buffers_before);
  CHECK(model->named_buffers()[2].second.item() == 0.0);
  CHECK(observed == 0);
  (*model)(Tensor::zeros({2, 3, 32, 32}));
  CHECK(observed == 1);

  const auto shared =
      make_model({.name = "mnist_cnn", .in_channels = 1, .image_size = 28, .layers = 4, .shared_weights = true});
  int calls = 0;
  for (const auto& [name, part] : shared->named_modules()) part->set_observer([&calls](const Tensor&) { ++calls; });
  CHECK_THAT(summary(*shared, {1, 1, 28, 28}), ContainsText("padding 1x1), used 3 times"));
  CHECK(calls == 0);
  (*shared)(Tensor::zeros({1, 1, 28, 28}, {.layout = Layout::channels_last}));
  CHECK(calls >= 3);  // those of the layer with several names, too
  CHECK_THROWS_WITH(summary(*model, {1, 4, 32, 32}), ContainsText("layer features.0"));
  (*model)(Tensor::zeros({2, 3, 32, 32}));
  CHECK(observed == 2);  // also after an error
}
