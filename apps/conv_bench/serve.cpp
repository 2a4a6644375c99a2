// Requests and answers, one line each.
#include "apps/conv_bench/serve.h"

#include "apps/conv_bench/oracle.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/core/stream.h"
#include "tandem/train/process_info.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>

namespace tandem::conv_bench {

namespace {

using nlohmann::json;

struct Case {
  const BenchLayer* layer;
  std::int64_t batch;
  DType dtype;
};

/// The case that is being timed: only one is kept in memory.
class Table {
 public:
  explicit Table(const BenchSettings& settings) : settings_(settings) {
    for (const DType dtype : settings.dtypes)
      for (const TimedLayer& timed : settings.layers)
        for (const std::int64_t batch : timed.batches) cases_.push_back({&timed.layer, batch, dtype});
  }

  json greeting() const {
    json list = json::array();
    for (const Case& one : cases_) {
      const BenchLayer& layer = *one.layer;
      list.push_back({{"text", layer.text()},
                      {"net", layer.net},
                      {"n", one.batch},
                      {"c", layer.c},
                      {"h", layer.h},
                      {"w", layer.w},
                      {"k", layer.k},
                      {"r", layer.r},
                      {"s", layer.s},
                      {"stride", layer.stride},
                      {"pad", layer.padding},
                      {"first", layer.is_first},
                      {"count", layer.count},
                      {"dtype", name_of(one.dtype)},
                      {"flops", 2.0 * static_cast<double>(layer.geometry(one.batch).output_numel()) *
                                    static_cast<double>(layer.c * layer.r * layer.s) * (layer.is_first ? 2.0 : 3.0)}});
    }
    json names = json::array();
    for (const Contestant& contestant : settings_.contestants) names.push_back(contestant.name);
    return {{"cases", list},
            {"implementations", names},
            {"threads", num_threads()},
            {"start_bytes", train::peak_memory_bytes()}};
  }

  json time(std::size_t index, Pass pass, const std::string& name, int runs) {
    Entrant& entrant = entrant_for(index, name);
    require(pass != Pass::backward_input && pass != Pass::backward_weight, "--serve times fwd, bwd and both, not {}",
            name_of(pass));
    if (pass == Pass::backward)
      require(entrant.contestant->reads_mask, "{} has no backward pass of its own: ask for both", name);
    const auto run_once = [&] {
      if (pass != Pass::backward) entrant.contestant->forward(*entrant.workload);
      if (pass != Pass::forward) entrant.contestant->backward(*entrant.workload);
    };
    const std::clock_t before = std::clock();
    const std::vector<double> seconds =
        settings_.device.type == DeviceType::cpu ? time_on_cpu(run_once, runs) : time_on_gpu(run_once, runs);
    const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    return {{"seconds", seconds}, {"cpu_seconds", used / std::max(runs, 1)}};
  }

 private:
  struct Entrant {
    const Contestant* contestant;
    std::unique_ptr<Workload> workload;
  };

  static std::vector<double> time_on_cpu(const std::function<void()>& run_once, int runs) {
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run_once();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return seconds;
  }

  std::vector<double> time_on_gpu(const std::function<void()>& run_once, int runs) const {
    const Stream stream = current_stream(settings_.device);
    Event start(EventTiming::on), end(EventTiming::on);
    start.record(stream);
    for (int i = 0; i < runs; ++i) run_once();
    end.record(stream);
    end.synchronize();
    return {1e-3 * end.elapsed_ms(start) / std::max(runs, 1)};
  }

  Entrant& entrant_for(std::size_t index, const std::string& name) {
    require(index < cases_.size(), "there is no case {}, only {}", index, cases_.size());
    if (!workload_ || index != current_) {
      entrants_.clear();
      oracle_.reset();
      workload_.reset();
      const Case& one = cases_[index];
      workload_ = std::make_unique<Workload>(make_workload(*one.layer, one.batch, one.dtype, settings_.device));
      oracle_ = std::make_unique<Oracle>(*workload_);
      current_ = index;
    }
    if (const auto found = entrants_.find(name); found != entrants_.end()) return found->second;
    for (const Contestant& contestant : settings_.contestants) {
      if (contestant.name != name) continue;
      const std::string wrong = verify(contestant, *workload_, *oracle_);
      require(wrong.empty(), "{}: {} is wrong: {}", workload_->layer.text(), name, wrong);
      restore_forward_results(*workload_);
      return entrants_[name] = {&contestant, std::make_unique<Workload>(*workload_)};
    }
    fail("'{}' is not among the implementations of --impl", name);
  }

  const BenchSettings& settings_;
  std::vector<Case> cases_;
  std::size_t current_ = 0;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Oracle> oracle_;
  std::map<std::string, Entrant> entrants_;
};

void answer(const json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

}  // namespace

void serve(const BenchSettings& settings) {
  Table table(settings);
  answer(table.greeting());
  for (std::string verb; std::cin >> verb && verb != "quit";) {
    std::int64_t index = 0;
    std::string pass, name;
    int runs = 0;
    require(verb == "time" && (std::cin >> index >> pass >> name >> runs) && index >= 0 && runs >= 0,
            "request '{}': only 'time CASE PASS IMPL RUNS' and 'quit' are known", verb);
    answer(table.time(static_cast<std::size_t>(index), parse_pass(pass), name, runs));
  }
}

}  // namespace tandem::conv_bench
