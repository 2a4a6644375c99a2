// The backend of a group of one: every collective is a copy, done when it starts.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/blocks.h"
#include "tandem/core/error.h"

namespace tandem::comm {

namespace {

class SelfBackend final : public Backend {
 public:
  std::string_view name() const override { return "self"; }
  Place place() const override { return {}; }
  std::unique_ptr<Work> start(const Collective& collective) override {
    require(collective.kind != CollectiveKind::send && collective.kind != CollectiveKind::receive,
            "{}: there is no other rank", describe(collective));
    if (collective.output != nullptr && collective.input != nullptr)
      copy_block(collective.input, collective.output, collective.bytes(collective.count()));
    return done_work();
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { return make_self_backend(); }
};

}  // namespace

std::unique_ptr<Backend> make_self_backend() { return std::make_unique<SelfBackend>(); }

}  // namespace tandem::comm
