// A shell reads the words back as they were.
#include "tandem/train/shell_word.h"
#include "tests/support/catch.h"

#include <cstdio>
#include <string>

using tandem::train::shell_option;
using tandem::train::shell_word;

namespace {

/// What a shell makes of a word.
std::string read_by_shell(const std::string& word) {
  std::FILE* const pipe = ::popen(("printf %s " + word).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  CHECK(::pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("words of commands are quoted where a shell would read something else") {
  CHECK(shell_word("runs/a-1_b.toml") == "runs/a-1_b.toml");
  CHECK(shell_word("two ranks") == "'two ranks'");
  CHECK(shell_word("") == "''");
  for (const std::string word :
       {"two ranks", "it's", "$HOME", "a;b", "*", "#hash", "a\\b", "`x`", "a\nb", "\"q\"", "~", "{a,b}"})
    CHECK(read_by_shell(shell_word(word)) == word);
  CHECK(shell_option("--run-dir", "a b") == "--run-dir 'a b'");
  CHECK(shell_option("--run-dir", "-x") == "--run-dir=-x");
}
