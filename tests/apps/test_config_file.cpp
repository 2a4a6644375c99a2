// Config files: what is read, and how each mistake is answered.
#include "config_file.h"

#include "tests/support/catch.h"
#include "tests/support/damage.h"
#include "tests/support/memory_of.h"
#include "tests/support/temporary_directory.h"

#include "tandem/core/error.h"

#include <thread>

using namespace tandem::apps;
using tandem::test::ContainsText;

namespace {

std::string value_of(const std::string& text) {
  const auto entries = parse_config("x = " + text, "f.toml");
  REQUIRE(entries.size() == 1);
  return entries[0].value;
}

void check_refused(const std::string& text, const std::string& message) {
  INFO(text);
  CHECK_THROWS_WITH(parse_config(text, "f.toml"), ContainsText(message) && ContainsText("f.toml:"));
}

}  // namespace

TEST_CASE("config values are read as TOML writes them") {
  CHECK(value_of("12") == "12");
  CHECK(value_of("-1_000") == "-1000");
  CHECK(value_of("1e-3  # rate") == "0.001");
  CHECK(value_of("0.1") == "0.1");
  CHECK(value_of("0x10") == "16");
  CHECK(value_of("true") == "true");
  CHECK(value_of(R"("a # b, c = \"d\" \\ e")") == R"(a # b, c = "d" \ e)");
  CHECK(value_of(R"('C:\data')") == R"(C:\data)");
  CHECK(value_of(R"("")").empty());
  CHECK(value_of(R"(["crop", "flip",])") == "crop,flip");
  CHECK(value_of("[]").empty());
  CHECK(value_of("[1, 2]") == "1,2");
  CHECK(value_of("[1,\n 2]") == "1,2");
}

TEST_CASE("config lines may be empty, comments, indented, with quoted keys and DOS line ends") {
  const auto entries = parse_config("\n# all\r\n  lr=0.1\r\n\t\"batch-size\" = 8 # per rank\n'x' = 1", "f.toml");
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].name == "lr");
  CHECK(entries[0].value == "0.1");
  CHECK(entries[0].line == 3);
  CHECK(entries[1].name == "batch-size");
  CHECK(entries[2].line == 5);
  CHECK(parse_config("", "f.toml").empty());
}

TEST_CASE("config mistakes are answered with file and line") {
  for (const char* const no_pair : {"lr", "= 3", "lr =", "lr = # none", "lr = 0.1 0.2", "model = vgg_lite"}) {
    check_refused(no_pair, "write one 'name = value' per line, text in quotes");
  }
  check_refused("model = \"vgg", "string");
  check_refused("data = \"C:\\data\"", "unknown escape sequence '\\d'");
  check_refused("a = [1", "array");
  check_refused("a = [1 2]", "comma");
  check_refused("a = 99999999999999999999", "64 bits");
  check_refused("a = \"\xff\"", "utf-8");
  check_refused("[model]", "'model' is a section");
  check_refused("model.name = 1", "'model' is a section");
  check_refused("a = 1979-05-27", "'a' is no such value");
  check_refused("a = [[1], [2]]", "'a' is no such value");
  check_refused("\na = 1\nb = 2\na = 3", "f.toml:4: ");
  check_refused("a = 1\nb = 2\na = 3", "cannot redefine");
}

TEST_CASE("config mistakes are answered in one line, whatever the names") {
  for (const char* const text : {R"("a\nb" = 1)", R"(["a\nb"])"})
    check_refused(text, R"('a\x0ab': control characters are not taken)");
  check_refused(R"("\u001b[31m" = 1)", R"('\x1b[31m': control characters are not taken)");
}

TEST_CASE("what the parser says of line ends and control characters stays one line of text") {
  check_refused("nesterov = t\nlr = 1", R"(saw 't\x0a')");
  check_refused("nesterov = fal\r\n", R"(saw 'fal\x0d')");
  check_refused("nesterov = t\x1b", R"(saw 't\x1b')");
}

TEST_CASE("names of ever more parts do not exhaust the stack") {
  std::string name = "a";
  for (int i = 0; i < 100000; ++i) name += ".a";
  for (const std::string& text : {name + " = 1", "[" + name + "]"})
    check_refused("x = 1\n" + text, "f.toml:2: longer than 8192 bytes");
}

TEST_CASE("sections without a name are refused before the parser's assertions see them") {
  for (const std::string text :
       {"[", "[\nx = 1", "  [ \t\n", "[[\n", "[#", "[=", "[.a]", "[ ]", "[[ ]]", "[[[a]]]", "[ [ [\"a", "[\xd8"})
    check_refused("x = 1\n" + text, "f.toml:2: a section without a name");
}

TEST_CASE("a quote behind other characters is refused, before the parser takes it for a part of a number") {
  for (const std::string value : {"0.21_-_66_-__h__\" 6", "8'x'", "1.\"a\"", "\"a\"\"b\"", "[1, 2'x']", "8'\xc3\xa9'"})
    check_refused("x = 1\ny = " + value + "\n", "f.toml:2: a quote behind other characters; write one 'name = value'");
  CHECK(parse_config("a=\"x\"\nb = 'y'\nc = [\"p\",'q', \"r\"]\n\"d\" = \"it's\"\n", "f.toml").size() == 4);
}

TEST_CASE("what would stand in a number to the parser is refused: brackets, and '=' where no name is") {
  check_refused("x = 1\ny = 0.21-66-[\" 6", "f.toml:2: a bracket behind other characters; write one 'name = value'");
  check_refused("x = 1\ny = 0.21-66-=\" 6", "f.toml:2: '=' behind a value; write one 'name = value'");
  check_refused("x = 8='\xc3\xa9'", "f.toml:1: '=' behind a value");
  check_refused("y = [\r\n\n  3='c\xef\xbf\xb8'\n]\n", "f.toml:3: '=' in a list; write one 'name = value'");
  CHECK(parse_config("a = [ # = [\n \"=[\", '=',\n 2 ]\nb = [1]\n", "f.toml").at(0).value == "=[,=,2");
}

TEST_CASE("characters beyond ASCII are refused outside of quotes, before the parser's unreachable code sees them") {
  const std::string e = "\xc3\xa9", mark = "\xef\xbb\xbf";
  for (const std::string& text : {e + " = 1", "x = " + e, "[a" + e + "]", "x = [1,\n " + e + "]",
                                  "x = '" + e + "' " + e, "x = 1 " + mark, std::string("\xef\xbb\xaf"),
                                  // Quotes that are none to the parser.
                                  "x = 8,'" + e + "'", "x = ['a' '" + e + "']", "x = '" + e, "x = \"" + e + "\\\""}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_config(text, "f.toml"),
                      ContainsText("a character beyond ASCII outside of quotes; write one 'name = value'"));
  }
  for (const std::string& text : {"x = \"\"\"a\\\n\" " + e + "\"\"\"", "x = \'\'\'\n" + e + "\'\'\'"})
    CHECK_THROWS_WITH(parse_config(text, "f.toml"), ContainsText("f.toml:1: text in three quotes"));
  const std::string list = "x = [ 'a', \"" + e + "\",8 , '" + e + "' ]\t# " + e + "\r\n";
  CHECK(parse_config(list, "f.toml").at(0).value == "a," + e + ",8," + e);
  CHECK(parse_config(mark + "x = '" + e + "' # " + e + "\ny = \"\\\"" + e + "\" # \'\'\'", "f.toml").size() == 2);
}

TEST_CASE("texts beyond ASCII may stand in lists over several lines, and behind names in quotes") {
  const std::string e = "\xc3\xa9";
  for (const std::string& list :
       {"[\n '" + e + "',\r\n \"b" + e + "\"\n]", "['" + e + "',\n'b" + e + "' # " + e + "\n,\n]",
        "[ # " + e + "\n'" + e + "'\n, 'b" + e + "', ]", "['" + e + "', 'b" + e + "',]"}) {
    INFO(list);
    CHECK(parse_config("x = " + list + "\ny = 1\n", "f.toml").at(0).value == e + ",b" + e);
  }
  CHECK(parse_config("\"x\" = '" + e + "'", "f.toml").at(0).value == e);
  CHECK(parse_config("'" + e + "' = 8 # " + e, "f.toml").at(0).name == e);
  for (const std::string& line :
       {"8'" + e + "'", "'" + e + "' 'b'", "'" + e, e + ", 'b'", "8 '" + e + "'", "['" + e + "']"})
    check_refused("x = [\n" + line + "\n]", "f.toml:2: a ");
}

TEST_CASE("tables in braces are refused before the parser's assertions see them") {
  for (const std::string text : {"x = [[[}", "x = {y = 1}", "x = [}", "x = [1, }", "}", "[a}]"})
    CHECK_THROWS_WITH(parse_config(text, "f.toml"), ContainsText("f.toml:1: a "));
  CHECK(parse_config("x = '{}' # }", "f.toml").at(0).value == "{}");
}

TEST_CASE("dates are refused before the parser's assertions see what is behind them") {
  for (const std::string value :
       {"2026-11-26 1", "2026-11-26 10:11:12", "2_026-11-26 1", "77------:/ 0", "[1, 2026-11-26 1"})
    check_refused("x = 1\ny = " + value + "\n", "f.toml:2: a date; write one 'name = value'");
  CHECK(parse_config("x = '2026-11-26 1' # 2026-11-26 1", "f.toml").at(0).value == "2026-11-26 1");
  check_refused("x = 2026-11-26", "f.toml:1: 'x' is no such value");
}

TEST_CASE("a value whose name is empty is refused") {
  check_refused("x = 1\n\"\" = 2", "f.toml:2: a value without a name; write one 'name = value'");
  check_refused("'' = 2", "f.toml:1: a value without a name");
}

TEST_CASE("config files with any damage are refused with their name, or read") {
  const std::string good =
      "# a run\nmodel = \"resnet18\"\nlr = 1e-3\nepochs = 30\nnesterov = true\n\n[data]\nlimit-train = 1_000\n"
      "augment = 'crop,flip'\n";
  int read = 0, refused = 0;
  tandem::test::for_each_damage(good, good.size(), [&](const std::string& text) {
    try {
      parse_config(text, "f.toml");
      ++read;
    } catch (const tandem::Error& error) {
      ++refused;
      REQUIRE_THAT(error.what(), ContainsText("f.toml:"));
    }
  });
  CHECK(read > 0);
  CHECK(refused > 0);
}

TEST_CASE("a config file takes memory by its size, a larger one is not read") {
  const tandem::test::TemporaryDirectory folder;
  const std::string path = folder / "large.toml";
  const auto read = [&] { read_config(path); };
  const auto check = [&](const std::string& text, std::int64_t most) {
    tandem::test::write_bytes(path, text);
    const tandem::test::Reading reading = tandem::test::read_apart(read);
    INFO(text.size() << " bytes took " << reading.grown / tandem::test::kMiB << " MiB: " << reading.error);
    CHECK((!tandem::test::kMemoryIsMeasured || reading.grown <= most));
  };
  std::string settings, lists = "a = [\n", texts;
  for (int i = 0; settings.size() < 1'000'000; ++i) settings += fmt::format("a{}=1\n", i);
  while (lists.size() < 1'000'000) lists += "[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]\n,";
  for (int i = 0; texts.size() < 1'000'000; ++i) texts += fmt::format("a{}='{}'\n", i, std::string(8000, 'x'));
  for (const std::string& text : {settings, lists, texts}) check(text, 256 * tandem::test::kMiB);
  check(std::string(100'000'000, '#'), 16 * tandem::test::kMiB);
}

TEST_CASE("a reader reads a file once, however often and by whatever thread it is asked") {
  const tandem::test::TemporaryDirectory folder;
  const std::string path = folder / "run.toml";
  tandem::test::write_bytes(path, "lr = 0.5\n");
  ConfigReader reader;
  CHECK(reader.read(path).front().value == "0.5");
  tandem::test::write_bytes(path, "lr = 0.25\n");
  std::vector<std::string> values(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& value : values) threads.emplace_back([&] { value = reader.read(path).front().value; });
  }
  CHECK(values == std::vector<std::string>(4, "0.5"));
  CHECK(ConfigReader().read(path).front().value == "0.25");
  // What cannot be read stays so.
  const std::string late = folder / "late.toml";
  CHECK_THROWS_WITH(reader.read(late), ContainsText("no such file"));
  tandem::test::write_bytes(late, "lr = 1\n");
  CHECK_THROWS_WITH(reader.read(late), ContainsText("no such file"));
  // What is no config file stays none.
  const std::string bad = folder / "bad.toml";
  tandem::test::write_bytes(bad, "lr = = 1\n");
  CHECK_THROWS_WITH(reader.read(bad), ContainsText("bad.toml:1"));
  tandem::test::write_bytes(bad, "lr = 1\n");
  CHECK_THROWS_WITH(reader.read(bad), ContainsText("bad.toml:1"));
}

TEST_CASE("config files that are none") {
  CHECK_THROWS_WITH(read_config("/nonexistent.toml"), ContainsText("no such file"));
  CHECK_THROWS_WITH(read_config("/"), ContainsText("directory"));
  CHECK_THROWS_WITH(read_config("/dev/zero"), ContainsText("larger than 1 MiB"));
}
