// conv_bench: its table of layers, the shapes that it reads, and the order in which it times.
#include "apps/conv_bench/bench.h"
#include "apps/conv_bench/layer_table.h"
#include "tandem/layers/models/models.h"
#include "tests/apps/conv_bench_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <map>
#include <optional>
#include <tuple>

using namespace tandem::conv_bench;
using tandem::Device;
using tandem::Tensor;
using tandem::test::ContainsText;
using tandem::test::error_of;

TEST_CASE("conv_bench: the table has the convolutions of the networks") {
  for (const auto& [net, channels, size, layers] :
       {std::tuple{"vgg_lite", 3, 32, 0}, std::tuple{"mnist_cnn", 1, 28, 10}, std::tuple{"resnet18", 3, 32, 0}}) {
    INFO(net);
    tandem::layers::ModelOptions options{.name = net, .in_channels = channels, .image_size = size, .layers = layers};
    const auto model = tandem::layers::make_model(options);
    using Key = std::vector<std::int64_t>;  // weight and output
    std::map<Key, std::int64_t> in_model, in_table;
    for (const auto& [name, module] : model->named_modules()) {
      for (const auto& [parameter, tensor] : module->named_parameters()) {
        if (parameter != "weight" || tensor.rank() != 4) continue;
        module->set_observer([&in_model, w = tensor.shape()](const Tensor& y) {
          ++in_model[{w[0], w[1], w[2], w[3], y.size(2), y.size(3)}];
        });
      }
    }
    (*model)(Tensor::zeros({1, channels, size, size}, {.layout = tandem::Layout::channels_last}));
    bool first = true;
    for (const BenchLayer& layer : layers_of(net)) {
      const auto g = layer.geometry(1);
      in_table[{g.k, g.c, g.r, g.s, g.p, g.q}] += layer.count;
      CHECK(layer.is_first == first);
      first = false;
    }
    CHECK(in_model == in_table);
  }
}

TEST_CASE("conv_bench: shapes are read, and refused with a reason") {
  const GivenShape given = parse_shape("4,3,32,30,16,5,3,2,1");
  CHECK(given.batch == 4);
  const auto g = given.layer.geometry(given.batch);
  CHECK((g.c == 3 && g.h == 32 && g.w == 30 && g.k == 16 && g.r == 5 && g.s == 3));
  CHECK((g.stride_h == 2 && g.pad_w == 1 && g.p == 15 && g.q == 15));
  for (const char* text :
       {"", "1,2,3", "1,2,3,4,5,6,7,8,9,10", "1,1,8,8,1,3,3,1,x", "1,1,8,8,1,3,3,1,", "1.5,1,8,8,1,3,3,1,1"})
    CHECK_THAT(error_of([&] { parse_shape(text); }), ContainsText("nine whole numbers"));
  CHECK_THAT(error_of([] { parse_shape("0,1,8,8,1,3,3,1,1"); }), ContainsText("0 is not between 1"));
  CHECK_THAT(error_of([] { parse_shape("1,1,8,8,1,3,3,0,1"); }), ContainsText("0 is not between 1"));
  CHECK_THAT(error_of([] { parse_shape("1,1,2,2,1,5,5,1,0"); }), ContainsText("kernel spans 5"));
  CHECK_THAT(error_of([] { parse_shape("1048576,1024,64,64,1,1,1,1,0"); }), ContainsText("elements"));
}

TEST_CASE("what is named twice is timed once") {
  const std::vector<const char*> arguments{"conv_bench",  "--shape",     "1,1,4,4,1,3,3,1,1", "--passes",
                                           "fwd,bwd,fwd", "--precision", "fp32,fp32",         "--impl",
                                           "ours,ours",   "--cache",     "hot,hot",           "--serve"};
  const auto settings = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  REQUIRE(settings);
  CHECK(settings->passes == std::vector<Pass>{Pass::forward, Pass::backward});
  CHECK(settings->dtypes.size() == 1);
  CHECK(settings->contestants.size() == 1);
  CHECK(settings->caches.size() == 1);
}

TEST_CASE("conv_bench: hot caches come first, and each pass has both in the end") {
  BenchSettings settings = small_settings({find_contestant("ours")});
  settings.layers.push_back({parse_shape("1,4,5,5,4,1,1,1,0").layer, {1, 2}});
  settings.passes = {Pass::forward};
  settings.caches = {Cache::cold, Cache::hot};
  std::vector<std::size_t> known, with_cold;
  const Report report = run_bench(settings, [&](const std::vector<Result>& of_layer, const Report& so_far) {
    REQUIRE(of_layer.size() == 1);
    CHECK(!so_far.complete);
    known.push_back(so_far.results.size());
    with_cold.push_back(of_layer[0].cold.size());
  });
  CHECK(known == std::vector<std::size_t>{1, 2, 3, 3, 3, 3});
  CHECK(with_cold == std::vector<std::size_t>{0, 0, 0, 3, 3, 3});
  CHECK(report.complete);
  for (const Result& result : report.results) CHECK((result.hot.size() == 3 && result.cold.size() == 3));
}

TEST_CASE("conv_bench: groups take turns, and each begins once") {
  std::string order;
  std::vector<GroupTimer> timers;
  for (const char name : {'a', 'b', 'c'})
    timers.emplace_back(
        Device{}, [&order, name] { order += name; }, true, Cache::hot,
        Protocol{.warmup = 1, .groups = 3, .launches = 2});
  CHECK(order == "abc");
  order.clear();
  const auto seconds = time_interleaved(timers, 3);
  CHECK(order ==
        "aabbcc"
        "bbccaa"
        "ccaabb");
  REQUIRE(seconds.size() == 3);
  CHECK(seconds[2].size() == 3);
}
