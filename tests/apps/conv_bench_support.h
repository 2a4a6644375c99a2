// What the tests of conv_bench share: small layers, contestants that are wrong, and settings that take a moment.
#pragma once

#include "apps/conv_bench/command_line.h"
#include "apps/conv_bench/oracle.h"
#include "tandem/core/out.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::conv_bench {

inline BenchLayer layer_of(std::string_view net, std::size_t index) { return layers_of(net).at(index); }

inline BenchLayer small_layer(bool is_first = false) {
  BenchLayer layer = parse_shape("2,5,7,6,9,3,3,2,1").layer;
  layer.is_first = is_first;
  return layer;
}

/// The contestant `right` with something done to its results.
inline Contestant spoilt(std::string name, const Contestant& right, std::function<void(Workload&)> after_forward,
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
inline void spoil_last(const Tensor& tensor) {
  float& last = Out(tensor).data<float>()[tensor.numel() - 1];
  last = last * 1.01F + 0.01F;
}

/// False for a family that does not take this layer; all other contestants take every layer.
inline bool takes(const Contestant& contestant, const BenchLayer& layer, DType dtype = DType::f32) {
  Workload workload = make_workload(layer, 1, dtype, Device{});
  try {
    contestant.forward(workload);
    return true;
  } catch (const Error& error) {
    return std::string_view(error.what()).find("the family does not take") == std::string_view::npos;
  }
}

inline std::string verdict(const Contestant& contestant, const BenchLayer& layer, std::int64_t batch,
                           DType dtype = DType::f32) {
  const Workload workload = make_workload(layer, batch, dtype, Device{});
  Oracle oracle(workload);
  return verify(contestant, workload, oracle);
}

inline BenchSettings small_settings(std::vector<Contestant> contestants) {
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

}  // namespace tandem::conv_bench
