// Lines about what runs, and who hears them.
#include "tandem/kernels/notice.h"
#include "tests/support/catch.h"

#include <string>
#include <vector>

using namespace tandem::kernels;

TEST_CASE("a notice is given once to each listener, which may give notices itself") {
  std::vector<std::string> first, second;
  listen_to_notices([&](const std::string& line) {
    first.push_back(line);
    if (line == "a") notice("b");
  });
  for (const char* const line : {"a", "b", "a", "c"}) notice(line);
  listen_to_notices([&](const std::string& line) { second.push_back(line); });
  notice("c");
  listen_to_notices(nullptr);
  notice("d");
  listen_to_notices(print_notice);
  CHECK(first == std::vector<std::string>{"a", "b", "c"});
  CHECK(second == std::vector<std::string>{"c"});
}
