// The backend of a group of one: every collective is a copy, done when it starts.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/transports/simulated/network_model.h"
#include "tandem/core/error.h"

#include <optional>

namespace tandem::comm {

namespace {

class SelfBackend final : public Backend {
 public:
  explicit SelfBackend(const std::optional<NetworkModel>& network) : network_(network) {}

  std::string_view name() const override { return "self"; }
  Place place() const override { return {}; }
  std::unique_ptr<Work> start(const Collective& collective) override {
    require(collective.kind != CollectiveKind::send && collective.kind != CollectiveKind::receive,
            "{}: there is no other rank", describe(collective));
    if (collective.output != nullptr && collective.input != nullptr)
      copy_block(collective.input, collective.output, collective.bytes(collective.count()));
    return done_work();
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { return std::make_unique<SelfBackend>(network_); }
  std::optional<MessageCosts> costs() const override {
    return network_ ? std::optional(real_time_costs_of(*network_)) : std::nullopt;
  }
  std::optional<double> predicted_all_reduce_seconds(std::int64_t bytes) const override {
    if (!network_) return std::nullopt;
    const std::vector<int> hosts{0, 1};
    return predicted_seconds(recursive_doubling(2), hosts, bytes, real_time_costs_of(*network_));
  }
  std::string network() const override { return network_ ? to_text(*network_) : ""; }

 private:
  std::optional<NetworkModel> network_;
};

}  // namespace

std::unique_ptr<Backend> make_self_backend() { return std::make_unique<SelfBackend>(std::nullopt); }

std::unique_ptr<Backend> make_self_backend(const NetworkModel& network) {
  return std::make_unique<SelfBackend>(network);
}

}  // namespace tandem::comm
