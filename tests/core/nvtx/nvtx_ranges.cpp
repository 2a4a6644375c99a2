// Profiler ranges as a profiler sees them: this program brings one of its own, which NVTX finds by a symbol's name.
#include <cstdint>
#include <memory>

#define NVTX_STATIC_INJECTION_IMPL
extern "C" int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t));  // the header wants it declared
#include <nvtx3/nvToolsExt.h>

#include "tandem/core/profiler.h"
#include "tests/support/catch.h"

using namespace tandem;

namespace {

std::vector<std::string>& seen() {
  static auto& calls = *new std::vector<std::string>;
  return calls;
}
int depth = 0;

int note_push(const char* name) {
  seen().push_back(name);
  return depth++;
}

int note_pop() {
  seen().push_back("end");
  return --depth;
}

int take_callbacks(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(note_push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(note_pop);
  return 1;
}

}  // namespace

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = take_callbacks;

TEST_CASE("a profiler sees every range, nested, without start_profile()") {
  seen().clear();
  {
    const ProfileRange outer("outer");
    const ProfileRange inner([] { return std::string("inner"); });
  }
  CHECK(seen() == std::vector<std::string>{"outer", "inner", "end", "end"});
  CHECK(depth == 0);
}

TEST_CASE("our own statistics are kept beside it, of ranges that began after start_profile()") {
  auto early = std::make_unique<ProfileRange>("early");
  start_profile();
  early.reset();
  {
    const ProfileRange range("counted");
  }
  const auto entries = stop_profile();
  REQUIRE(entries.size() == 1);
  CHECK(entries.front().name == "counted");
  CHECK(depth == 0);
}
