// Looking for NCCL's library: what is not there, not NCCL, too old or too new is refused in words.
#include "comm/nccl_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cstdlib>
#include <optional>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

std::string refusal(const std::string& file) {
  return error_of([&] { NcclFile({file}); });
}

}  // namespace

TEST_CASE("TANDEM_NCCL_LIBRARY decides where NCCL is looked for") {
  const auto files = nccl_files([](const char*) -> const char* { return nullptr; });
  REQUIRE(!files.empty());
  CHECK(files.front() == "libnccl.so.2");
  const auto named = nccl_files([](const char* name) {
    return std::string_view(name) == "TANDEM_NCCL_LIBRARY" ? "/opt/nccl.so" : nullptr;
  });
  CHECK(named == std::vector<std::string>{"/opt/nccl.so"});
}

TEST_CASE("a missing NCCL is told with all that was tried") {
  const std::string text = error_of([] { NcclFile({"libnccl-missing.so.2", "/none/libnccl.so.2"}); });
  CHECK_THAT(text, ContainsText("NCCL 2.14 or newer was not found"));
  CHECK_THAT(text, ContainsText("libnccl-missing.so.2: cannot open"));
  CHECK_THAT(text, ContainsText("/none/libnccl.so.2: cannot open"));
  CHECK_THAT(text, ContainsText("TANDEM_NCCL_LIBRARY"));
}

TEST_CASE("a library that is not the NCCL that is needed is refused") {
  CHECK_THAT(refusal(FAKE_NCCL_STRANGER), ContainsText("it has no ncclGetVersion"));
  CHECK_THAT(refusal(FAKE_NCCL_TOO_OLD), ContainsText("is NCCL 2.13.4, but 2.14 is the least"));
  CHECK_THAT(refusal(FAKE_NCCL_TOO_NEW), ContainsText("is NCCL 3.0.0, but this program knows NCCL 2 only"));
  CHECK_THAT(refusal(__FILE__), ContainsText("was not found"));
}

TEST_CASE("the first library that is there is taken") {
  const NcclFile file({"/none/libnccl.so.2", FAKE_NCCL_BARE, FAKE_NCCL_TOO_OLD});
  CHECK(file.version() == 22809);
  CHECK(file.path() == FAKE_NCCL_BARE);
  CHECK(file.function("ncclGetVersion") != nullptr);
  CHECK_THAT(error_of([&] { file.function("ncclAllReduce"); }), ContainsText("it has no ncclAllReduce"));
}

#if TANDEM_HAS_NCCL
TEST_CASE("an NCCL that lacks a function is refused before it is used") {
  CHECK_THAT(error_of([] { make_nccl_id(NcclFile({FAKE_NCCL_BARE})); }), ContainsText("it has no ncclGetUniqueId"));
}

TEST_CASE("the installed NCCL has all functions and makes ids") {
  std::optional<NcclFile> file;
  try {
    file.emplace(nccl_files([](const char* name) -> const char* { return std::getenv(name); }));
  } catch (const Error& error) {
    WARN("skipped: " << error.what());
    return;
  }
  CHECK(make_nccl_id(*file).size() == 128);
  CHECK(make_nccl_id(*file) != make_nccl_id(*file));
}
#endif
