// Messages of one rank on backends whose other rank is made up: what is told of it, when, and in which order messages
// begin.
#include "tandem/comm/doctor/checked_messages.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// What rank 1 tells rank 0 of each of its messages once `open_tags` has the tag, and the tags of messages that began.
struct OtherRank {
  std::vector<std::int64_t> row;
  std::set<int> open_tags{};
  std::vector<std::string> begun{};
};

class MadeUp final : public Backend {
 public:
  MadeUp(OtherRank& other, std::string name, Backend* host = nullptr)
      : other_(other), name_(std::move(name)), host_(host) {}

  std::string_view name() const override { return name_; }
  Place place() const override { return {.rank = 0, .size = 2}; }
  Backend& on(Device device) override { return device == Device{} && host_ != nullptr ? *host_ : *this; }
  std::unique_ptr<Work> start(const Collective& collective) override {
    if (collective.tag <= kMaxMessageTag) {
      other_.begun.push_back(fmt::format("{} {}", name_, collective.tag));
      return done_work();
    }
    CHECK(collective.bytes(collective.count()) == static_cast<std::int64_t>(sizeof(std::int64_t) * other_.row.size()));
    if (collective.kind == CollectiveKind::send) return done_work();
    return std::make_unique<Hearing>(other_, collective);
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("it does not part"); }

 private:
  class Hearing final : public Work {
   public:
    Hearing(OtherRank& other, const Collective& collective) : other_(other), collective_(collective) {}
    bool poll() override {
      const bool is_open = other_.open_tags.contains(collective_.tag % (kMaxMessageTag + 1));
      if (is_open) std::memcpy(collective_.output, other_.row.data(), sizeof(std::int64_t) * other_.row.size());
      return is_open;
    }
    void wait() override {
      while (!poll()) fail("nobody would open it");
    }

   private:
    OtherRank& other_;
    Collective collective_;
  };

  OtherRank& other_;
  std::string name_;
  Backend* host_;
};

Collective message(CollectiveKind kind, int tag) {
  return {.kind = kind, .dtype = DType::f32, .peer = 1, .tag = tag, .counts = {5}};
}

std::vector<std::int64_t> row(bool is_on_gpu) {
  return {static_cast<std::int64_t>(DType::f32), 5, is_on_gpu ? 1 : 0, 1};
}

}  // namespace

TEST_CASE("messages of a GPU begin in their order, and those of host memory in that of their tag") {
  using enum CollectiveKind;
  for (const bool is_on_gpu : {false, true}) {
    OtherRank other{.row = row(is_on_gpu)};
    MadeUp host(other, "host"), gpu(other, "gpu", &host);
    Backend& backend = is_on_gpu ? gpu : host;
    CheckedMessages messages;
    const auto first = messages.start(backend, message(receive, 1)), second = messages.start(backend, message(send, 2)),
               third = messages.start(backend, message(send, 2));
    CHECK(!third->poll());
    CHECK(other.begun.empty());
    other.open_tags = {2};
    CHECK(second->poll() == !is_on_gpu);
    CHECK(other.begun == (is_on_gpu ? std::vector<std::string>{} : std::vector<std::string>{"host 2", "host 2"}));
    other.open_tags = {1, 2};
    messages.wait_for_order(backend);
    first->wait();
    CHECK(other.begun == (is_on_gpu ? std::vector<std::string>{"gpu 1", "gpu 2", "gpu 2"}
                                    : std::vector<std::string>{"host 2", "host 2", "host 1"}));
    CHECK(third->poll());
  }
}

TEST_CASE("a message between a GPU and host memory does not fit where they go other ways") {
  OtherRank other{.row = row(false), .open_tags = {0}};
  MadeUp host(other, "host"), gpu(other, "gpu", &host);
  CheckedMessages messages;
  CHECK_THAT(error_of([&] { messages.start(gpu, message(CollectiveKind::send, 0))->wait(); }),
             ContainsText("message #1 from rank 0 to rank 1 (tag 0) does not fit: rank 0 sends f32[5] of a GPU, and "
                          "rank 1 receives f32[5] of host memory; a send() and its receive() need the same dtype and "
                          "number of elements, both of a GPU or both of host memory, and meet in the order"));
  CHECK(other.begun.empty());
}

TEST_CASE("a message that is given up is forgotten") {
  OtherRank other{.row = row(true)};
  MadeUp host(other, "host"), gpu(other, "gpu", &host);
  CheckedMessages messages;
  messages.start(gpu, message(CollectiveKind::send, 1)).reset();
  other.open_tags = {1};
  CHECK(!messages.move());
  messages.wait_for_order(gpu);  // returns
  CHECK(other.begun.empty());
}
