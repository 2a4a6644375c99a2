// What `tandem` completes, from help pages as programs print them.
#include "apps/tandem/commands.h"
#include "tandem/core/error.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::apps;
using tandem::test::ContainsText;

namespace {

constexpr std::string_view kHelp =
    "usage: cifar_train [options]\n\nTraining:\n"
    "  --lr RATE              learning rate, see --schedule\n"
    "  --schedule one-cycle|cosine|step\n"
    "                         learning rate over time [one-cycle]\n"
    "  --nesterov             x--y is no option\n"
    "  --model NAME           network: vgg_lite,\n"
    "                         small_cnn [small_cnn]\n"
    "  --every NAME           how often (auto: now): epoch, N, Ns\n"
    "  --last NAME            without a list\n\nOutput: a, b\n";

}  // namespace

TEST_CASE("options and their values are read from a help page") {
  CHECK(options_in(kHelp) ==
        std::vector<std::string>{"--lr", "--schedule", "--nesterov", "--model", "--every", "--last"});
  CHECK(options_in("") == std::vector<std::string>());
  CHECK(options_in("--") == std::vector<std::string>());
  CHECK(values_in(kHelp, "--schedule") == std::vector<std::string>{"one-cycle", "cosine", "step"});
  CHECK(values_in(kHelp, "--model") == std::vector<std::string>{"vgg_lite", "small_cnn"});
  CHECK(values_in(kHelp, "--every") == std::vector<std::string>{"epoch"});
  CHECK(values_in(kHelp, "--last").empty());
  CHECK(values_in(kHelp, "--lr").empty());
  CHECK(values_in(kHelp, "--sched").empty());
  CHECK(values_in(kHelp, "").empty());
}

TEST_CASE("the first word is completed to commands, and shells are known by name") {
  CHECK(complete({"tr"}) == std::vector<std::string>{"train"});
  CHECK(complete({"bench"}) == std::vector<std::string>{"bench-comm", "bench-conv", "bench-train"});
  CHECK(complete({""}).size() == commands().size() + 2);
  CHECK(complete({}) == complete({""}));
  CHECK(complete({"help", "pre"}) == std::vector<std::string>{"predict"});
  CHECK(complete({"completion", ""}) == std::vector<std::string>{"bash", "fish", "zsh"});
  CHECK(complete({"fly", "--"}).empty());
  for (const char* shell : {"bash", "zsh", "fish"})
    CHECK_THAT(completion_script(shell),
               ContainsText("--complete") && ContainsText("tandem cifar_train tandem_report"));
  CHECK_THROWS_WITH(completion_script("bsh"), ContainsText("did you mean bash?"));
  CHECK_THROWS_WITH(find_command("reprot"), ContainsText("did you mean report?"));
}
