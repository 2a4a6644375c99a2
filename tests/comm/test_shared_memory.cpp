// Memory between processes, and processes that end.
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/out.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#if defined(__linux__)

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <utility>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

/// A process that runs `body` and ends.
pid_t start_process(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body());
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Answers gathers of bytes with what it is given.
class Answers final : public Backend {
 public:
  explicit Answers(std::vector<std::vector<std::string>> answers, int rank = 0)
      : answers_(std::move(answers)), rank_(rank) {}

  std::string_view name() const override { return "answers"; }
  Place place() const override { return {.rank = rank_, .size = 2, .local_rank = rank_, .local_size = 2, .node = 0}; }
  std::unique_ptr<Work> start(const Collective&) override { return done_work(); }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("no groups of answers"); }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    auto answer = answers_.at(at_++);
    answer[static_cast<std::size_t>(rank_)] = mine;
    return answer;
  }

 private:
  std::vector<std::vector<std::string>> answers_;
  int rank_;
  std::size_t at_ = 0;
};

}  // namespace

TEST_CASE("shared memory: what one process writes the other one reads") {
  const auto memory = SharedMemory::create(3 * 4096);
  CHECK(memory->data()[4096] == std::byte{0});
  const std::string handle = memory->handle();
  const pid_t child = start_process([&] {
    const auto other = SharedMemory::open(handle);
    const bool is_another_mapping = other->data() != memory->data();
    other->data()[4096] = std::byte{42};
    return is_another_mapping && other->bytes() == 3 * 4096 ? 0 : 1;
  });
  CHECK(exit_code_of(child) == 0);
  CHECK(memory->data()[4096] == std::byte{42});
  CHECK(SharedMemory::open(handle) == memory);  // within a process
  memory->seal();
  CHECK_THAT(error_of([&] { SharedMemory::open(handle); }), ContainsText("of this process is closed"));
}

TEST_CASE("shared memory: what cannot be had is told with the reason") {
  CHECK_THAT(error_of([] { SharedMemory::create(std::int64_t{1} << 60); }),
             ContainsText("shared memory: 1152921504606846976 bytes, and "));
  CHECK_THAT(error_of([] { SharedMemory::open("nonsense"); }), ContainsText("'nonsense' is no handle"));
  const auto memory = SharedMemory::create(4096);
  std::string handle = memory->handle();
  handle.replace(0, handle.find(' '), "999999999");  // no such process
  CHECK_THAT(error_of([&] { SharedMemory::open(handle); }), ContainsText("cannot open /proc/999999999/fd/"));
}

TEST_CASE("shared memory: one rank's obstacle is everybody's") {
  Answers second({{"", ""}, {"", "rank 1 cannot"}});
  const SharedByRanks shared = share_memory(second, 4096);
  CHECK(shared.memory == nullptr);
  CHECK(shared.obstacle == "rank 1: rank 1 cannot");
  Answers first({{"0 0 0 0 0", ""}, {"", ""}}, 1);
  CHECK_THAT(share_memory(first, 4096).obstacle, ContainsText("rank 1: shared memory: "));
}

TEST_CASE("shared memory: a rank whose process has ended is named, and nobody waits for it for ever") {
  const pid_t child = start_process([] { return 0; });
  Answers backend({{"", std::to_string(child)}});
  auto peers = std::make_unique<PeerProcesses>();
  peers->exchange(backend);
  exit_code_of(child);
  CHECK(peers->has_ended(1));
  CHECK_FALSE(peers->has_ended(0));
  WindowEngine engine(Window(SharedMemory::create(Window::bytes_for(2)), 2), 0, std::move(peers));
  const Tensor tensor = Tensor::zeros({4});
  const auto operation = engine.start({.kind = CollectiveKind::all_reduce,
                                       .dtype = DType::f32,
                                       .counts = {4},
                                       .input = tensor.raw_data(),
                                       .output = Out(tensor).raw_data()});
  const std::string text = error_of([&] {
    Patience patience;
    while (!engine.poll()) {
      engine.check_peers();
      patience.pause();
    }
  });
  CHECK(text == fmt::format("all_reduce sum f32[4]: rank 1 (process {}) has ended, and rank 0 waits for it", child));
}

#endif
