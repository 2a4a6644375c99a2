// A rank whose operation fails at once: what another host hears of it before its process ends.
#include "tandem/comm/doctor/heartbeat_frame.h"
#include "tandem/comm/doctor/host_links.h"
#include "tandem/comm/doctor/status_board.h"
#include "tandem/comm/doctor/watched_backend.h"
#include "tandem/core/error.h"
#include "tests/support/catch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kHere = 127u << 24 | 1;

/// Rank 0 of three, alone on its host. Ranks 1 and 2 are on another one, for which whoever is at the other end of
/// `socket` stands: it is told where this host listens, and answers by a byte when it has connected. Operations fail,
/// as those of a library do that sees a connection close.
class FailingBackend final : public Backend {
 public:
  explicit FailingBackend(int socket) : socket_(socket) {}
  std::string_view name() const override { return "failing"; }
  Place place() const override { return {.rank = 0, .size = 3, .local_rank = 0, .local_size = 1, .node = 0}; }
  std::unique_ptr<Work> start(const Collective&) override { fail("connection closed by peer"); }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("it does not part"); }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    const std::string own(mine);
    if (calls_++ == 0) return {own, "411 elsewhere elsewhere:1:1", "412 elsewhere elsewhere:1:1"};
    if (is_connected_) return {own, "0\n", "\n"};  // rank 1 has called host 0
    if (!own.ends_with(fmt::format(" {}", kHere))) return {own, own, own};
    char answer = 0;
    is_connected_ = ::write(socket_, own.data(), own.size()) == static_cast<ssize_t>(own.size()) &&
                    ::read(socket_, &answer, 1) == 1;
    return {own, "0 0", "0 0"};
  }

 private:
  int socket_, calls_ = 0;
  bool is_connected_ = false;
};

/// The process of rank 0: its exit code. It begins an operation when it has heard that rank 2 has ended.
int run_failing_rank(int socket) {
  try {
    std::string notice;
    const NetworkInterface interface{"lo", kHere, 8, true, true};
    const auto backend =
        watch(std::make_unique<FailingBackend>(socket), {.timeout = 60.0, .interface = interface}, notice);
    if (!notice.empty()) return 10;
    const auto has_heard = [] {
      return std::ranges::any_of(views_of_process(getpid()), [](const GroupView& group) {
        return group.ranks.size() == 3 && group.ranks[2].state == ProcessState::ended;
      });
    };
    for (int i = 0; i < 1000 && !has_heard(); ++i) std::this_thread::sleep_for(10ms);
    if (!has_heard()) return 11;
    backend->run({.kind = CollectiveKind::all_reduce, .dtype = DType::f32, .counts = {4}});
    return 12;
  } catch (const std::exception&) {
    return 13;
  }
}

RankView view_in(int rank, ProcessState state) {
  RankView view;
  view.rank = rank;
  view.state = state;
  return view;
}

std::string text_from(int file) {
  std::string text(1 << 14, '\0');
  const ssize_t count = ::read(file, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace

TEST_CASE("a rank whose operation fails tells other hosts what is wrong before its process ends") {
  int sockets[2] = {}, errors[2] = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  REQUIRE(::pipe2(errors, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    ::close(sockets[0]);
    ::dup2(errors[1], STDERR_FILENO);
    _exit(run_failing_rank(sockets[1]));
  }
  ::close(sockets[1]);
  ::close(errors[1]);
  std::istringstream meeting(text_from(sockets[0]));  // nothing where the child has ended
  std::uint64_t token = 0;
  int port = 0;
  meeting >> token >> port;
  bool has_heard = false;
  try {
    HostLink link = connect_link(kHere, port, 0, {token, 1}, 1000ms);
    CHECK(::write(sockets[0], "+", 1) == 1);
    std::string news = frame_of(encode_ranks({view_in(1, ProcessState::sleeps), view_in(2, ProcessState::ended)}));
    link.send(news);
    FrameReader reader;
    for (int i = 0; i < 20'000 && link.state() == HostLink::State::open; ++i) {
      link.receive(reader.buffer());
      while (const auto frame = reader.next())
        if (const auto ranks = decode_ranks(*frame))
          has_heard = has_heard || std::ranges::any_of(*ranks, &RankView::has_found_fault);
      std::this_thread::sleep_for(1ms);
    }
    CHECK(link.state() == HostLink::State::ended);
  } catch (const Error& error) {
    FAIL_CHECK(error.what());
  }
  ::close(sockets[0]);
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 300 && ended == 0; ++i) {
    ended = ::waitpid(child, &status, WNOHANG);
    std::this_thread::sleep_for(50ms);
  }
  if (ended == 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  const std::string told = text_from(errors[0]);
  ::close(errors[0]);
  CHECK(has_heard);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
  CHECK_THAT(told, ContainsText("error: rank 0: rank 2 (host elsewhere, pid 412, ended) has not entered all_reduce #1 "
                                "sum f32[4]; "));
}
