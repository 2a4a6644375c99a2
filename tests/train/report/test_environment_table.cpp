// What the report says of environment.json.
#include "tandem/train/report/environment_table.h"

#include "tests/support/catch.h"
#include "tests/train/report/run_files.h"

#include "tandem/train/report/report.h"

using namespace tandem::train;
using tandem::test::ContainsText;

TEST_CASE("environment table: all that a run writes has a name in words") {
  const report::Json json = report::Json::parse(R"({"state":"finished","started":"2026-01-31T12:00:00Z","exit_code":0,
      "folder":"/work","git":{"commit":"888c209","dirty":true},"ranks":["vm, cpu","vm, cuda:0"],
      "devices":[{"device":"cpu","name":"EPYC","units":2,"memory_bytes":2147483648},
                 {"device":"cuda:0","name":"H100","units":132,"capability":"9.0"}],
      "versions":{"tandem":"0.1.0","onednn":"yes","mpi_library":"none","new_one":"7"}})");
  CHECK(report::environment_table(json) ==
        report::TextTable{{"state", "finished"},
                          {"started", "2026-01-31 12:00 UTC"},
                          {"exit code", "0"},
                          {"working directory", "/work"},
                          {"git commit", "888c209"},
                          {"uncommitted changes", "yes"},
                          {"rank 0", "vm, cpu"},
                          {"rank 1", "vm, cuda:0"},
                          {"device cpu", "EPYC, 2 cores, 2 GiB"},
                          {"device cuda:0", "H100, 132 multiprocessors, compute capability 9.0"},
                          {"Tandem", "0.1.0"},
                          {"built with oneDNN", "yes"},
                          {"MPI library", "none"},
                          {"new one", "7"}});
}

TEST_CASE("environment table: what is not as it is written is told all the same") {
  const auto table_of = [](const char* text) { return report::environment_table(report::Json::parse(text)); };
  using Table = report::TextTable;
  CHECK(table_of(R"({"git":"888c209","ranks":"all","devices":["a","b"],"versions":[1]})") ==
        Table{{"git commit", "888c209"}, {"ranks", "all"}, {"devices 0", "a"}, {"devices 1", "b"}, {"versions", "1"}});
  CHECK(table_of(R"({"a_b":{"c":{"free_bytes":1024}},"list":[[3]],"devices":[{"device":7,"units":"x"}],"none":{}})") ==
        Table{{"a b c free bytes", "1 KiB"}, {"list", "3"}, {"device", ""}});
  CHECK(table_of("[]").empty());
}

TEST_CASE("environment table: it stands on the page, without what is told elsewhere") {
  const tandem::test::TemporaryDirectory folder;
  tandem::test::RunFiles().epoch(1, 2.0, 30, 1.8, 35).write(folder);
  tandem::test::write_bytes(folder / "environment.json", R"({"host":"told above","ranks":["vm, cpu","vm, gpu"]})");
  const std::string page = tandem::test::read_bytes(write_report(folder.path().string()).page);
  CHECK_THAT(page, ContainsText("<span>rank 1</span>\n<b>vm, gpu</b>") && !ContainsText("told above"));
}

TEST_CASE("environment table: without the file, the log's versions have the same names") {
  const tandem::test::TemporaryDirectory folder;
  tandem::test::RunFiles().epoch(1, 2.0, 30, 1.8, 35).write(folder);
  CHECK_THAT(tandem::test::read_bytes(write_report(folder.path().string()).page),
             ContainsText("<span>Tandem</span>\n<b>0.1.0</b>"));
}
