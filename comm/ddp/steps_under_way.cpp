// How far the host runs ahead.
#include "tandem/comm/ddp/steps_under_way.h"

#include <cstddef>
#include <exception>
#include <utility>

namespace tandem::comm {

namespace {

constexpr std::size_t kMost = 3;

/// The works of a step.
class StepExchange final : public Work {
 public:
  explicit StepExchange(std::vector<std::unique_ptr<Work>> works) : works_(std::move(works)) {}
  bool poll() override {
    while (!works_.empty() && works_.front()->poll()) works_.erase(works_.begin());
    return works_.empty();
  }
  void wait() override {
    for (; !works_.empty(); works_.erase(works_.begin())) works_.front()->wait();
  }

 private:
  std::vector<std::unique_ptr<Work>> works_;
};

}  // namespace

StepsUnderWay::~StepsUnderWay() {
  // A work that is dropped before it is complete keeps its memory for ever.
  if (std::uncaught_exceptions() > 0) return;
  try {
    for (const auto& step : steps_) step->wait();
  } catch (const std::exception&) {  // it failed, and nobody is left to be told
  }
}

void StepsUnderWay::add(std::vector<std::unique_ptr<Work>> works) {
  const std::size_t most = works.empty() ? 0 : kMost;
  if (!works.empty()) steps_.push_back(std::make_shared<StepExchange>(std::move(works)));
  while (steps_.size() > most) {
    const std::shared_ptr<Work> oldest = std::move(steps_.front());
    steps_.pop_front();
    oldest->wait();
  }
}

}  // namespace tandem::comm
