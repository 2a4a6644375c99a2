// Looking for libraries: what is not there, something else, too old or too new is refused in words.
#include "tandem/core/library_file.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <string_view>

using namespace tandem;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

LibraryVersion read_version(const LibraryFile& library) {
  int (*version)() = nullptr;
  library.find("fake_version", version);
  return {version() / 100, version() / 10 % 10, version() % 10};
}

LibraryRequest fake_library() {
  return {.name = "FAKE",
          .file = "libfake.so.4",
          .variable = "TANDEM_FAKE_LIBRARY",
          .built_with = "/opt/fake/libfake.so.4",
          .least = {4, 1, 0},
          .read_version = read_version};
}

std::string refusal(const std::vector<std::string>& files) {
  return error_of([&] { LibraryFile(fake_library(), files); });
}

const char* nothing_set(const char*) { return nullptr; }

}  // namespace

TEST_CASE("an environment variable decides where a library is looked for") {
  CHECK(library_files(fake_library(), nothing_set) ==
        std::vector<std::string>{"libfake.so.4", "/opt/fake/libfake.so.4"});
  const auto named = [](const char* name) {
    return std::string_view(name) == "TANDEM_FAKE_LIBRARY" ? "/mine/libfake.so" : nullptr;
  };
  CHECK(library_files(fake_library(), named) == std::vector<std::string>{"/mine/libfake.so"});
  CHECK(library_files(fake_library(), [](const char*) { return ""; }).size() == 2);
}

TEST_CASE("a missing library is told with all that was tried, and what to do") {
  const std::string text = refusal({"libfake-missing.so.4", "/none/libfake.so.4"});
  CHECK_THAT(text, ContainsText("FAKE 4.1 or newer was not found"));
  CHECK_THAT(text, ContainsText("libfake-missing.so.4: cannot open"));
  CHECK_THAT(text, ContainsText("/none/libfake.so.4: cannot open"));
  CHECK_THAT(text, ContainsText("install FAKE, or let TANDEM_FAKE_LIBRARY name its libfake.so.4"));
}

TEST_CASE("a library that is not the one needed is refused") {
  CHECK_THAT(refusal({FAKE_STRANGER}), ContainsText("is not the FAKE that is needed, it has no fake_version"));
  CHECK_THAT(refusal({FAKE_SILENT}), ContainsText("does not report its version"));
  CHECK_THAT(refusal({FAKE_TOO_OLD}), ContainsText("is FAKE 3.0.5, but 4.1 is the least"));
  CHECK_THAT(refusal({FAKE_TOO_NEW}), ContainsText("is FAKE 5.0.0, but this program knows FAKE 4 only"));
  CHECK_THAT(refusal({__FILE__}), ContainsText("was not found"));
  LibraryRequest until_4 = fake_library();
  until_4.least = {3, 0, 0};
  until_4.last_major = 4;
  CHECK_THAT(error_of([&] { LibraryFile(until_4, {FAKE_TOO_NEW}); }),
             ContainsText("this program knows FAKE 3 to 4 only"));
  CHECK(version_text(LibraryFile(until_4, {FAKE_GOOD}).version()) == "4.1.0");
}

TEST_CASE("the first library that is there is taken") {
  const LibraryFile file(fake_library(), {"/none/libfake.so.4", FAKE_GOOD, FAKE_TOO_OLD});
  CHECK(version_text(file.version()) == "4.1.0");
  CHECK(file.path() == FAKE_GOOD);
  CHECK_THAT(error_of([&] { file.function("fake_other"); }), ContainsText("it has no fake_other"));
}

TEST_CASE("a version that is told as one number is read, also the way that old versions count") {
  CHECK(version_of(22809) == LibraryVersion{2, 28, 9});
  CHECK(version_of(91900) == LibraryVersion{9, 19, 0});
  CHECK(version_of(100200) == LibraryVersion{10, 2, 0});
  CHECK(version_of(8907) == LibraryVersion{8, 9, 7});
  CHECK(version_of(2804) == LibraryVersion{2, 8, 4});
}
