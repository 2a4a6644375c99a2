// Memory between processes, and processes that end.
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/transports/shared_memory/available_memory.h"
#include "tandem/comm/transports/shared_memory/ended_peer.h"
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/out.h"
#include "tandem/kernels/notice.h"
#include "tests/comm/refuse_reading.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/limit_scope.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"

#if defined(__linux__)

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;
using tandem::test::LimitScope;
using tandem::test::refuse_reading;
using tandem::test::TemporaryDirectory;

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

/// Rank 0 is this process, and rank 1 another one.
std::unique_ptr<PeerProcesses> peers_with(pid_t second) {
  Answers backend({{"", std::to_string(second)}});
  auto peers = std::make_unique<PeerProcesses>();
  peers->exchange(backend);
  return peers;
}

/// Whether a process may read the one that started it: Yama lets it only the other way.
bool may_read_parent() {
  const std::uint64_t number = 4711;
  const pid_t parent = getpid();
  const pid_t child = start_process([&] {
    std::uint64_t found = 0;
    const iovec here{&found, sizeof found}, there{const_cast<std::uint64_t*>(&number), sizeof number};
    return process_vm_readv(parent, &here, 1, &there, 1, 0) == sizeof found && found == number ? 0 : 1;
  });
  return exit_code_of(child) == 0;
}

}  // namespace

TEST_CASE("peer processes: a rank reads another one's memory, and is told why where it cannot") {
  constexpr std::int64_t kBytes = (std::int64_t{5} << 20) + 3;  // several pieces
  auto* const data =
      static_cast<std::byte*>(mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::int64_t i = 0; i < kBytes; ++i) data[i] = static_cast<std::byte>(i * 7 % 251);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const pid_t child = start_process([] {
    pause();
    return 0;
  });
  std::memset(data, 0, kBytes);  // the child has the old bytes
  const auto peers = peers_with(child);
  CHECK(peers->is_here(0));
  CHECK_FALSE(peers->is_here(1));
  CHECK_FALSE(peers->are_all_here());
  peers->read(1, address + 1, data, kBytes - 1);
  std::int64_t wrong = 0;
  for (std::int64_t i = 1; i < kBytes; ++i) wrong += data[i - 1] != static_cast<std::byte>(i * 7 % 251);
  CHECK(wrong == 0);
  CHECK_THAT(
      error_of([&] { peers->read(1, 16, data, 5000); }),
      ContainsText(fmt::format("cannot read 5000 bytes in the memory of rank 1 (process {}): Bad address", child)));
  kill(child, SIGKILL);
  exit_code_of(child);
  CHECK_THAT(error_of([&] { peers->read(1, address, data, 8); }), ContainsText("No such process"));
  munmap(data, 2 * kBytes);
}

TEST_CASE("peer processes: ranks find out together whether they may read, and whose memory it is") {
  if (!test::runs_unless(may_read_parent() ? "" : "this system lets no process read the one that started it")) return;
  const std::uint64_t number = 4711;
  const std::string shown = fmt::format("{} {}", reinterpret_cast<std::uintptr_t>(&number), number);
  const std::string other = fmt::format("{} {}", reinterpret_cast<std::uintptr_t>(&number), number + 1);
  const pid_t parent = getpid();
  const auto obstacle_in_child = [&](const std::string& told, bool refused) {
    const TemporaryDirectory folder;
    const std::string path = (folder.path() / "obstacle").string();
    const pid_t child = start_process([&] {
      if (refused) refuse_reading();
      PeerProcesses peers;  // rank 0 is the process of the test, and this one rank 1
      Answers processes({{std::to_string(parent), ""}}, 1), answers({{told, ""}, {"", ""}}, 1);
      peers.exchange(processes);
      std::ofstream(path) << obstacle_to_reading(answers, peers);
      return 0;
    });
    REQUIRE(exit_code_of(child) == 0);
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK(obstacle_in_child(shown, false) == "");
  CHECK(obstacle_in_child(other, false) ==
        fmt::format("rank 1: the memory of process {} is not that of rank 0", parent));
  CHECK(obstacle_in_child(shown, true) ==
        fmt::format("rank 1: cannot read 8 bytes in the memory of rank 0 (process {}): Operation not permitted (the "
                    "system sets that by kernel.yama.ptrace_scope, a container by its rules on system calls)",
                    parent));
  // Of the other rank's obstacle, too, although this one can read.
  const pid_t child = start_process([] {
    pause();
    return 0;
  });
  Answers answers({{"", shown}, {"", "it cannot"}});
  CHECK(obstacle_to_reading(answers, *peers_with(child)) == "rank 1: it cannot");
  kill(child, SIGKILL);
  exit_code_of(child);
}

TEST_CASE("peer processes: what a rank that gave up has under way stays as long as others may read it") {
  auto memory = SharedMemory::create(2 * Window::part_bytes(2));
  auto engine =
      std::make_unique<WindowEngine>(Window(memory, 2), 0, peers_with(getpid()), DataAccess{.reads_from_bytes = 0});
  const Tensor tensor = Tensor::zeros({4096});
  const std::weak_ptr<WindowOperation> operation = engine->start({.kind = CollectiveKind::broadcast,
                                                                  .dtype = DType::f32,
                                                                  .counts = {4096},
                                                                  .input = tensor.raw_data(),
                                                                  .output = Out(tensor).raw_data(),
                                                                  .input_owner = tensor});
  engine.reset();
  CHECK_FALSE(operation.expired());
  memory.reset();
  CHECK(operation.expired());
}

TEST_CASE("peer processes: a rank that cannot read ends with an error, and the others are told") {
  // Both ranks are engines of this process, but rank 1 takes rank 0 to be another process, which has ended.
  const pid_t ended = start_process([] { return 0; });
  exit_code_of(ended);
  const auto memory = SharedMemory::create(2 * Window::part_bytes(2));
  const auto engine_of = [&](int rank, const std::string& first) {
    Answers backend({{first, std::to_string(getpid())}}, rank);
    auto peers = std::make_unique<PeerProcesses>();
    peers->exchange(backend);
    return std::make_unique<WindowEngine>(Window(memory, 2), rank, std::move(peers), DataAccess{.reads_from_bytes = 0});
  };
  const auto first = engine_of(0, ""), second = engine_of(1, std::to_string(ended));
  const Tensor tensors[] = {Tensor::zeros({4096}), Tensor::zeros({4096})};
  const auto collective = [&](int rank) {
    const Tensor& tensor = tensors[rank];
    return Collective{.kind = CollectiveKind::broadcast,
                      .dtype = DType::f32,
                      .counts = {4096},
                      .input = tensor.raw_data(),
                      .output = Out(tensor).raw_data()};
  };
  const auto sending = first->start(collective(0)), receiving = second->start(collective(1));
  first->poll();
  const auto fault_of = [](const WindowOperation& operation) {
    return error_of([&] {
      if (operation.fault) std::rethrow_exception(operation.fault);
    });
  };
  CHECK_THAT(fault_of(*receiving), ContainsText("in the memory of rank 0") && ContainsText("No such process"));
  CHECK(fault_of(*sending) == "broadcast f32[4096] from rank 0: rank 1 failed in it");
}

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

TEST_CASE("shared memory: ranks on different machines are told so") {
  const auto memory = SharedMemory::create(4096);
  const std::string handle = memory->handle();
  const std::string elsewhere = handle.substr(0, handle.rfind(' ')) + " another-start";
  CHECK_THAT(error_of([&] { SharedMemory::open(elsewhere); }), ContainsText("the ranks are on different machines"));
}

TEST_CASE("shared memory: each rank takes the pages of its own part at once") {
  constexpr std::int64_t kPart = 16 * kPageBytes;
  const auto memory = SharedMemory::create(2 * kPart, {0, kPart});
  const std::string handle = memory->handle();
  std::int64_t process = 0, name_space = 0, file = 0;
  std::istringstream(handle) >> process >> name_space >> file;
  const auto bytes_taken = [&] {
    struct stat status{};
    REQUIRE(stat(fmt::format("/proc/self/fd/{}", file).c_str(), &status) == 0);
    return static_cast<std::int64_t>(status.st_blocks) * 512;
  };
  CHECK(bytes_taken() == kPart);
  const pid_t child = start_process([&] { return SharedMemory::open(handle, {kPart, kPart}) != nullptr ? 0 : 1; });
  CHECK(exit_code_of(child) == 0);
  CHECK(bytes_taken() == 2 * kPart);
}

TEST_CASE("shared memory: where tensors cannot share memory, they are plain ones, and a notice says why") {
  std::vector<std::string> lines;
  kernels::listen_to_notices([&](const std::string& line) { lines.push_back(line); });
  std::optional<LimitScope> limit;
  run_thread_ranks(2, [&](ProcessGroup& group) {
    group.barrier();
    if (group.rank() == 0) limit.emplace(RLIMIT_FSIZE, 1 << 16);
    group.barrier();
    const Tensor tensor = group.shared_zeros({1 << 16});
    Out(tensor).fill(1.0);
    group.all_reduce(Out(tensor));
    if (tensor.narrow(0, 65535, 1).item() != 2.0) fail("the sum is wrong");
    group.shared_zeros({(1 << 16) + 5000});  // says nothing more
  });
  limit.reset();
  kernels::listen_to_notices(kernels::print_notice);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines.front(), ContainsText("tensors share no memory between ranks, and take longer to reduce: "
                                         "rank 0: shared memory: 524288 bytes, and files may have 65536 (ulimit -f)"));
}

TEST_CASE("shared memory: sizes that no number holds are refused") {
  run_thread_ranks(2, [&](ProcessGroup& group) {
    const std::string text = error_of([&] { group.shared_zeros({std::int64_t{1} << 61, 2}); });
    if (text.find("has too many elements") == std::string::npos) fail("{}", text);
  });
}

TEST_CASE("available memory is what the machine has left, and every control group above this process") {
  const test::TemporaryDirectory folder;
  const std::string root = folder.path().string();
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  };
  CHECK(available_memory(root) == std::numeric_limits<std::int64_t>::max());
  write("/proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  4000 kB\nCached: 5 kB\n");
  CHECK(available_memory(root) == 4000 * 1024);
  SECTION("version 2: a batch system's limit lies above the process's own group, which has none") {
    write("/proc/self/cgroup", "0::/job_7/step_0\n");
    write("/sys/fs/cgroup/job_7/step_0/memory.max", "max\n");
    write("/sys/fs/cgroup/job_7/step_0/memory.current", "123456\n");
    CHECK(available_memory(root) == 4000 * 1024);
    write("/sys/fs/cgroup/job_7/memory.max", "1000000\n");
    write("/sys/fs/cgroup/job_7/memory.current", "600000\n");
    CHECK(available_memory(root) == 400000);
    write("/sys/fs/cgroup/job_7/memory.stat", "anon 1\ninactive_file 50000\nactive_file 1000\nslab_reclaimable 7\n");
    CHECK(available_memory(root) == 451007);
    write("/sys/fs/cgroup/memory.max", "2000\n");  // as a container sees its own
    CHECK(available_memory(root) == 2000);
    write("/sys/fs/cgroup/memory.current", "3000\n");
    CHECK(available_memory(root) == 0);
  }
  SECTION("version 1, whose group is at the root in a container") {
    write("/proc/self/cgroup", "12:cpu,cpuacct:/a\n9:hugetlb,memory:/a/b\n0::/a\n");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(available_memory(root) == 4000 * 1024);
    write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000\n");
    write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "700000\n");
    write("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
    CHECK(available_memory(root) == 300200);
  }
  SECTION("nonsense is as nothing") {
    write("/proc/meminfo", "");
    write("/proc/self/cgroup", "x\n0::\n:::\n");
    CHECK(available_memory(root) == std::numeric_limits<std::int64_t>::max());
  }
}

TEST_CASE("shared memory: one rank's obstacle is everybody's") {
  Answers second({{"", ""}, {"", "rank 1 cannot"}});
  const SharedByRanks shared = share_memory(second, 4096);
  CHECK(shared.memory == nullptr);
  CHECK(shared.obstacle == "rank 1: rank 1 cannot");
  Answers first({{"0 0 0 0 0 x", ""}, {"", ""}}, 1);
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
  WindowEngine engine(Window(SharedMemory::create(2 * Window::part_bytes(2)), 2), 0, std::move(peers));
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

TEST_CASE("shared memory: of several ranks that have ended the one is named that was the first") {
  const pid_t first = start_process([] { return pause(); }), second = start_process([] { return 0; });
  PeerProcesses peers;
  Answers backend({{std::to_string(first), std::to_string(second), ""}}, 2);
  peers.exchange(backend);
  exit_code_of(second);
  EndedPeer ended(peers, 2, 3);
  const auto looks = [&](int times, int awaited = -1) {
    int found = -1;
    for (int i = 0; i < times; ++i) found = ended.look([&](int rank) { return awaited < 0 || rank == awaited; });
    return found;
  };
  CHECK(looks(2000) == -1);  // not at once
  kill(first, SIGKILL);      // as one that ends because the other has
  exit_code_of(first);
  CHECK(peers.has_ended(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  CHECK(looks(2000) == 1);
  CHECK(ended.text_of(1) == fmt::format("rank 1 (process {}) has ended, and rank 2 waits for it", second));
  CHECK(looks(2000, 0) == -1);  // it waits for the other one alone since now
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  CHECK(looks(2000, 0) == 0);
}

#endif
