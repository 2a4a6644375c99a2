// Two hosts of one rank each that tell each other what they do, by connections within this machine.
#include "tandem/comm/doctor/heartbeats.h"

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/doctor/watchdog.h"
#include "tandem/comm/doctor/watched_backend.h"
#include "tandem/comm/launch/network_interface.h"
#include "tandem/core/error.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <sys/socket.h>

#include <atomic>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kHere = 127u << 24 | 1;
constexpr std::uint64_t kToken = 4711;

/// A rank of two, the other one being on another host. `exchanges`: counts them, of its subgroups as well.
class OneOfTwo final : public Backend {
 public:
  explicit OneOfTwo(int rank, int* exchanges = nullptr) : rank_(rank), exchanges_(exchanges) {}
  std::string_view name() const override { return "pair"; }
  Place place() const override { return {.rank = rank_, .size = 2, .local_rank = 0, .local_size = 1, .node = rank_}; }
  std::unique_ptr<Work> start(const Collective&) override { fail("not asked for"); }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override {
    return std::make_unique<OneOfTwo>(rank_, exchanges_);
  }
  /// First of all ranks tell who they are.
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    if (exchanges_ != nullptr) ++*exchanges_;
    std::vector<std::string> all(2, std::string(mine));
    if (calls_++ == 0) all[static_cast<std::size_t>(1 - rank_)] = "411 elsewhere elsewhere:1:1";
    return all;
  }

 private:
  int rank_, calls_ = 0;
  int* exchanges_;
};

std::shared_ptr<StatusBoard> board_of(int rank) {
  OneOfTwo backend(rank);
  return std::make_shared<StatusBoard>(backend, 30.0);
}

struct Ends {
  HostLink caller, called;
};

Ends connect_ends() {
  const LinkListener listener(kHere);
  HostLink caller = connect_link(kHere, listener.port(), kHere, {kToken, 1}, 1000ms);
  auto links = listener.accept(kToken, {1}, 1000ms);
  return {std::move(caller), std::move(links.at(1))};
}

std::vector<FarHost> only(std::vector<int> ranks, HostLink link) {
  std::vector<FarHost> hosts;
  hosts.push_back({std::move(ranks), std::move(link)});
  return hosts;
}

void beat_for(std::chrono::milliseconds time, std::initializer_list<Heartbeats*> all) {
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
    for (Heartbeats* const one : all) one->beat();
    std::this_thread::sleep_for(10ms);
  }
}

void show_sum(StatusBoard& board, std::uint64_t number) {
  RankStatus& mine = board.mine();
  mine.collectives[number % RankStatus::kCollectives].set(
      {.number = number, .kind = CollectiveKind::all_reduce, .dtype = DType::f32, .count = 65536});
  mine.started = number;
  mine.waits_for = 2 * number;
}

}  // namespace

TEST_CASE("ranks of another host are seen as those of this one, until they leave") {
  const auto here = board_of(0), there = board_of(1);
  CHECK(here->first_ranks() == std::vector{0, 1});
  CHECK_FALSE(here->look().ranks[1].is_known);
  auto [caller, called] = connect_ends();
  Heartbeats low(here, only({1}, std::move(called)));
  auto high = std::make_unique<Heartbeats>(there, only({0}, std::move(caller)));
  there->mine().finished = 6;
  there->mine().activity.set("backward conv2d");
  show_sum(*there, 7);
  beat_for(400ms, {&low, high.get()});
  RankView view = here->look().ranks[1];
  CHECK((view.is_known && view.is_far && !view.is_inferred));
  CHECK(view.host == "elsewhere");
  CHECK(view.process == 411);
  CHECK(describe(view.waits_for) == "all_reduce #7 sum f32[65536]");
  CHECK(view.finished == 6);
  CHECK(view.activity == "backward conv2d");
  CHECK((view.state == ProcessState::runs || view.state == ProcessState::sleeps));
  CHECK(view.heard_ago < 0.3);
  CHECK(there->look().ranks[0].is_far);

  show_sum(*there, 8);
  there->mine().end = RankEnd::left;
  there->mine().waits_for = 0;
  beat_for(100ms, {&low});  // what the other one has not read
  high->finish();
  high.reset();
  beat_for(100ms, {&low});
  view = here->look().ranks[1];
  CHECK(view.end == RankEnd::left);
  CHECK(view.started == 8);
}

TEST_CASE("a rank of another host whose connection closes has ended") {
  const auto here = board_of(0), there = board_of(1);
  auto [caller, called] = connect_ends();
  Heartbeats low(here, only({1}, std::move(called)));
  {
    const Heartbeats high(there, only({0}, std::move(caller)));
  }  // says that it is there, and is gone
  show_sum(*here, 1);
  beat_for(100ms, {&low});
  const GroupView group = here->look();
  CHECK(group.ranks[1].state == ProcessState::ended);
  const auto fault = find_fault(group);
  REQUIRE(fault);
  CHECK_FALSE(fault->is_final);  // that it has left may be under way
  CHECK_THAT(fault->cause,
             ContainsText("rank 1 (host elsewhere, pid 411, ended) did not end all_reduce #1 sum f32[65536]; 0."));
  CHECK_THAT(fault->cause, ContainsText(" s ago, when it was last heard of, it had finished no collective yet"));
}

TEST_CASE("a connection that is reset after a silence is not the end of a process") {
  const auto here = board_of(0), there = board_of(1);
  auto [caller, called] = connect_ends();
  Heartbeats low(here, only({1}, std::move(called)));
  {
    const Heartbeats high(there, only({0}, std::move(caller)));
    beat_for(1700ms, {&low});
  }  // which has not read what has come
  beat_for(100ms, {&low});
  CHECK(here->look().ranks[1].state != ProcessState::ended);
}

TEST_CASE("a connection that is finished ends, and is not reset; an end that is dropped with bytes in it is") {
  const std::string greeting = "a few bytes";
  for (const bool finishes : {true, false}) {
    const std::size_t before = HostLink::open_links();
    auto [caller, called] = connect_ends();
    CHECK(HostLink::open_links() == before + 2);
    std::string bytes = greeting, come;
    caller.send(bytes);
    std::this_thread::sleep_for(50ms);
    if (finishes) called.finish();
    {
      const HostLink dropped = std::move(called);
    }
    std::this_thread::sleep_for(50ms);
    caller.receive(come);
    CHECK(caller.state() == HostLink::State::ended);
    CHECK(caller.was_reset() == !finishes);
    CHECK(HostLink::open_links() == before);
  }
}

TEST_CASE("a rank whose host answers for it, and that says nothing, does not run, until it does") {
  const auto here = board_of(0), there = board_of(1);
  auto [caller, called] = connect_ends();
  Heartbeats low(here, only({1}, std::move(called)));
  Heartbeats high(there, only({0}, std::move(caller)));
  beat_for(2200ms, {&low});
  RankView view = here->look().ranks[1];
  CHECK(view.state == ProcessState::halted);
  CHECK((view.is_known && view.is_inferred));
  CHECK(view.heard_ago > 1.5);
  beat_for(400ms, {&low, &high});
  view = here->look().ranks[1];
  CHECK(view.state != ProcessState::halted);
  CHECK_FALSE(view.is_inferred);
}

TEST_CASE("what others send is ignored: noise, ranks that are not theirs, and those without the token") {
  const auto here = board_of(0);
  auto [caller, called] = connect_ends();
  Heartbeats low(here, only({1}, std::move(called)));
  RankView own;
  own.rank = 0;
  own.finished = 99;
  RankView beyond = own;
  beyond.rank = 1 << 30;
  std::string bytes = frame_of("noise") + frame_of(encode_ranks({own, beyond})) + "GET / HTTP/1.1\r\n\r\n";
  caller.send(bytes);
  beat_for(100ms, {&low});
  CHECK(here->mine().finished == 0);
  CHECK_FALSE(here->look().ranks[1].is_known);

  const LinkListener listener(kHere);
  const auto call = [&](const LinkKey& key) { return connect_link(kHere, listener.port(), 0, key, 500ms); };
  HostLink wrong_token = call({kToken + 1, 1}), unexpected = call({kToken, 2}), good = call({kToken, 1}),
           again = call({kToken, 1});
  const auto links = listener.accept(kToken, {1, 3}, 300ms);
  CHECK(links.size() == 1);
  CHECK(links.contains(1));
  std::string rest;
  for (HostLink* const link : {&wrong_token, &unexpected, &again}) {
    link->receive(rest);
    CHECK(link->state() == HostLink::State::ended);
  }
  good.receive(rest);
  CHECK(good.state() == HostLink::State::open);
}

namespace {

/// Takes frames from a connection until there are `count`, doing `meanwhile` in between; for some seconds.
template <typename Meanwhile>
std::vector<std::string> frames_from(HostLink& link, FrameReader& reader, std::size_t count, Meanwhile&& meanwhile) {
  std::vector<std::string> frames;
  for (int i = 0; i < 5000 && frames.size() < count; ++i) {
    link.receive(reader.buffer());
    while (auto frame = reader.next()) frames.push_back(*std::move(frame));
    meanwhile();
    std::this_thread::sleep_for(1ms);
  }
  return frames;
}

RankView only_rank_of(const std::string& frame) {
  const auto ranks = decode_ranks(frame);
  REQUIRE((ranks && ranks->size() == 1));
  return ranks->front();
}

}  // namespace

TEST_CASE("what is told goes whole and in its order behind a frame of which a part has not gone yet") {
  const auto there = board_of(1);
  int ends[2] = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const int buffer_bytes = 1 << 16;
  REQUIRE(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes) == 0);
  HostLink far(ends[1]);
  const std::string large(FrameReader::kMostBytes, 'x');
  auto hosts = only({0}, HostLink(ends[0]));
  hosts.front().unsent = frame_of(large);
  Heartbeats high(there, std::move(hosts));  // sends the part that goes
  show_sum(*there, 7);
  there->mine().has_found_fault = 1;
  high.tell();
  there->mine().has_found_fault = 0;
  there->mine().end = RankEnd::left;
  high.tell();

  FrameReader reader;
  for (std::size_t before = 1; before != reader.buffer().size();) {
    before = reader.buffer().size();
    far.receive(reader.buffer());
  }
  CHECK(!reader.buffer().empty());
  REQUIRE_FALSE(reader.next());  // the connection was full
  const std::vector<std::string> frames = frames_from(far, reader, 3, [&] { high.beat(); });
  REQUIRE(frames.size() == 3);
  CHECK(frames[0] == large);
  const RankView first = only_rank_of(frames[1]), second = only_rank_of(frames[2]);
  CHECK((first.has_found_fault && first.end == RankEnd::none));
  CHECK(first.started == 7);
  CHECK((!second.has_found_fault && second.end == RankEnd::left));

  {
    const HostLink dropped = std::move(far);
  }
  high.tell();  // no signal
  high.beat();
  high.finish();
}

TEST_CASE("a watchdog tells other hosts what its rank reports, then this one, in the words of the report") {
  const auto there = board_of(1);
  auto [caller, called] = connect_ends();
  std::atomic<int> calls = 0;
  std::string cause;
  bool had_heard = false;
  HostLink& far = called;
  FrameReader reader;
  Watchdog watchdog(there, std::make_unique<Heartbeats>(there, only({0}, std::move(caller))), 0.0,
                    [&](const GroupView& group, const Diagnosis& diagnosis, bool) {
                      cause = diagnosis.cause;
                      // No more comes while this goes on.
                      for (int i = 0; i < 2000 && !had_heard; ++i) {
                        far.receive(reader.buffer());
                        while (const auto frame = reader.next())
                          if (const auto ranks = decode_ranks(*frame))
                            had_heard = had_heard || ranks->front().has_found_fault;
                        std::this_thread::sleep_for(1ms);
                      }
                      had_heard = had_heard && group.ranks.size() == 2;
                      ++calls;
                    });
  const GroupView group = there->look();
  CHECK_FALSE(find_fault(group));
  watchdog.report(group, {.cause = "the first one"});
  watchdog.report(group, {.cause = "another one"});
  for (int i = 0; i < 500 && calls == 0; ++i) std::this_thread::sleep_for(10ms);
  REQUIRE(calls == 1);
  CHECK(cause == "the first one");
  CHECK(had_heard);
  watchdog.report(group, {.cause = "too late"});
  std::this_thread::sleep_for(200ms);
  CHECK(calls == 1);
}

TEST_CASE("a host that cannot be connected is an error in time") {
  int port = 0;
  {
    const LinkListener listener(kHere);
    port = listener.port();
  }
  CHECK_THAT(error_of([&] { connect_link(kHere, port, 0, {kToken, 1}, 500ms); }),
             ContainsText(fmt::format("no connection to 127.0.0.1:{}: Connection refused", port)));
  CHECK_THAT(error_of([] { const LinkListener elsewhere(8u << 24 | 8); }), ContainsText("8.0.0.8 cannot be used"));
}

TEST_CASE("of another host's addresses those in a common network are tried first, and own ones never") {
  constexpr std::uint32_t kBridge = 172u << 24 | 17u << 16 | 1, kFar = 192u << 24 | 1, kNear = 10u << 24 | 2;
  const std::vector<NetworkInterface> ours{
      {"lo", kHere, 8, true, true}, {"eth0", 10u << 24 | 1, 24, true}, {"docker0", kBridge, 16, true}};
  CHECK(addresses_to_try(std::vector{kBridge, kFar, kNear}, ours) == std::vector{kNear, kFar});
}

TEST_CASE("where hosts cannot be connected a notice says so, and ranks of others stay unknown") {
  const auto there = board_of(1);
  OneOfTwo backend(1);
  backend.all_gather_bytes("");  // who they are
  std::string obstacle;
  CHECK(make_heartbeats(backend, there, {}, obstacle) == nullptr);  // each host has this one's addresses
  const std::string why =
      fmt::format("from host {} to that of rank 0: it has no address that leads there", host_name());
  CHECK(obstacle == why);
  CHECK_FALSE(there->look().ranks[0].is_known);

  std::string notice;
  int exchanges = 0;
  const auto watched = watch(std::make_unique<OneOfTwo>(1, &exchanges), {}, notice);
  CHECK(notice ==
        "some hosts do not see what ranks of others do, nor that it may take long (a longer timeout lets them wait): " +
            why);
  const int of_group = exchanges;
  constexpr int kToConnect = 2;
  const std::vector<int> members{0, 1};
  const auto part = watched->subgroup(members);
  CHECK(exchanges == 2 * of_group - kToConnect);  // hosts are not tried again
}

TEST_CASE("what heartbeats cost", "[.timing]") {
  const auto here = board_of(0), there = board_of(1);
  auto [caller, called] = connect_ends();
  Heartbeats low(here, only({1}, std::move(called))), high(there, only({0}, std::move(caller)));
  for (std::uint64_t number = 1; number <= 64; ++number) show_sum(*there, number);
  constexpr int kTimes = 2000;
  const auto seconds = [&](const auto& body) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double idle = seconds([&] { low.beat(); });
  double both = 0.0;
  for (int round = 0; round < 10; ++round) both += seconds([&] { high.tell(), low.beat(); }) / 10.0;
  WARN("a look for news " << idle / kTimes * 1e6 << " us, sending one rank and taking it in " << both / kTimes * 1e6
                          << " us; " << frame_of(encode_ranks(there->look_here())).size() << " bytes");
  CHECK(here->look().ranks[1].is_known);
}
