// NCCL's library: its versions, and what it must have.
#include "tandem/comm/backends/nccl/nccl_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"

#include <optional>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;
using tandem::test::skip_test;

namespace {

LibraryFile load(const std::string& file) { return {nccl_library(), {file}}; }

}  // namespace

TEST_CASE("NCCL is asked for its version") {
  CHECK_THAT(error_of([] { load(FAKE_NCCL_TOO_OLD); }), ContainsText("is NCCL 2.13.4, but 2.14 is the least"));
  CHECK_THAT(error_of([] { load(FAKE_NCCL_ANCIENT); }), ContainsText("is NCCL 2.8.4, but 2.14 is the least"));
  CHECK(version_text(load(FAKE_NCCL_BARE).version()) == "2.28.9");
}

#if TANDEM_HAS_NCCL
TEST_CASE("an NCCL that lacks a function is refused before it is used") {
  CHECK_THAT(error_of([] { make_nccl_id(load(FAKE_NCCL_BARE)); }), ContainsText("it has no ncclGetUniqueId"));
}

TEST_CASE("the installed NCCL has all functions and makes ids") {
  std::optional<LibraryFile> file;
  try {
    file.emplace(nccl_library(), library_files(nccl_library(), environment_variable));
  } catch (const Error& error) {
    return skip_test(error.what());
  }
  CHECK(make_nccl_id(*file).size() == 128);
  CHECK(make_nccl_id(*file) != make_nccl_id(*file));
}
#endif
