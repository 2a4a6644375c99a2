// conv_bench: operations, floors and ceilings.
#include "apps/conv_bench/bench.h"
#include "apps/conv_bench/program.h"
#include "apps/measure/quantile.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tests/apps/conv_bench_support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <cstdio>

using namespace tandem::conv_bench;
using tandem::Device;
using tandem::DType;
using tandem::Tensor;
using tandem::test::ContainsText;
using tandem::test::read_bytes;
using tandem::test::TemporaryDirectory;

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
  // Of 7 x 7 outputs the last tile in each direction leaves out one of six frequencies: 121 products for 49 outputs.
  CHECK(done(parse_shape("2,16,7,7,32,3,3,1,1").layer, ConvImpl::fused, Pass::forward) == 2.0 * 2 * 121 * 32 * 16);
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
  CHECK_THAT(report.ceilings.source, ContainsText("given; f32 raised to what fused reached"));
  CHECK(report.ceilings.flops_f32 > 1e5);
  CHECK(report.ceilings.flops_half == 1e5);
  for (const Result& result : report.results)
    CHECK(*result.floor_seconds <= tandem::apps::median(result.seconds()) * (1.0 + 1e-12));

  const TemporaryDirectory folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  CHECK(run_program(settings, out, out) == 0);
  std::fclose(out);
  CHECK_THAT(read_bytes(folder / "out"), ContainsText("ceilings were beaten"));
}
