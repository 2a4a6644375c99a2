// What a simulated network is told in words.
#include "tandem/comm/transports/simulated/network_model.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem::comm;
using tandem::test::error_of;

TEST_CASE("a network is told in words") {
  const NetworkModel model = parse_network_model(
      " alpha=50us,beta=10Gbit local-alpha=0.5us local-beta=2GiB hosts=8x4 link=shared jitter=1ms seed=7 lose=3-4@2ms "
      "lose=0-31 ");
  CHECK(model.between_hosts.latency == Approx(50e-6));
  CHECK(model.between_hosts.bytes_per_second == 1.25e9);
  CHECK(model.within_host == LinkModel{0.5e-6, 2147483648.0});
  CHECK((model.hosts == 8 && model.ranks_per_host == 4 && model.ranks() == 32));
  CHECK(model.is_link_shared);
  CHECK((model.jitter == 1e-3 && model.seed == 7));
  CHECK(model.lost == std::vector<LostLink>{{3, 4, 2e-3}, {0, 31, 0.0}});
  CHECK(model.node_of_rank()[31] == 7);
  CHECK((model.is_within_host(4, 7) && !model.is_within_host(3, 4)));
  CHECK(&model.link(0, 3) == &model.within_host);
  CHECK(&model.link(0, 4) == &model.between_hosts);
  CHECK(model.between_hosts.time(1250) == Approx(51e-6));
}

TEST_CASE("what is not told is usual, and the text of a network gives it again") {
  CHECK(parse_network_model("") == NetworkModel{});
  CHECK(parse_network_model("hosts=16").ranks() == 16);
  for (const std::string text : {"", "alpha=1ns beta=1bit", "hosts=3x5 link=shared", "local-beta=0.25KB local-alpha=1s",
                                 "hosts=4 jitter=3us seed=18446744073709551615 lose=1-2@3ns lose=2-1",
                                 "alpha=0.00001ns local-alpha=0.00000000012345ns beta=10000000000000TB"}) {
    const NetworkModel model = parse_network_model(text);
    CHECK(parse_network_model(to_text(model)) == model);
  }
  CHECK(to_text(parse_network_model("hosts=2 alpha=50us beta=10Gbit")) ==
        "alpha=50us beta=1.25GB local-alpha=2us local-beta=4GB hosts=2x1");
}

TEST_CASE("words that describe no network are refused, and named") {
  const auto refusal = [](const std::string& text) { return error_of([&] { parse_network_model(text); }); };
  CHECK(refusal("alpha") == "network: 'alpha' has no '='; write it as alpha=50us beta=10Gbit hosts=8x8");
  CHECK(refusal("alfa=1us") ==
        "network: unknown word 'alfa' (choices: alpha, beta, local-alpha, local-beta, hosts, "
        "link, jitter, seed, lose)");
  CHECK(refusal("alpha=50") == "network: alpha=50 is no time; write it as 50us, with ns, us, ms or s");
  CHECK(refusal("alpha=us") == "network: alpha=us does not begin with a number");
  CHECK(refusal("alpha=-1us") == "network: alpha=-1us does not begin with a number");
  CHECK(refusal("alpha=1.2.3us") == "network: alpha=1.2.3us does not begin with a number");
  CHECK(refusal("alpha=1eus") == "network: alpha=1eus is no time; write it as 50us, with ns, us, ms or s");
  CHECK(refusal("beta=10") == "network: beta=10 is no bandwidth; write it as 10Gbit or 1.25GB (per second)");
  CHECK(refusal("beta=10gb") == "network: beta=10gb is no bandwidth; write it as 10Gbit or 1.25GB (per second)");
  CHECK(refusal("alpha=1000001s") == "network: alpha=1000001s must be at most 1000000 s");
  for (const std::string word : {"beta=0GB", "beta=0.9bit"})
    CHECK(refusal(word) == "network: " + word + " must be 1bit (per second) or more, and finite");
  CHECK(refusal("hosts=0") == "network: hosts=0: '0' is no whole number from 1 to 4096");
  CHECK(refusal("hosts=8x") == "network: hosts=8x: '' is no whole number from 1 to 4096");
  CHECK(refusal("hosts=65x64") == "network: hosts=65x64 are more than 4096 ranks");
  CHECK(refusal("link=mine") == "network: link=mine is neither shared nor own");
  CHECK(refusal("lose=3") == "network: lose=3 names no two ranks; write it as 3-4 or 3-4@2ms");
  CHECK(refusal("lose=3-3") == "network: lose=3-3: a rank sends nothing to itself");
  CHECK(refusal("hosts=2 lose=1-2") == "network: lose=1-2 names a rank beyond the 2 of hosts=2x1");
  CHECK(refusal("alpha=1us beta=1GB alpha=1us") == "network: alpha is given twice; leave one out");
  CHECK(refusal("seed=-1") == "network: seed=-1: '-1' is no whole number from 0 to 18446744073709551615");
}

TEST_CASE("jitter is drawn by seed, link and message, and stays below what was told") {
  const NetworkModel model = parse_network_model("hosts=3 jitter=1ms");
  double least = 1.0, most = 0.0;
  for (std::uint64_t index = 0; index < 100; ++index) {
    const double jitter = model.jitter_of(0, 1, index);
    CHECK(jitter == model.jitter_of(0, 1, index));
    CHECK(jitter != model.jitter_of(1, 0, index));
    least = std::min(least, jitter);
    most = std::max(most, jitter);
  }
  CHECK((least >= 0.0 && least < 1e-4 && most > 9e-4 && most < 1e-3));
  NetworkModel other = model;
  other.seed = 2;
  CHECK(other.jitter_of(0, 1, 0) != model.jitter_of(0, 1, 0));
  CHECK(parse_network_model("hosts=3").jitter_of(0, 1, 0) == 0.0);
}
