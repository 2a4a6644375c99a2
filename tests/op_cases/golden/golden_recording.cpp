// Recording and comparing.
#include "tests/op_cases/golden/golden_recording.h"

#include "tandem/comm/ddp/hash.h"
#include "tandem/core/device_query.h"
#include "tandem/train/process_info.h"
#include "tests/op_cases/golden/golden_run.h"
#include "tests/op_cases/op_checks.h"

#include <algorithm>
#include <set>

namespace tandem::test {

namespace {

/// Small, for small files, and with channels for one access of 16 bytes.
const std::vector<Shape> kShapes{{1, 8, 3, 3}};

/// Of larger results every k-th element is recorded, so that there are no more than these.
constexpr std::int64_t kMaxElements = 96;

std::int64_t step_of(const Tensor& result) {
  return std::max<std::int64_t>(1, (result.numel() + kMaxElements - 1) / kMaxElements);
}

Tensor sample(const Tensor& result) {
  const std::int64_t step = step_of(result);
  return result.view({-1}).narrow(0, 0, (result.numel() + step - 1) / step, step).contiguous();
}

std::string hash_of(const std::vector<Tensor>& inputs) {
  std::vector<std::uint64_t> hashes;
  for (const Tensor& input : inputs) hashes.push_back(comm::hash_tensor(input));
  return fmt::format("{:016x}", comm::hash_bytes(hashes.data(), hashes.size() * sizeof hashes.front()));
}

std::map<std::string, std::string> describe_recorder(Device device) {
  std::map<std::string, std::string> text{{"date", train::utc_time()}, {"cuda", cuda_versions()}};
  for (const DeviceDescription& description : list_devices()) {
    if (!(description.device == device)) continue;
    text["device"] = description.name;
    text["capability"] = description.capability;
  }
  for (const auto& [part, version] : train::build_versions()) {
    if (part == "tandem" || part == "compiler") text[part] = version;
  }
  return text;
}

std::string first_other_bits(const Tensor& actual, const std::string& recorded) {
  const std::string bits = to_bits(actual);
  const std::size_t digits = 2 * static_cast<std::size_t>(size_of(actual.dtype()));
  for (std::size_t i = 0; i < bits.size(); i += digits) {
    if (bits.compare(i, digits, recorded, i, digits) == 0) continue;
    return fmt::format("element {} of {}: bits {}, recorded {}", i / digits, describe(actual), bits.substr(i, digits),
                       recorded.substr(i, digits));
  }
  return {};
}

/// The first difference of each result.
std::vector<std::string> differences(const GoldenRun& run, const RecordedCall& recorded, Device device) {
  const std::vector<Tensor> results = results_of(run, device);
  require(results.size() == recorded.results.size(), "'{}' has {} results, recorded are {}: record again", run.name,
          results.size(), recorded.results.size());
  std::vector<std::vector<double>> bounds;
  if (!run.integers) bounds = bounds_of(run, results);
  std::vector<std::string> found;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k].defined()) continue;
    const Tensor now = sample(results[k]);
    const auto step = static_cast<std::size_t>(step_of(results[k]));
    const Tensor before = from_bits(recorded.results[k], now.dtype(), now.shape());
    // Both devices may be off by the bound, to either side.
    const std::string difference =
        run.integers ? first_other_bits(now, recorded.results[k])
                     : first_outside(now, before, [&](std::size_t i) { return 2.0 * bounds[k][i * step]; });
    if (!difference.empty())
      found.push_back(fmt::format("{}: {}{}: {}", run.name, result_name(k),
                                  step == 1 ? "" : fmt::format(", of which every {} counts", step), difference));
  }
  return found;
}

}  // namespace

Recording record_op_table(Device device, const std::vector<std::string>& ops) {
  Recording recording{.recorded_by = describe_recorder(device)};
  std::set<std::string> names;
  for_each_golden_run(kShapes, ops, [&](const GoldenRun& run) {
    require(names.insert(run.name).second, "two calls of the op table are called '{}'", run.name);
    RecordedCall recorded{.name = run.name, .inputs = hash_of(run.inputs)};
    for (const Tensor& result : results_of(run, device))
      recorded.results.push_back(result.defined() ? to_bits(sample(result)) : "");
    recording.calls.push_back(std::move(recorded));
  });
  return recording;
}

std::vector<std::string> replay(const Recording& recording, Device device) {
  std::map<std::string, const RecordedCall*> waiting;
  for (const RecordedCall& call : recording.calls) waiting[call.name] = &call;
  std::vector<std::string> found;
  for_each_golden_run(kShapes, {}, [&](const GoldenRun& run) {
    const auto call = waiting.find(run.name);
    if (call == waiting.end()) return;
    require(call->second->inputs == hash_of(run.inputs), "'{}' was recorded with other inputs: record again", run.name);
    for (std::string& difference : differences(run, *call->second, device)) found.push_back(std::move(difference));
    waiting.erase(call);
  });
  require(waiting.empty(), "{} recorded calls are not in the op table, the first is '{}': record again", waiting.size(),
          waiting.empty() ? "" : waiting.begin()->first);
  return found;
}

}  // namespace tandem::test
