// Asking, answering, telling; then timing pair by pair.
#include "tandem/comm/transports/connectivity.h"

#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/doctor/fixed_text.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace tandem::comm {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

enum Tag : int { kAsk = 1, kAnswer, kTell, kCommand, kShots, kShot, kResult };

constexpr std::chrono::microseconds kBetweenLooks{200};

/// What a rank has found, as it is sent: so many bytes for each rank.
struct RankNote {
  char host[56];
  std::int32_t place;
  std::int32_t reach;
};

/// All messages with one other rank. Errors of the transport count as no answer.
struct Peer {
  RankNote sent{}, received{};  // with the question, who asks
  std::byte answer_sent{}, answer_received{};
  std::vector<RankNote> row;
  std::unique_ptr<Transfer> asks, is_asked, answers, is_answered, tells, is_told;
  bool fails = false;

  bool has_come(std::unique_ptr<Transfer>& transfer) {
    if (!transfer || fails) return false;
    try {
      return transfer->done();
    } catch (const std::exception&) {
      fails = true;
      return false;
    }
  }
};

/// The first part: whom each rank reaches. Lives on where messages are left over.
class Question {
 public:
  Question(std::shared_ptr<Transport> transport, const ProbedRank& mine, const ProbeOptions& options)
      : transport_(std::move(transport)), mine_(mine), options_(options), peers_(static_cast<std::size_t>(mine.size)) {
    own_row_.resize(peers_.size());
    RankNote& own = own_row_[static_cast<std::size_t>(mine.rank)];
    copy_text(mine.host, own.host);
    own.place = mine.place;
    own.reach = static_cast<std::int32_t>(Reach::yes);
  }

  Connectivity ask() {
    for_others([&](int rank, Peer& peer) {
      peer.sent = own_row_[static_cast<std::size_t>(mine_.rank)];
      peer.row.resize(peers_.size());
      peer.is_asked = transport_->receive(rank, kAsk, &peer.received, sizeof peer.received);
      peer.is_answered = transport_->receive(rank, kAnswer, &peer.answer_received, 1);
      peer.is_told = transport_->receive(rank, kTell, peer.row.data(), row_bytes());
      peer.asks = transport_->send(rank, kAsk, &peer.sent, sizeof peer.sent);
    });
    wait_until(options_.deadline, [&] { return all_others([&](Peer& peer) { return hears(peer); }); });
    for (int rank = 0; rank < mine_.size; ++rank)
      if (rank != mine_.rank)
        own_row_[static_cast<std::size_t>(rank)] = note_of(peers_[static_cast<std::size_t>(rank)]);
    for_others([&](int rank, Peer& peer) { peer.tells = transport_->send(rank, kTell, own_row_.data(), row_bytes()); });
    // Those that still wait for an answer tell later.
    wait_until(options_.deadline + kForRows,
               [&] { return all_others([&](Peer& peer) { return !hears(peer) || peer.has_come(peer.is_told); }); });
    Connectivity all = gather();
    // Of ranks that reach each other, messages are soon done.
    if (all.is_complete())
      wait_until(options_.deadline, [&] {
        return all_others([&](Peer& peer) {
          return peer.has_come(peer.asks) && peer.has_come(peer.answers) && peer.has_come(peer.tells);
        });
      });
    return all;
  }

 private:
  static constexpr std::chrono::milliseconds kForRows{1500};

  std::int64_t row_bytes() const { return static_cast<std::int64_t>(own_row_.size() * sizeof(RankNote)); }

  template <typename Body>
  void for_others(const Body& body) {
    for (int rank = 0; rank < mine_.size; ++rank) {
      if (rank == mine_.rank) continue;
      Peer& peer = peers_[static_cast<std::size_t>(rank)];
      if (peer.fails) continue;
      try {
        body(rank, peer);
      } catch (const std::exception&) {
        peer.fails = true;
      }
    }
  }
  template <typename Condition>
  bool all_others(const Condition& is_so) {
    bool all = true;  // each is looked at: that moves it on
    for (int rank = 0; rank < mine_.size; ++rank)
      if (rank != mine_.rank) all = is_so(peers_[static_cast<std::size_t>(rank)]) && all;
    return all;
  }
  template <typename Condition>
  static void wait_until(std::chrono::milliseconds limit, const Condition& is_so) {
    const Clock::time_point end = Clock::now() + limit;
    while (!is_so() && Clock::now() < end) std::this_thread::sleep_for(kBetweenLooks);
  }

  /// Answers what is asked; whether the other one has asked and answered.
  bool hears(Peer& peer) {
    const bool is_asked = peer.has_come(peer.is_asked);
    if (is_asked && !peer.answers) {
      const auto rank = static_cast<int>(&peer - peers_.data());
      try {
        peer.answers = transport_->send(rank, kAnswer, &peer.answer_sent, 1);
      } catch (const std::exception&) {
        peer.fails = true;
      }
    }
    return peer.has_come(peer.is_answered) && is_asked;
  }

  RankNote note_of(Peer& peer) {
    const bool is_there = hears(peer);
    RankNote note = is_there ? peer.received : RankNote{.host = {}, .place = -1, .reach = 0};
    note.reach = static_cast<std::int32_t>(is_there ? Reach::yes : Reach::no);
    return note;
  }

  Connectivity gather() {
    Connectivity all{.rank = mine_.rank,
                     .hosts = std::vector<std::string>(peers_.size()),
                     .places = std::vector<int>(peers_.size(), -1),
                     .reaches = std::vector(peers_.size(), std::vector(peers_.size(), Reach::unknown)),
                     .measured = {},
                     .speeds = {}};
    for (int rank = 0; rank < mine_.size; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      Peer& peer = peers_[at];
      const bool is_own = rank == mine_.rank;
      if (!is_own && !peer.has_come(peer.is_told)) continue;
      const std::vector<RankNote>& row = is_own ? own_row_ : peer.row;
      for (std::size_t other = 0; other < row.size(); ++other) {
        const auto reach = static_cast<Reach>(row[other].reach);
        // Messages go both ways: what one of both misses, is missing.
        for (Reach* const known : {&all.reaches[at][other], &all.reaches[other][at]})
          if (*known != Reach::no) *known = reach;
        if (reach != Reach::yes || !all.hosts[other].empty()) continue;
        all.hosts[other] = text_in(row[other].host);
        all.places[other] = row[other].place;
      }
    }
    return all;
  }

  std::shared_ptr<Transport> transport_;
  ProbedRank mine_;
  ProbeOptions options_;
  std::vector<Peer> peers_;
  std::vector<RankNote> own_row_;
};

/// The second part. Rank 0 says whose turn it is; the others sleep between their turns.
class SpeedTest {
 public:
  SpeedTest(Transport& transport, int rank, const ProbeOptions& options)
      : transport_(transport), rank_(rank), options_(options), buffer_(kLarge) {}

  void conduct(Connectivity& all) {
    const std::size_t count = all.measured.size();
    all.speeds.assign(count, std::vector<PairSpeed>(count));
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = a + 1; b < count; ++b)
        all.speeds[a][b] = all.speeds[b][a] = time_pair(all.measured[a], all.measured[b]);
    for (int rank = 1; rank < all.size(); ++rank) command(rank, {kStop, 0});
  }

  void obey() {
    while (true) {
      Command given{};
      wait_for(*transport_.receive(0, kCommand, &given, sizeof given), 0, kLongest);
      if (given.what == kStop) return;
      if (given.what == kReply) {
        reply(given.peer);
        continue;
      }
      const PairSpeed speed = shoot(given.peer);
      wait_for(*transport_.send(0, kResult, &speed, sizeof speed), 0, options_.deadline);
    }
  }

 private:
  enum What : std::int32_t { kStop, kReply, kShoot };
  struct Command {
    std::int32_t what, peer;
  };
  struct Shots {
    std::int64_t bytes, count;
  };
  static constexpr std::int64_t kLarge = 1 << 20, kMiddle = 1 << 16;
  static constexpr Shots kSmallShots{8, 30};
  static constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24);  // while others have their turns

  void command(int rank, const Command& given) {
    wait_for(*transport_.send(rank, kCommand, &given, sizeof given), rank, options_.deadline);
  }

  PairSpeed time_pair(int a, int b) {
    command(b, {kReply, a});
    if (a == 0) return shoot(b);
    command(a, {kShoot, b});
    PairSpeed speed;
    wait_for(*transport_.receive(a, kResult, &speed, sizeof speed), a, kLongest);
    return speed;
  }

  /// `rests`: gives the core away between looks, which a small message would be timed by.
  void wait_for(Transfer& transfer, int rank, std::chrono::milliseconds limit, bool rests = true) {
    const Clock::time_point begin = Clock::now();
    while (!transfer.done()) {
      const auto waited = Clock::now() - begin;
      require(waited < limit, "rank {} has answered rank {} before, and no longer does", rank, rank_);
      if (rests)
        std::this_thread::sleep_for(kBetweenLooks);
      else
        std::this_thread::yield();
    }
  }

  void throw_ball(int peer, std::int64_t bytes) {
    wait_for(*transport_.send(peer, kShot, buffer_.data(), bytes), peer, options_.deadline * 10, false);
  }
  void catch_ball(int peer, std::int64_t bytes) {
    wait_for(*transport_.receive(peer, kShot, buffer_.data(), bytes), peer, options_.deadline * 10, false);
  }

  /// Seconds one way, the least of several.
  double time_shots(int peer, const Shots& shots) {
    wait_for(*transport_.send(peer, kShots, &shots, sizeof shots), peer, options_.deadline);
    Seconds least = Seconds::max();
    for (std::int64_t i = 0; i < shots.count; ++i) {
      const Clock::time_point begin = Clock::now();
      throw_ball(peer, shots.bytes);
      catch_ball(peer, shots.bytes);
      least = std::min<Seconds>(least, Clock::now() - begin);
    }
    return least.count() / 2.0;
  }

  PairSpeed shoot(int peer) {
    constexpr double kShort = 5e-3;
    const double latency = time_shots(peer, kSmallShots);
    double bytes = kMiddle, seconds = time_shots(peer, {kMiddle, 3});
    if (seconds < kShort) bytes = kLarge, seconds = time_shots(peer, {kLarge, 5});
    wait_for(*transport_.send(peer, kShots, &kNoShots, sizeof kNoShots), peer, options_.deadline);
    return {latency, bytes / std::max(seconds, 1e-9)};
  }

  void reply(int peer) {
    while (true) {
      Shots shots{};
      wait_for(*transport_.receive(peer, kShots, &shots, sizeof shots), peer, options_.deadline * 10);
      if (shots.count == 0) return;
      for (std::int64_t i = 0; i < shots.count; ++i) {
        catch_ball(peer, std::clamp<std::int64_t>(shots.bytes, 1, kLarge));
        throw_ball(peer, std::clamp<std::int64_t>(shots.bytes, 1, kLarge));
      }
    }
  }
  static constexpr Shots kNoShots{0, 0};

  Transport& transport_;
  int rank_;
  ProbeOptions options_;
  std::vector<std::byte> buffer_;
};

std::vector<int> ranks_to_measure(const Connectivity& all, const ProbeOptions& options) {
  std::vector<int> ranks;
  for (int rank = 0; rank < all.size(); ++rank)
    if (all.size() <= options.most_ranks || all.places[static_cast<std::size_t>(rank)] == 0) ranks.push_back(rank);
  return ranks;
}

}  // namespace

bool Connectivity::is_complete() const {
  return std::ranges::all_of(reaches, [](const std::vector<Reach>& row) {
    return std::ranges::all_of(row, [](Reach reach) { return reach == Reach::yes; });
  });
}

Connectivity probe_connectivity(const std::shared_ptr<Transport>& transport, const ProbedRank& mine,
                                const ProbeOptions& options) {
  const auto question = std::make_shared<Question>(transport, mine, options);
  Connectivity all = question->ask();
  if (!all.is_complete()) {
    detail::keep_for_ever(question);
    return all;
  }
  SpeedTest test(*transport, mine.rank, options);
  if (mine.rank != 0) {
    test.obey();
    return all;
  }
  all.measured = ranks_to_measure(all, options);
  test.conduct(all);
  return all;
}

}  // namespace tandem::comm
