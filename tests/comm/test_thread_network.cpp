// Messages between threads: who may touch their memory, and until when.
#include "tandem/comm/transports/threads/thread_network.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("a sender that gives a message up has its memory back, even where somebody is just copying it") {
  constexpr std::int64_t kBytes = 1 << 18;
  std::vector<unsigned char> sent(kBytes), received(kBytes);
  int copied = 0, withdrawn = 0;
  for (int round = 0; round < 200; ++round) {
    const ThreadNetwork network;
    const auto sender = network.transport(0), receiver = network.transport(1);
    std::ranges::fill(sent, 1);
    std::ranges::fill(received, 0);
    std::atomic<bool> gave_up = false;
    {
      auto sending = sender->send(1, 0, sent.data(), kBytes);
      std::jthread other([&] {
        const auto receiving = receiver->receive(0, 0, received.data(), kBytes);
        while (!receiving->done())
          if (gave_up) return;
      });
      for (int pause = 0; pause < round; ++pause) std::this_thread::yield();
      sending.reset();
      std::ranges::fill(sent, 2);
      gave_up = true;
    }
    const bool is_there = received.front() != 0;
    ++(is_there ? copied : withdrawn);
    CHECK(std::ranges::all_of(received, [&](unsigned char byte) { return byte == (is_there ? 1 : 0); }));
  }
  INFO(copied << " copied, " << withdrawn << " given up");
  CHECK(copied + withdrawn == 200);
}

TEST_CASE("a message of another size is refused, and its sender goes on") {
  const ThreadNetwork network;
  const auto sender = network.transport(0), receiver = network.transport(1);
  const std::vector<char> sent(8);
  std::vector<char> received(9);
  const auto sending = sender->send(1, 3, sent.data(), 8);
  CHECK_FALSE(sending->done());
  const auto receiving = receiver->receive(0, 3, received.data(), 9);
  CHECK_THAT(error_of([&] { receiving->done(); }),
             ContainsText("a message of 8 bytes from rank 0, and rank 1 expects 9"));
  CHECK(sending->done());
}
