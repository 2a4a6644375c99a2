// The nearest known name to a mistyped one.
#include "tandem/core/suggest.h"

#include "tests/support/catch.h"

using tandem::nearest_name;

TEST_CASE("nearest_name finds small mistakes and leaves strangers alone") {
  const std::vector<std::string> names{"vgg_lite", "small_cnn", "mnist_cnn", "resnet9", "resnet18", "lr"};
  CHECK(nearest_name("vgg_lit", names) == "vgg_lite");
  CHECK(nearest_name("VGG-Lite", names) == "vgg_lite");
  CHECK(nearest_name("smal_cnn", names) == "small_cnn");
  CHECK(nearest_name("resnet10", names) == "resnet18");
  CHECK(nearest_name("resnet", names) == "resnet9");
  CHECK(nearest_name("rl", names) == "lr");
  CHECK(nearest_name("transformer", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name("x", std::vector<std::string>{}).empty());
  CHECK(nearest_name("sdg", {"sgd", "adam"}) == "sgd");
}

TEST_CASE("nearest_name completes the beginning of a name") {
  const std::vector<std::string> names{"vgg_lite", "mnist_cnn", "fashion-mnist", "cifar100", "cifar10"};
  CHECK(nearest_name("vgg", names) == "vgg_lite");
  CHECK(nearest_name("Fashion", names) == "fashion-mnist");
  CHECK(nearest_name("cif", names) == "cifar10");
  CHECK(nearest_name("vg", names).empty());
  CHECK(nearest_name("cnn", names).empty());
}

TEST_CASE("one_of lists what there is to choose from") {
  const std::vector<std::string> names{"a", "b", "c"};
  CHECK(tandem::one_of(names) == "a, b or c");
  CHECK(tandem::one_of(std::span(names).first(2)) == "a or b");
  CHECK(tandem::one_of(std::span(names).first(1)) == "a");
  CHECK(tandem::one_of({}).empty());
}

TEST_CASE("unknown_name tells the nearest name and all choices") {
  const std::vector<std::string> names{"sgd", "adam"};
  CHECK(tandem::unknown_name("optimizer", "sdg", names) ==
        "unknown optimizer 'sdg': did you mean sgd? (choices: sgd, adam)");
  CHECK(tandem::unknown_name("optimizer", "lamb", names) == "unknown optimizer 'lamb' (choices: sgd, adam)");
}
