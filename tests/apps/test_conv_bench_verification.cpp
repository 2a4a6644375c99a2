// conv_bench: it times nothing that is wrong.
#include "apps/conv_bench/bench.h"
#include "apps/conv_bench/program.h"
#include "tests/apps/conv_bench_support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <cstdio>
#include <memory>

using namespace tandem::conv_bench;
using tandem::Device;
using tandem::DType;
using tandem::Tensor;
using tandem::test::ContainsText;
using tandem::test::read_bytes;
using tandem::test::TemporaryDirectory;

TEST_CASE("conv_bench: every implementation of the CPU passes its verification") {
  for (const Contestant& contestant : contestants()) {
    if (!contestant.obstacle(Device{}).empty()) continue;
    INFO(contestant.name);
    if (takes(contestant, small_layer()))
      for (const bool is_first : {false, true}) CHECK(verdict(contestant, small_layer(is_first), 4) == "");
    CHECK(verdict(contestant, parse_shape("5,16,9,9,32,3,3,1,1").layer, 5) == "");
    if (contestant.name != "onednn" && contestant.name != "onednn-unfused" &&
        takes(contestant, small_layer(), DType::f16))
      CHECK(verdict(contestant, small_layer(), 2, DType::f16) == "");
  }
}

TEST_CASE("conv_bench: what is wrong is found") {
  const Contestant& right = find_contestant("ours");
  const auto of = [&](std::function<void(Workload&)> forward, std::function<void(Workload&)> backward) {
    return verdict(spoilt("wrong", right, std::move(forward), std::move(backward)), small_layer(), 4);
  };
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
    CHECK_THAT(verdict(wrong, layer, 9), ContainsText(result == &Workload::grad_w ? "from 39 on" : "from 8 on"));
  }
}

TEST_CASE("conv_bench: a wrong implementation is named and not timed, the others are") {
  const Contestant& right = find_contestant("ours");
  const BenchSettings settings =
      small_settings({right, spoilt("crooked", right, [](Workload& o) { spoil_last(o.y); }, {})});
  const Report report = run_bench(settings, [](const std::vector<Result>&, const Report&) {});
  REQUIRE(report.wrong.size() == 1);
  CHECK_THAT(report.wrong[0], ContainsText("crooked is wrong: forward, y"));
  CHECK(report.results.size() == 3);
  for (const Result& result : report.results) {
    CHECK(result.impl == "ours");
    CHECK(result.hot.size() == 3);
    CHECK(result.launches == 2);
  }

  const TemporaryDirectory folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  std::FILE* const problems = std::fopen((folder / "problems").c_str(), "w");
  CHECK(run_program(settings, out, problems) == 1);
  CHECK(run_program(small_settings({right}), out, problems) == 0);
  std::fclose(out);
  std::fclose(problems);
  CHECK_THAT(read_bytes(folder / "problems"), ContainsText("error: left out: 7x6"));
}

TEST_CASE("conv_bench: each gradient on its own is that of both together") {
  for (const Contestant& contestant : contestants()) {
    if (!contestant.obstacle(Device{}).empty() || !takes(contestant, small_layer())) continue;
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
