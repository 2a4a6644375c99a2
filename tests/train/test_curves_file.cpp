// The table of a run's curves.
#include "tandem/train/curves_file.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <fstream>
#include <sstream>

using namespace tandem;
using tandem::test::ContainsText;

namespace {

std::string curves_of(const std::string& log) {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / "log.jsonl", log);
  train::write_curves(folder / "log.jsonl", folder / "curves.csv");
  CHECK(folder.entries() == 2);
  std::ostringstream text;
  text << std::ifstream(folder / "curves.csv", std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a log becomes a line for each epoch") {
  CHECK(curves_of(R"({"record":"run","epoch":9}
{"record":"step","epoch":1,"loss":3}
{"record":"epoch","epoch":1,"lr":0.1,"backend":"native"}
{"record":"epoch","epoch":2,"lr":1e-05,"backend":"native"}
{"record":"result","epoch":2,"lr":7,"total_seconds":3.5}
)") == "epoch,lr,backend\n1,0.1,native\n2,1e-05,native\n");
}

TEST_CASE("the steps of a log become a table of their own, without what a session did behind its checkpoint") {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / "log.jsonl", R"({"record":"run","model":"m"}
{"record":"step","step":10,"epoch":1,"loss":3}
{"record":"step","step":20,"epoch":1,"loss":2.5}
{"record":"step","step":30,"epoch":1,"loss":9}
{"record":"run","model":"m"}
{"record":"step","step":20,"epoch":1,"loss":null}
{"record":"epoch","epoch":1,"lr":0.1}
)");
  train::write_steps(folder / "log.jsonl", folder / "steps.csv");
  CHECK(test::read_bytes(folder / "steps.csv") == "step,epoch,loss\n10,1,3\n20,1,\n");
}

TEST_CASE("inner figures have the way to them as their name") {
  CHECK(curves_of(
            R"({"record":"epoch","epoch":1,"time":{"data":0.5,"forward":2},"layers":[{"name":"conv1","weight_norm":3}]}
)") == "epoch,time.data,time.forward,layers.conv1.weight_norm\n1,0.5,2,3\n");
}

TEST_CASE("figures that some epochs lack are empty there, and so are those that are no number") {
  CHECK(curves_of(R"({"record":"epoch","epoch":1,"a":null,"b":true}
{"record":"epoch","epoch":2,"c":2}
)") == "epoch,a,b,c\n1,,true,\n2,,,2\n");
}

TEST_CASE("text is quoted where it has to be") {
  CHECK(curves_of("{\"record\":\"epoch\",\"epoch\":1,\"a,b\":\"x,y\",\"c\":\"say "
                  "\\\"hi\\\"\",\"d\":\"two\\nlines\",\"e\":\"plain\"}\n") ==
        "epoch,\"a,b\",c,d,e\n1,\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\",plain\n");
}

TEST_CASE("the later record of an epoch counts, and damaged lines do not") {
  CHECK(curves_of(R"({"record":"epoch","epoch":2,"loss":5}
{"record":"epoch","epoch":1,"loss":4}
{"record":"epoch","epoch":2,"lo
{"record":"epoch","epoch":2,"loss":3}
{"record":"epoch","epoch":"3","loss":1}
{"record":"epoch","ep)") == "epoch,loss\n1,4\n2,3\n");
}

TEST_CASE("a run without epochs has a table without lines") { CHECK(curves_of("{\"record\":\"run\"}\n") == "epoch\n"); }

TEST_CASE("a log that is not there is an error, and the table of before stays") {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / "curves.csv", "before");
  CHECK_THAT(test::error_of([&] { train::write_curves(folder / "log.jsonl", folder / "curves.csv"); }),
             ContainsText("log.jsonl: cannot open: No such file"));
  std::ostringstream text;
  text << std::ifstream(folder / "curves.csv").rdbuf();
  CHECK(text.str() == "before");
}
