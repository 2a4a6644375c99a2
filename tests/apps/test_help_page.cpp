// Help pages of programs that give their options to CLI11.
#include "apps/arguments/arguments.h"
#include "apps/arguments/help_layout.h"
#include "apps/arguments/program.h"
#include "tests/support/catch.h"

#include <CLI/CLI.hpp>

using namespace tandem::apps;

TEST_CASE("a help page tells what options take, in lines of its width") {
  CLI::App app("Does what a description of some length says of it, and more than that");
  std::vector<std::string> files, kinds{"hot", "cold"}, none;
  std::string weights, folder = "here";
  int count = 3;
  double share = 0.5;
  bool is_quiet = false;
  app.option_defaults()->always_capture_default();
  app.add_option("files", files, "What to read")->required();
  app.add_option("--weights", weights, "File of weights")->required();
  app.add_option("--folder", folder, "Where to look");
  expect_whole_number(*app.add_option("--count", count, "How many of them"), 1, 1000);
  app.add_option("--share", share, "How much of it");
  app.add_option("--kinds", kinds, "Which");
  app.add_option("--more", none, "Which others");
  app.add_flag("--quiet", is_quiet, "Say nothing");
  CHECK(help_page(app, "tandem do", 80) ==
        "Does what a description of some length says of it, and more than that\n"
        "\n"
        "Usage: tandem do [options] files...\n"
        "\n"
        "Options\n"
        "  files...                  What to read\n"
        "  -h, --help                Print this page and stop\n"
        "  --weights TEXT            File of weights (required)\n"
        "  --folder TEXT             Where to look [here]\n"
        "  --count N                 How many of them (1 to 1000) [3]\n"
        "  --share NUMBER            How much of it [0.5]\n"
        "  --kinds TEXT              Which [hot,cold]\n"
        "  --more TEXT               Which others\n"
        "  --quiet                   Say nothing\n");
  CHECK(help_page(app, "tandem do", 30)
            .starts_with("Does what a description of\nsome length says of it, and\nmore than that\n\n"
                         "Usage: tandem do [options]\nfiles...\n\nOptions\n  files...\n      What to read\n"));
}

TEST_CASE("a program is called what its user calls it") {
  const auto name_of = [](const char* first) {
    const char* const words[] = {first, nullptr};
    return program_name(words);
  };
  CHECK(name_of("build/cpu/apps/cifar_train") == "cifar_train");
  CHECK(name_of("cifar_train") == "cifar_train");
  CHECK(name_of("/a folder/tandem_report") == "tandem_report");
  CHECK(name_of("tandem train") == "tandem train");
  CHECK(name_of(nullptr).empty());
  const char* const words[] = {"tandem train", "--lr", "0.1"};
  CHECK(command_words(3, words) == std::vector<std::string>{"tandem", "train", "--lr", "0.1"});
  const char* const own[] = {"./cifar_train"};
  CHECK(command_words(1, own) == std::vector<std::string>{"./cifar_train"});
}

TEST_CASE("an example that does not fit has its comment above") {
  CHECK(help_example("tandem train", "no data needed", 80) ==
        "  tandem train                                    # no data needed\n");
  CHECK(help_example("tandem train --epochs 3 --lr 0.1", "some epochs", 30) ==
        "  # some epochs\n  tandem train --epochs 3 \\\n    --lr 0.1\n");
}
