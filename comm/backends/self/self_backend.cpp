// The backend of a group of one: every collective is done before it starts.
#include "tandem/comm/backends/backend.h"

#include <cstring>

namespace tandem::comm {

namespace {

class DoneWork final : public Work {
 public:
  bool poll() override { return true; }
  void wait() override {}
};

class SelfBackend final : public Backend {
 public:
  std::string_view name() const override { return "self"; }
  Place place() const override { return {}; }
  std::unique_ptr<Work> start_all_reduce(const CollectiveBuffer&, ReduceOp) override {
    return std::make_unique<DoneWork>();
  }
  void broadcast(void*, std::int64_t, int) override {}
  void all_gather(const void* mine, std::int64_t bytes, void* all) override {
    if (bytes > 0) std::memcpy(all, mine, static_cast<std::size_t>(bytes));
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override { return {std::string(mine)}; }
  void barrier() override {}
};

}  // namespace

std::unique_ptr<Backend> make_self_backend() { return std::make_unique<SelfBackend>(); }

}  // namespace tandem::comm
