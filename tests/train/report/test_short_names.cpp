// Names that are cut, and what must be left of them.
#include "tandem/train/report/short_names.h"

#include "tests/support/catch.h"

#include "tandem/train/progress_format.h"

#include <set>

using tandem::train::display_width;
using tandem::train::report::short_names;

namespace {

using Names = std::vector<std::string>;

Names shortened(const Names& names, int width) {
  return short_names(names, [width](const std::string& name) { return display_width(name) <= width; });
}

}  // namespace

TEST_CASE("short names: those that fit stay as they are") {
  const Names names{"lr 0.1", "lr 0.2"};
  CHECK(shortened(names, 6) == names);
  CHECK(shortened({}, 6).empty());
}

TEST_CASE("short names: what all have in common goes first, in whole words") {
  CHECK(shortened({"resnet-lr-0.01-augmented", "resnet-lr-0.02-augmented"}, 8) == Names{"…0.01…", "…0.02…"});
  CHECK(shortened({"a-long-beginning-one", "a-long-beginning-two", "short"}, 10) == Names{"…one", "…two", "short"});
}

TEST_CASE("short names: differences at several places all stay, with the word before a number where that fits") {
  const Names names{"run-lr-0.1-momentum-0.9-seed-1", "run-lr-0.2-momentum-0.9-seed-2"};
  CHECK(shortened(names, 20) == Names{"…lr-0.1…seed-1", "…lr-0.2…seed-2"});
  CHECK(shortened(names, 29) == Names{"…lr-0.1-momentum-0.9-seed-1", "…lr-0.2-momentum-0.9-seed-2"});
  CHECK(shortened(names, 10) == Names{"…0.1…1", "…0.2…2"});
}

TEST_CASE("short names: one that has nothing in common with others loses its middle") {
  CHECK(shortened({"abcdefghijklmnopqrstuvwxyz", "short"}, 9) == Names{"abcd…wxyz", "short"});
}

TEST_CASE("short names: different names stay different, equal ones equal") {
  const Names names{"aaaaaaaaaaaaaaaaaaaaaaXaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaYaaaaaaaaaaaaaaaaaaaaaa",
                    "b"};
  CHECK(shortened(names, 9) == Names{"1: aaa…aa", "2: aaa…aa", "3: b"});
  const Names same{"the-same-long-name", "the-same-long-name", "another-long-name"};
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == 3);
  const Names cut = shortened(same, 9);
  CHECK((cut[0] == cut[1] && cut[0] != cut[2]));
}

TEST_CASE("short names: characters of several bytes are not cut, and a place for nothing ends") {
  CHECK(shortened({"ääääääääää"}, 5) == Names{"ää…ää"});
  CHECK(shortened({"abc"}, 0) == Names{"1: …"});
  CHECK(shortened({"\xff\xff\xff\xff"}, 0).size() == 1);
}
