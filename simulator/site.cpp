// Source lines of instruction addresses, through GCC's libbacktrace.
#include "tandem/simulator/site.h"

#include <backtrace.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace tandem::simulator {

namespace {

struct CallSites {
  std::mutex mutex;
  std::map<std::pair<const char*, unsigned>, SiteId> ids;
  std::deque<Site> sites;
};

CallSites& call_sites() {
  static CallSites sites;
  return sites;
}

void ignore_error(void*, const char*, int) {}

backtrace_state* symbols() {
  static backtrace_state* const state = backtrace_create_state(nullptr, 1, ignore_error, nullptr);
  return state;
}

/// The line of an instruction; line 0 where it is not known.
Site line_at(std::uintptr_t address) {
  Site result;
  backtrace_pcinfo(
      symbols(), address,
      [](void* data, std::uintptr_t, const char* file, int line, const char*) {
        if (file == nullptr || std::string_view(file).ends_with("simulator/checked_memory.h")) return 0;
        *static_cast<Site*>(data) = {file, static_cast<unsigned>(line)};
        return 1;  // the innermost inlined function that is not ours
      },
      ignore_error, &result);
  return result;
}

/// Everything from the first '(' or '<' of a template's arguments that is not part of a name goes.
std::string without_arguments(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous))
    name.erase(at, anonymous.size());
  std::size_t depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<')
      ++depth;
    else if (name[i] == '>' && depth > 0)
      --depth;
    else if (name[i] == '(' && depth == 0)
      return name.substr(0, i);
  }
  return name;
}

}  // namespace

std::string Site::text() const { return line == 0 ? file : fmt::format("{}:{}", file, line); }

SiteId site_id(std::source_location where) { return site_id(where.file_name(), where.line()); }

SiteId site_id(const char* file, unsigned line) {
  // Kernels come to the same few places again and again.
  struct Known {
    const char* file = nullptr;
    unsigned line = 0;
    SiteId id = 0;
  };
  thread_local std::array<Known, 256> recent;
  Known& known = recent[(reinterpret_cast<std::uintptr_t>(file) + line) % recent.size()];
  if (known.file == file && known.line == line) return known.id;
  CallSites& all = call_sites();
  const std::lock_guard lock(all.mutex);
  const auto [entry, is_new] =
      all.ids.try_emplace({file, line}, kFirstCallSite + static_cast<SiteId>(all.sites.size()));
  if (is_new) all.sites.push_back({file, line});
  known = {file, line, entry->second};
  return entry->second;
}

Site site_of(SiteId id) {
  if (id >= kFirstCallSite) {
    CallSites& all = call_sites();
    const std::lock_guard lock(all.mutex);
    return all.sites.at(id - kFirstCallSite);
  }
  if (id == 0) return {"somewhere", 0};
  // The address is where the call returns to: one byte before lies in the call.
  Site result = line_at(reinterpret_cast<std::uintptr_t>(&__executable_start) + id - 1);
  if (result.line == 0) result.file = fmt::format("program+{:#x} (compile with -g1 to see the line)", id - 1);
  return result;
}

Site site_of_function(const void* address) { return line_at(reinterpret_cast<std::uintptr_t>(address)); }

std::string function_name(const void* address) {
  std::string name;
  backtrace_syminfo(
      symbols(), reinterpret_cast<std::uintptr_t>(address),
      [](void* data, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
        if (symbol != nullptr) *static_cast<std::string*>(data) = symbol;
      },
      ignore_error, &name);
  if (name.empty()) return fmt::format("kernel at {}", address);
  int status = 0;
  char* const plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (status == 0 && plain != nullptr) name = plain;
  std::free(plain);
  return without_arguments(name);
}

}  // namespace tandem::simulator
