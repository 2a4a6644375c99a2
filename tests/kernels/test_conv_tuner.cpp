// Convolution code chosen by measurement.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/families.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/image_support.h"

#include <chrono>
#include <set>
#include <thread>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

/// Gives the tuner of all convolutions back as it was found.
struct CleanTuner {
  CleanTuner() { k::conv_tuner().clear(); }
  ~CleanTuner() { k::conv_tuner().clear(); }
};

k::TuningKey key_of(const ConvCase& one, k::PassKind pass = k::PassKind::forward) {
  return {DeviceType::cpu, pass, DType::f32, one.geometry()};
}

/// The families for the CPU that take this convolution.
std::set<std::string> families_of(const ConvCase& one, DType dtype) {
  std::set<std::string> names;
  k::cpu::dispatch_float(dtype, "families_of", [&](auto tag) {
    for (const auto& family : k::cpu::conv_families<typename decltype(tag)::type>())
      if (family.supports(one.geometry())) names.emplace(family.name);
  });
  return names;
}

/// Candidates that take this many milliseconds, and how often each ran.
struct Sleepers {
  std::vector<int> runs;
  std::vector<k::TuningCandidate> candidates;

  Sleepers(const std::vector<std::pair<std::string_view, int>>& milliseconds) : runs(milliseconds.size()) {
    for (std::size_t i = 0; i < milliseconds.size(); ++i) {
      candidates.push_back({milliseconds[i].first, [this, i, time = milliseconds[i].second] {
                              ++runs[i];
                              std::this_thread::sleep_for(std::chrono::milliseconds(time));
                            }});
    }
  }
};

}  // namespace

TEST_CASE("the tuner takes the fastest candidate, and measures it once") {
  k::ConvTuner tuner;
  const k::TuningKey key = key_of(square_case(1, 8, 4, 4, 16, 3, 1));
  Sleepers three({{"slow", 12}, {"fast", 1}, {"medium", 6}});
  CHECK_FALSE(tuner.is_active());
  CHECK(tuner.choose(key, {}, three.candidates, 2) == 2);
  CHECK(three.runs == std::vector<int>(3, 0));

  tuner.set_measuring(true);
  CHECK(tuner.is_active());
  CHECK(tuner.choose(key, {}, three.candidates, 2) == 1);
  const std::vector<int> runs = three.runs;
  CHECK(runs[0] == 5);  // a warm-up, one to see how long it takes, three turns
  CHECK(tuner.choose(key, {}, three.candidates, 2) == 1);
  CHECK(three.runs == runs);
  CHECK(tuner.measured() == 1);
  const k::TuningResult result = tuner.results().at(key);
  CHECK(result.chosen == "fast");
  CHECK(result.microseconds.at("slow") >= 12000.0);
  CHECK(result.microseconds.at("medium") >= 6000.0);

  // Another pass is another key, and a result of other candidates is none.
  Sleepers two({{"fast", 6}, {"new", 1}});
  CHECK(tuner.choose(key_of(square_case(1, 8, 4, 4, 16, 3, 1), k::PassKind::backward_input), {}, two.candidates, 0) ==
        1);
  CHECK(tuner.choose(key, {}, two.candidates, 0) == 1);
  CHECK(tuner.measured() == 3);
  tuner.set_measuring(false);
  CHECK(tuner.is_active());
  CHECK(tuner.choose(key, {}, two.candidates, 0) == 1);
  CHECK(tuner.choose(key, {}, three.candidates, 2) == 2);

  // Some may not be chosen: then it is the fastest of the others.
  tuner.add(key, {"fast", {{"slow", 9.0}, {"medium", 5.0}, {"fast", 1.0}}});
  const auto is = [&](std::string_view name) {
    return [&, name](std::size_t i) { return three.candidates[i].name == name; };
  };
  const auto name_chosen = [&](const std::function<bool(std::size_t)>& allowed) {
    return std::string(three.candidates[tuner.choose(key, {}, three.candidates, 0, allowed)].name);
  };
  CHECK(name_chosen({}) == "fast");
  CHECK(name_chosen([&](std::size_t i) { return three.candidates[i].name != "fast"; }) == "medium");
  CHECK(name_chosen(is("slow")) == "slow");
}

TEST_CASE("a candidate that chooses for a part of what it does is measured with that") {
  k::ConvTuner tuner;
  tuner.set_measuring(true);
  const k::TuningKey whole = key_of(square_case(1, 8, 4, 4, 16, 3, 1), k::PassKind::forward_pool),
                     part = key_of(square_case(1, 8, 4, 4, 16, 3, 1));
  Sleepers inside({{"slow", 6}, {"fast", 1}});
  std::size_t chosen = 2;
  const std::vector<k::TuningCandidate> candidates{
      {"alone", [] { std::this_thread::sleep_for(std::chrono::milliseconds(12)); }},
      {"in two parts", [&] {
         chosen = tuner.choose(part, {}, inside.candidates, 0);
         inside.candidates[chosen].run();
       }}};
  CHECK(tuner.choose(whole, {}, candidates, 0) == 1);
  CHECK(chosen == 1);
  CHECK(tuner.measured() == 2);
}

TEST_CASE("convolutions are measured at first use, and right however they were chosen") {
  const CleanTuner clean;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const ConvCase one = square_case(2, 8, 7, 6, 16, 3, 1);
    const std::set<std::string> families = families_of(one, dtype);
    const auto ints = [&](const Shape& shape, unsigned seed) { return in_dtype(integers(shape, seed), dtype); };
    const Tensor x = ints(one.x(), 1), w = ints(one.weight(), 2), grad_y = ints(one.y(), 3);
    const auto empty = [&](const Shape& shape) { return Tensor::empty(shape, channels_last(dtype)); };
    const auto run = [&](k::ConvImpl impl) {
      k::Conv2dOptions options = one.options;
      options.impl = impl;
      std::vector<Tensor> results{empty(one.y()), empty(one.x()), empty(one.weight())};
      k::conv2d_forward(x, w, {}, options, Out(results[0]));
      k::conv2d_backward_input(grad_y, w, options, Out(results[1]));
      k::conv2d_backward_weight(x, grad_y, options, Out(results[2]));
      return results;
    };
    const std::vector<Tensor> expected = run(k::ConvImpl::reference);
    k::conv_tuner().clear();
    k::conv_tuner().set_measuring(true);
    const std::vector<Tensor> measured = run(k::ConvImpl::automatic);
    CHECK(k::conv_tuner().measured() == 3);
    const auto results = k::conv_tuner().results();
    CHECK(results.size() == 3);
    for (const auto& [key, result] : results) {
      CHECK(key.dtype == dtype);
      CHECK(key.geometry == one.geometry());
      std::set<std::string> timed;
      for (const auto& [name, microseconds] : result.microseconds) timed.insert(name);
      CHECK(timed == families);
    }
    run(k::ConvImpl::fused);  // is not the tuner's business
    CHECK(k::conv_tuner().measured() == 3);
    // All results are whole numbers that fit into half; Winograd comes close enough to them to tell which.
    const auto check = [&](const std::vector<Tensor>& got, bool exact) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        std::vector<double> values = got[i].to_vector<double>();
        if (!exact)
          for (double& value : values) value = std::round(value) + 0.0;
        CHECK(values == expected[i].to_vector<double>());
      }
    };
    check(measured, false);
    // Every choice, as a file would bring it.
    for (const std::string& chosen : families) {
      for (const auto& [key, result] : results) k::conv_tuner().add(key, {chosen, result.microseconds});
      check(run(k::ConvImpl::automatic), chosen != "winograd");
    }
  }
}

}  // namespace tandem::test
