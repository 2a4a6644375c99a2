// What ranks show, as bytes: whole, cut, changed and made up.
#include "tandem/comm/doctor/heartbeat_frame.h"

#include "tests/support/catch.h"

#include <random>

using namespace tandem;
using namespace tandem::comm;

namespace {

RankView some_rank(int rank) {
  RankView view;
  view.rank = rank;
  view.is_known = true;
  view.state = ProcessState::stopped;
  view.end = RankEnd::failed;
  view.started = 1042;
  view.finished = 1041;
  view.finished_ago = 2.5;
  view.is_waiting = true;
  view.waits_for = {.number = 1042,
                    .kind = CollectiveKind::reduce,
                    .dtype = DType::bf16,
                    .op = ReduceOp::max,
                    .peer = 3,
                    .tag = 7,
                    .count = 65536};
  view.waiting_time = 1.25;
  view.step = "step 2 of ring, for rank 3";
  view.is_in_long_work = true;
  view.has_found_fault = true;
  view.waits_elsewhere = true;
  view.activity = "backward conv2d [64, 16, 32, 32]";
  for (std::uint64_t number = 1020; number <= 1042; ++number)
    view.collectives.push_back({.number = number, .kind = CollectiveKind::all_reduce, .count = 4});
  view.messages = {{.number = 9, .kind = CollectiveKind::receive, .peer = 1, .count = 12}};
  return view;
}

}  // namespace

TEST_CASE("what ranks show is the same behind the network, with their last operations") {
  const auto ranks = decode_ranks(encode_ranks({some_rank(2), RankView()}));
  REQUIRE(ranks);
  REQUIRE(ranks->size() == 2);
  const RankView sent = some_rank(2);
  const RankView& view = ranks->front();
  CHECK((view.is_known && view.is_far && !view.is_inferred));
  CHECK(view.rank == 2);
  CHECK(view.state == ProcessState::stopped);
  CHECK(view.end == RankEnd::failed);
  CHECK(view.started == 1042);
  CHECK(view.finished == 1041);
  CHECK(view.finished_ago == 2.5);
  CHECK(view.is_waiting);
  CHECK(describe(view.waits_for) == describe(sent.waits_for));
  CHECK(view.waits_for.tag == 7);
  CHECK(view.waiting_time == 1.25);
  CHECK(view.step == sent.step);
  CHECK(view.activity == sent.activity);
  CHECK(view.is_in_long_work);
  CHECK(view.has_found_fault);
  CHECK(view.waits_elsewhere);
  REQUIRE(view.collectives.size() == 16);
  CHECK(view.collectives.front().number == 1027);
  CHECK(view.collectives.back().fits(sent.collectives.back()));
  REQUIRE(view.messages.size() == 1);
  CHECK(describe(view.messages.front()) == describe(sent.messages.front()));
  CHECK_FALSE(ranks->back().is_waiting);
  CHECK(decode_ranks(encode_ranks({}))->empty());
}

TEST_CASE("texts that are too long are cut on their way") {
  RankView view = some_rank(0);
  view.activity = std::string(300, 'a');
  const auto ranks = decode_ranks(encode_ranks({view}));
  REQUIRE(ranks);
  CHECK(ranks->front().activity == std::string(96, 'a'));
}

TEST_CASE("bytes that are not what ranks show are told apart, or are harmless") {
  const std::string good = encode_ranks({some_rank(2)});
  for (std::size_t size = 0; size < good.size(); ++size) CHECK_FALSE(decode_ranks(good.substr(0, size)));
  CHECK_FALSE(decode_ranks(good + '\0'));
  std::mt19937 random(1);
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int change : {1, 128, 255}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ change);
      const auto ranks = decode_ranks(bad);
      if (!ranks) ++refused;
      for (const RankView& view : ranks.value_or(std::vector<RankView>())) {
        CHECK((view.rank >= 0 && view.finished_ago >= 0.0 && view.waiting_time >= 0.0));
        CHECK(view.collectives.size() <= 16);
        CHECK_FALSE(describe(view.waits_for).empty());
      }
    }
  CHECK(refused > 50);
  for (int i = 0; i < 2000; ++i) {
    std::string noise(random() % 300, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    CHECK_FALSE(decode_ranks(noise));
  }
  std::string many = encode_ranks({});
  many[4] = many[5] = many[6] = many[7] = '\xff';  // four thousand million ranks
  CHECK_FALSE(decode_ranks(many));
}

TEST_CASE("frames come in pieces, and what is no frame is the end of all") {
  FrameReader reader;
  const std::string both = frame_of("one") + frame_of("") + frame_of("three");
  std::vector<std::string> frames;
  for (const char byte : both) {
    reader.buffer() += byte;
    while (const auto frame = reader.next()) frames.push_back(*frame);
  }
  CHECK(frames == std::vector<std::string>{"one", "", "three"});
  CHECK_FALSE(reader.is_broken());
  reader.buffer() += "GET / HTTP/1.1\r\n";
  CHECK_FALSE(reader.next());
  CHECK(reader.is_broken());
  reader.buffer() += frame_of("late");
  CHECK_FALSE(reader.next());
}
