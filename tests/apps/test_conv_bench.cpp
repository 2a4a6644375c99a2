// conv_bench: its table of layers, its floors, and that it times nothing that is wrong.
#include "apps/conv_bench/command_line.h"
#include "apps/conv_bench/oracle.h"
#include "apps/conv_bench/program.h"
#include "apps/conv_bench/reports.h"
#include "apps/measure/peak.h"
#include "apps/measure/quantile.h"
#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/layers/models/models.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <set>
#include <stdexcept>

using namespace tandem::conv_bench;
using tandem::Device;
using tandem::DType;
using tandem::Shape;
using tandem::Tensor;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

BenchLayer layer_of(std::string_view net, std::size_t index) { return layers_of(net).at(index); }

BenchLayer small_layer(bool is_first = false) {
  BenchLayer layer = parse_shape("2,5,7,6,9,3,3,2,1").layer;
  layer.is_first = is_first;
  return layer;
}

/// The contestant `right` with something done to its results.
Contestant spoilt(std::string name, const Contestant& right, std::function<void(Workload&)> after_forward,
                  std::function<void(Workload&)> after_backward) {
  Contestant wrong = right;
  wrong.name = std::move(name);
  wrong.forward = [=](Workload& workload) {
    right.forward(workload);
    if (after_forward) after_forward(workload);
  };
  wrong.backward = [=](Workload& workload) {
    right.backward(workload);
    if (after_backward) after_backward(workload);
  };
  return wrong;
}

/// Multiplies the last element in memory.
void spoil_last(const Tensor& tensor) {
  float& last = tandem::Out(tensor).data<float>()[tensor.numel() - 1];
  last = last * 1.01F + 0.01F;
}

std::string verdict(const Contestant& contestant, const BenchLayer& layer, std::int64_t batch,
                    DType dtype = DType::f32) {
  const Workload workload = make_workload(layer, batch, dtype, Device{});
  Oracle oracle(workload);
  return verify(contestant, workload, oracle);
}

BenchSettings small_settings(std::vector<Contestant> contestants) {
  BenchSettings settings;
  settings.layers = {{small_layer(), {2}}};
  settings.passes = {Pass::forward, Pass::backward, Pass::both};
  settings.dtypes = {DType::f32};
  settings.caches = {Cache::hot};
  settings.contestants = std::move(contestants);
  settings.protocol = {.warmup = 1, .groups = 3, .launches = 2};
  settings.ceilings = {1e11, 1e11, 1e10, "given"};
  return settings;
}

}  // namespace

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
    CHECK_THAT(error_of([&] { parse_shape(text); }), tandem::test::ContainsText("nine whole numbers"));
  CHECK_THAT(error_of([] { parse_shape("0,1,8,8,1,3,3,1,1"); }), tandem::test::ContainsText("0 is not between 1"));
  CHECK_THAT(error_of([] { parse_shape("1,1,8,8,1,3,3,0,1"); }), tandem::test::ContainsText("0 is not between 1"));
  CHECK_THAT(error_of([] { parse_shape("1,1,2,2,1,5,5,1,0"); }), tandem::test::ContainsText("kernel spans 5"));
  CHECK_THAT(error_of([] { parse_shape("1048576,1024,64,64,1,1,1,1,0"); }), tandem::test::ContainsText("elements"));
}

TEST_CASE("conv_bench: floors are those of the roofline model") {
  const Ceilings h200 = known_ceilings("NVIDIA H200");
  CHECK(known_ceilings("some other GPU").bandwidth == 0.0);
  // Of tensors, only sizes and dtype count here.
  const auto at = [](const BenchLayer& layer, std::int64_t batch, DType dtype) {
    Workload workload{.layer = layer, .batch = batch};
    workload.x = Tensor::empty({1}, {.dtype = dtype});
    return workload;
  };
  const Workload first = at(layer_of("vgg_lite", 0), 512, DType::f16),
                 fourth = at(layer_of("vgg_lite", 3), 512, DType::f16);
  const auto microseconds = [&](const Workload& workload, Pass pass) {
    return 1e6 * *floor_of(parts_of(workload, pass), DType::f16, h200);
  };
  CHECK(microseconds(first, Pass::forward) == Approx(9.0).margin(0.05));   // of memory
  CHECK(microseconds(first, Pass::backward) == Approx(9.0).margin(0.05));  // no input gradient
  CHECK(microseconds(fourth, Pass::forward) == Approx(97.9).margin(0.1));  // of operations
  CHECK(microseconds(fourth, Pass::both) == Approx(3 * 97.9).margin(0.3));
  CHECK(!floor_of(parts_of(first, Pass::forward), DType::f16, known_ceilings("some other GPU")));
  CHECK(sum_of(parts_of(fourth, Pass::both)).flops == Approx(3 * 2.0 * 512 * 256 * 256 * 128 * 9));
  for (const Workload& workload : {first, fourth}) {
    const auto work = [&](Pass pass) { return sum_of(parts_of(workload, pass)); };
    const Work input = work(Pass::backward_input), weight = work(Pass::backward_weight), all = work(Pass::backward);
    CHECK(all.flops == input.flops + weight.flops);
    CHECK(all.bytes == input.bytes + weight.bytes);
  }
  CHECK(sum_of(parts_of(first, Pass::backward_input)).flops == 0.0);
}

TEST_CASE("conv_bench: operations are those that are done") {
  using tandem::kernels::ConvImpl;
  const auto done = [](const BenchLayer& layer, ConvImpl impl, Pass pass) {
    return sum_of(parts_of(make_workload(layer, 2, DType::f32, Device{}), pass, impl)).done_flops;
  };
  const double by_definition = 2.0 * 2 * 16 * 16 * 32 * 16 * 9;  // batch, pixels, outputs, inputs, taps
  const BenchLayer layer = parse_shape("2,16,16,16,32,3,3,1,1").layer;
  CHECK(done(layer, ConvImpl::reference, Pass::forward) == by_definition);
  // F(4x4, 3x3): 36 products for 16 outputs in place of 144, in every pass.
  CHECK(done(layer, ConvImpl::fused, Pass::forward) == by_definition / 4);
  CHECK(done(layer, ConvImpl::fused, Pass::both) == 3 * by_definition / 4);
  const BenchLayer strided = parse_shape("2,16,16,16,32,3,3,2,1").layer;
  CHECK(done(strided, ConvImpl::fused, Pass::forward) ==
        by_definition / 4);  // a quarter of the outputs, all of it done

  // What was measured counts as what it is: here the pass that is timed, with bias, ReLU and mask, runs by plain sums.
  tandem::kernels::ConvTuner& tuner = tandem::kernels::conv_tuner();
  const auto add = [&](const char* chosen, const tandem::kernels::TunedWork& work) {
    tuner.add({tandem::DeviceType::cpu, tandem::kernels::PassKind::forward, DType::f32, layer.geometry(2), work},
              {chosen, {}});
  };
  add("direct", {.bias = true, .relu = true, .mask = true});
  add("winograd", {});
  CHECK(done(layer, ConvImpl::automatic, Pass::forward) == by_definition);
  tuner.clear();
  CHECK(done(layer, ConvImpl::automatic, Pass::forward) == by_definition / 4);
}

TEST_CASE("conv_bench: a ceiling that is beaten is raised, by name, and no share is more than all") {
  BenchSettings settings = small_settings({find_contestant("fused"), find_contestant("reference")});
  settings.ceilings = {1e5, 1e5, 1e15, "given"};
  const Report report = run_bench(settings, [](const std::vector<Result>&, const Report&) {});
  CHECK_THAT(report.ceilings.source, tandem::test::ContainsText("given; f32 raised to what fused reached"));
  CHECK(report.ceilings.flops_f32 > 1e5);
  CHECK(report.ceilings.flops_half == 1e5);
  for (const Result& result : report.results)
    CHECK(*result.floor_seconds <= tandem::apps::median(result.seconds()) * (1.0 + 1e-12));

  const tandem::test::TemporaryDirectory folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  CHECK(run_program(settings, out, out) == 0);
  std::fclose(out);
  CHECK_THAT(tandem::test::read_bytes(folder / "out"), tandem::test::ContainsText("ceilings were beaten"));
}

TEST_CASE("the measured peak is one that products of matrices do not beat") {
  // Large enough to run at full speed, small enough for a few milliseconds, which other programs miss now and then.
  constexpr std::int64_t kSize = 512;
  const Tensor a = Tensor::full({kSize, kSize}, 0.5), b = Tensor::full({kSize, kSize}, 0.25);
  const Tensor product = Tensor::zeros({kSize, kSize});
  const int threads = tandem::num_threads();
  tandem::set_num_threads(1);
  double best_seconds = 1e9, peak = 0.0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      const auto start = std::chrono::steady_clock::now();
      tandem::kernels::linear_forward(a, b, {}, false, tandem::Out(product));
      best_seconds =
          std::min(best_seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    peak = std::max(peak, tandem::apps::measure_peak_flops(1));
  }
  tandem::set_num_threads(threads);
  const double rate = 2.0 * kSize * kSize * kSize / best_seconds;
  INFO("peak " << 1e-9 * peak << " GFLOP/s, products " << 1e-9 * rate);
  CHECK(peak >= 0.9 * rate);
}

TEST_CASE("conv_bench: every implementation of the CPU passes its verification") {
  for (const Contestant& contestant : contestants()) {
    if (!contestant.obstacle(Device{}).empty()) continue;
    INFO(contestant.name);
    for (const bool is_first : {false, true}) CHECK(verdict(contestant, small_layer(is_first), 4) == "");
    CHECK(verdict(contestant, parse_shape("5,16,9,9,32,3,3,1,1").layer, 5) == "");
    if (contestant.name != "onednn" && contestant.name != "onednn-unfused")
      CHECK(verdict(contestant, small_layer(), 2, DType::f16) == "");
  }
}

TEST_CASE("conv_bench: what is wrong is found") {
  const Contestant& right = find_contestant("ours");
  const auto of = [&](std::function<void(Workload&)> forward, std::function<void(Workload&)> backward) {
    return verdict(spoilt("wrong", right, std::move(forward), std::move(backward)), small_layer(), 4);
  };
  using tandem::test::ContainsText;
  CHECK_THAT(of([](Workload& o) { spoil_last(o.y); }, {}), ContainsText("forward, y: element"));
  CHECK_THAT(of([](Workload& o) { ++tandem::Out(o.mask).data<std::uint8_t>()[1]; }, {}),
             ContainsText("forward, the mask"));
  CHECK_THAT(of({}, [](Workload& o) { spoil_last(o.grad_x); }), ContainsText("backward, grad_x: element"));
  CHECK_THAT(of({}, [](Workload& o) { spoil_last(o.grad_w); }), ContainsText("backward, grad_w: element"));
  CHECK_THAT(of({}, [](Workload& o) { spoil_last(o.grad_bias); }), ContainsText("backward, grad_bias: element"));
  // Results that nobody writes are not those of the one before.
  Contestant idle = right;
  idle.forward = idle.backward = [](Workload&) {};
  CHECK_THAT(verdict(idle, small_layer(), 4), ContainsText("is nan"));
  idle.forward = right.forward;
  CHECK_THAT(verdict(idle, small_layer(), 4), ContainsText("backward, grad_x: element 0 from 0 on is nan"));
}

TEST_CASE("conv_bench: of large batches the first and last images and channels are checked") {
  const BenchLayer layer = parse_shape("9,40,24,24,40,3,3,1,1").layer;  // too many operations for all
  const Contestant& right = find_contestant("ours");
  CHECK(verdict(right, layer, 9) == "");
  for (const auto& result : {&Workload::y, &Workload::grad_x, &Workload::grad_w}) {
    const auto spoil = [result](Workload& o) { spoil_last(o.*result); };
    const bool forward = result == &Workload::y;
    const Contestant wrong = forward ? spoilt("wrong", right, spoil, {}) : spoilt("wrong", right, {}, spoil);
    CHECK_THAT(verdict(wrong, layer, 9),
               tandem::test::ContainsText(result == &Workload::grad_w ? "from 39 on" : "from 8 on"));
  }
}

TEST_CASE("conv_bench: a wrong implementation is named and not timed, the others are") {
  const Contestant& right = find_contestant("ours");
  const BenchSettings settings =
      small_settings({right, spoilt("crooked", right, [](Workload& o) { spoil_last(o.y); }, {})});
  const Report report = run_bench(settings, [](const std::vector<Result>&, const Report&) {});
  REQUIRE(report.wrong.size() == 1);
  CHECK_THAT(report.wrong[0], tandem::test::ContainsText("crooked is wrong: forward, y"));
  CHECK(report.results.size() == 3);
  for (const Result& result : report.results) {
    CHECK(result.impl == "ours");
    CHECK(result.hot.size() == 3);
    CHECK(result.launches == 2);
  }

  const tandem::test::TemporaryDirectory folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  std::FILE* const problems = std::fopen((folder / "problems").c_str(), "w");
  CHECK(run_program(settings, out, problems) == 1);
  CHECK(run_program(small_settings({right}), out, problems) == 0);
  std::fclose(out);
  std::fclose(problems);
  CHECK_THAT(tandem::test::read_bytes(folder / "problems"), tandem::test::ContainsText("error: left out: 7x6"));
}

TEST_CASE("conv_bench: reports hold what was measured") {
  BenchSettings settings = small_settings({find_contestant("ours"), find_contestant("reference")});
  settings.contestants[1].is_library = true;
  settings.caches = {Cache::hot, Cache::cold};
  const Report report = run_bench(settings, [](const std::vector<Result>&, const Report&) {});
  REQUIRE(report.results.size() == 6);
  const auto ratio = ratio_to_library(report.results[0], report.results);
  REQUIRE(ratio.has_value());
  CHECK(*ratio == Approx(tandem::apps::median(report.results[1].hot) / tandem::apps::median(report.results[0].hot)));
  CHECK(*ratio_to_library(report.results[1], report.results) == Approx(1.0));

  const auto parsed = nlohmann::json::parse(json_report(settings, report));
  REQUIRE(parsed["results"].size() == 6);
  const auto& first = parsed["results"][0];
  CHECK((first["impl"] == "ours" && first["pass"] == "fwd" && first["dtype"] == "f32" && first["layer"]["c"] == 5));
  CHECK(first["hot_seconds"]["groups"].size() == 3);
  CHECK(first["cold_seconds"]["median"].get<double>() > 0.0);
  CHECK(first["ratio_to_best_library"].get<double>() == Approx(*ratio));

  const std::string picture = svg_report(settings, report.results);
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = picture.find(text); at != std::string::npos; at = picture.find(text, at + 1)) ++found;
    return found;
  };
  CHECK(count("<circle") == 6);
  CHECK(count("<title>") == 12);
  CHECK(count("nan") == 0);
  CHECK(count("inf") == 0);
  CHECK(picture.find("</svg>") != std::string::npos);
}

TEST_CASE("conv_bench: the picture's axes can be read, and no two implementations have one colour") {
  BenchSettings settings;
  settings.ceilings = {.flops_f32 = 480e9, .flops_half = 480e9, .bandwidth = 50e9, .source = "given"};
  std::vector<Result> results;
  for (int i = 0; i < 20; ++i) {
    Result result;
    result.layer = small_layer();
    result.impl = fmt::format("implementation {}", i);
    result.work = {.flops = 2e8, .done_flops = 2e8, .bytes = 1e7};
    result.hot = {1e-3 * (1.0 + 0.1 * i)};
    results.push_back(result);
  }
  const std::string picture = svg_report(settings, results);
  for (const char* const tick : {">10</text>", ">20</text>", ">100</text>", ">200</text>", ">500</text>"})
    CHECK_THAT(picture, ContainsText(tick));  // x: 20 FLOP per byte; y: 69 to 200 GFLOP/s under the roof
  CHECK_THAT(picture, ContainsText(">480 GFLOP/s</text>"));
  std::set<std::string> colours;
  for (std::size_t at = picture.find("<circle"); at != std::string::npos; at = picture.find("<circle", at + 1))
    colours.insert(picture.substr(picture.find("fill=", at), 14));
  CHECK(colours.size() == 20);
}

TEST_CASE("conv_bench: each gradient on its own is that of both together") {
  for (const Contestant& contestant : contestants()) {
    if (!contestant.obstacle(Device{}).empty()) continue;
    INFO(contestant.name);
    const Workload whole = make_workload(small_layer(), 2, DType::f32, Device{});
    const Entrant entrant{&contestant, std::make_shared<Workload>(whole)};
    CHECK(entrant.can_do(Pass::backward_input) == contestant.reads_mask);
    CHECK(entrant.can_do(Pass::backward_weight) == contestant.reads_mask);
    if (!contestant.reads_mask) continue;
    entrant.work(Pass::backward)();
    const auto results = [&] {
      return std::vector{whole.grad_x.to_vector<float>(), whole.grad_w.to_vector<float>(),
                         whole.grad_bias.to_vector<float>()};
    };
    const auto expected = results();
    for (const Pass pass : {Pass::backward_input, Pass::backward_weight}) {
      for (const Tensor& gradient : {whole.grad_x, whole.grad_w, whole.grad_bias}) gradient.fill(-7.0);
      entrant.work(pass)();
      const auto got = results();
      for (std::size_t i = 0; i < got.size(); ++i) {
        const bool made = (i == 0) == (pass == Pass::backward_input);
        CHECK(got[i] == (made ? expected[i] : std::vector<float>(got[i].size(), -7.0F)));
      }
    }
    const Workload first = make_workload(small_layer(true), 2, DType::f32, Device{});
    CHECK(!Entrant{&contestant, std::make_shared<Workload>(first)}.can_do(Pass::backward_input));
  }
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

TEST_CASE("conv_bench: a process that is ended leaves the layers that it has timed") {
  const tandem::test::TemporaryDirectory folder;
  Contestant fatal = find_contestant("ours");
  fatal.forward = [right = fatal.forward](Workload& workload) {
    if (workload.layer.c == 4) throw std::runtime_error("the end");
    right(workload);
  };
  BenchSettings settings = small_settings({fatal});
  settings.layers.push_back({parse_shape("1,4,5,5,4,1,1,1,0").layer, {1}});
  settings.json_file = folder / "some.json";
  settings.missing = {"cudnn: was not found"};
  settings.ceilings = {1e5, 1e5, 1e15, "given"};
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  CHECK_THROWS_WITH(run_program(settings, out, out), "the end");
  std::fclose(out);
  const auto parsed = nlohmann::json::parse(tandem::test::read_bytes(settings.json_file));
  CHECK(parsed["complete"] == false);
  CHECK(parsed["results"].size() == 3);
  // The ceilings are those that the floors come from: raised by what was timed before the end.
  const double ceiling = parsed["ceilings"]["flops_f32"];
  CHECK(parsed["ceilings"]["source"] == "given; f32 raised to what ours reached");
  for (const auto& result : parsed["results"])
    CHECK(result["done_flops"].get<double>() / result["hot_seconds"]["median"].get<double>() <=
          ceiling * (1.0 + 1e-12));
  CHECK(parsed["skipped"] == std::vector<std::string>{"cudnn: was not found"});
  CHECK_THAT(tandem::test::read_bytes(folder / "out"), tandem::test::ContainsText("left out: cudnn: was not found"));
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

TEST_CASE("quantiles lie between neighbours") {
  using tandem::apps::quantile;
  CHECK(quantile({}, 0.5) == 0.0);
  CHECK(quantile({3.0}, 0.9) == 3.0);
  CHECK(tandem::apps::median({4.0, 1.0, 3.0}) == 3.0);
  CHECK(tandem::apps::median({4.0, 1.0, 3.0, 2.0}) == 2.5);
  CHECK(quantile({10.0, 20.0, 30.0, 40.0, 50.0}, 0.1) == Approx(14.0));
  CHECK(quantile({10.0, 20.0}, 1.0) == 20.0);
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
