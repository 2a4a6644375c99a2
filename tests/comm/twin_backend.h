// Two ranks in one: the other one does whatever this one does, and all that is asked of the backend is written down.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace tandem::test {

/// "all-reduce 0", "wait 0", ... in order; polls are counted.
struct TwinEvents {
  std::vector<std::string> list;
  std::vector<int> polls;          // by number of all-reduce
  int polls_to_completion = 1000;  // of an all-reduce, unless it is waited for
};

class TwinBackend final : public comm::Backend {
 public:
  explicit TwinBackend(TwinEvents& events) : events_(events) {}

  /// What the other rank gives to all_gather_bytes, and another hash than ours to all_gather.
  void let_other_differ(std::string text) { other_ = std::move(text); }

  std::string_view name() const override { return "twin"; }
  comm::Place place() const override { return {.rank = 0, .size = 2, .local_rank = 0, .local_size = 2, .node = 0}; }

  /// Equal numbers of two ranks are their own average.
  std::unique_ptr<comm::Work> start(const comm::Collective& collective) override {
    if (collective.kind == comm::CollectiveKind::all_reduce) {
      const std::size_t number = events_.polls.size();
      events_.list.push_back(fmt::format("all-reduce {}", number));
      events_.polls.push_back(0);
      return std::make_unique<Noted>(events_, number);
    }
    if (collective.kind == comm::CollectiveKind::all_gather) {
      const auto size = static_cast<std::size_t>(collective.bytes(collective.count()));
      auto* const all = static_cast<unsigned char*>(collective.output);
      std::memcpy(all, collective.input, size);
      std::memcpy(all + size, collective.input, size);
      if (other_) all[size] ^= 1;
    }
    return comm::done_work();
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    return {std::string(mine), other_.value_or(std::string(mine))};
  }
  std::unique_ptr<comm::Backend> subgroup(std::span<const int>) override { fail("the twins do not part"); }

 private:
  class Noted final : public comm::Work {
   public:
    Noted(TwinEvents& events, std::size_t number) : events_(events), number_(number) {}
    bool poll() override { return ++events_.polls[number_] >= events_.polls_to_completion; }
    void wait() override { events_.list.push_back(fmt::format("wait {}", number_)); }

   private:
    TwinEvents& events_;
    std::size_t number_;
  };

  TwinEvents& events_;
  std::optional<std::string> other_;
};

}  // namespace tandem::test
