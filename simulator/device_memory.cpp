// Device memory: address space, allocations, protection.
#include "tandem/simulator/device_memory.h"

#include "tandem/simulator/address_marks.h"
#include "tandem/simulator/planned_failures.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/shadow.h"

#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tandem::simulator {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGap = 256;  // between allocations, so that running over an end is seen
constexpr int kMaxDevices = 8;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

class Arena {
 public:
  Arena() : device_bytes_((settings().memory_bytes + (std::size_t{64} << 20)) & ~std::size_t{4095}) {
    bytes_ = device_bytes_ * kMaxDevices;
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error("simulator: no address space for device memory; lower TANDEM_SIMULATOR_MEMORY");
    base_ = static_cast<char*>(memory);
    key_ = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key_ > 0) pkey_mprotect(base_, bytes_, PROT_READ | PROT_WRITE, key_);
    if constexpr (kChecksMemory) global_shadow().map(base_, bytes_);
    for (int device = 0; device < kMaxDevices; ++device) {
      // A page at the start stays free, so that running backwards off the first allocation is seen, too.
      char* const begin = base_ + static_cast<std::size_t>(device) * device_bytes_;
      holes_[begin + kPage] = device_bytes_ - kPage;
      marked_end_[device] = begin;
    }
  }

  bool contains(const void* address) const {
    return static_cast<std::size_t>(static_cast<const char*>(address) - base_) < bytes_;
  }
  int device_of(const void* address) const {
    return static_cast<int>(static_cast<std::size_t>(static_cast<const char*>(address) - base_) / device_bytes_);
  }

  /// `is_import`: of another process, which counts it.
  void* allocate(int device, std::size_t bytes, std::size_t alignment = 256, bool whole_pages = false,
                 bool is_import = false) {
    if (!is_import && used_[device] + bytes > settings().memory_bytes) return nullptr;
    const std::size_t needed = round_up(bytes + kGap, whole_pages ? kPage : 256);
    for (auto hole = holes_.lower_bound(base_ + static_cast<std::size_t>(device) * device_bytes_);
         hole != holes_.end() && device_of(hole->first) == device; ++hole) {
      const std::size_t skipped = (alignment - reinterpret_cast<std::uintptr_t>(hole->first) % alignment) % alignment;
      if (hole->second < needed + skipped) continue;
      char* const start = hole->first + skipped;
      const std::size_t rest = hole->second - needed - skipped;
      if (skipped > 0)
        hole->second = skipped;
      else
        holes_.erase(hole);
      if (rest > 0) holes_[start + needed] = rest;
      mark_unusable_until(device, start + needed);
      blocks_[start] = bytes;
      if (whole_pages) files_[start] = -1;
      if (is_import)
        imported_.insert(start);
      else
        used_[device] += bytes;
      return start;
    }
    return nullptr;
  }

  /// Lets host code touch whole pages of an allocation, until it is released.
  void share_with_host(char* start, std::size_t bytes) {
    if (key_ > 0) pkey_mprotect(start, bytes, PROT_READ | PROT_WRITE, 0);
    managed_.insert(start);
  }

  bool release(char* start) {
    const auto block = blocks_.find(start);
    if (block == blocks_.end()) return false;
    const int device = device_of(start);
    if (imported_.erase(start) == 0) used_[device] -= block->second;
    std::size_t unit = 256;
    if (const auto pages = files_.find(start); pages != files_.end()) {
      unit = kPage;
      if (pages->second >= 0) {
        map_pages(start, block->second, -1);
        close(pages->second);
      }
      files_.erase(pages);
    }
    if (managed_.erase(start) != 0 && key_ > 0) pkey_mprotect(start, block->second, PROT_READ | PROT_WRITE, key_);
    retired_.erase(start);
    std::size_t size = round_up(block->second + kGap, unit);
    blocks_.erase(block);
    auto next = holes_.lower_bound(start);
    if (next != holes_.end() && next->first == start + size && device_of(next->first) == device) {
      size += next->second;
      next = holes_.erase(next);
    }
    if (next != holes_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == start && device_of(before->first) == device) {
        before->second += size;
        return true;
      }
    }
    holes_[start] = size;
    return true;
  }

  /// Brings the pages of an allocation into a file, if they are not in one.
  int file_of(char* start) {
    const auto pages = files_.find(start);
    if (pages == files_.end()) return -1;
    const std::size_t bytes = blocks_.at(start);
    if (pages->second >= 0 || imported_.count(start) != 0) return pages->second;
    const int file = memfd_create("tandem simulated GPU", MFD_CLOEXEC);
    const DeviceAccess access;
    const bool is_full = file >= 0 && ftruncate(file, static_cast<off_t>(round_up(bytes, kPage) + kPage)) == 0 &&
                         write_all(file, start, bytes) && map_pages(start, bytes, file);
    if (!is_full) {
      if (file >= 0) close(file);
      return -1;
    }
    pages->second = file;
    return file;
  }
  /// An allocation whose pages are those of a file, which it keeps.
  void* import(int device, int file, std::size_t bytes) {
    auto* const start = static_cast<char*>(allocate(device, bytes, kPage, true, true));
    if (start == nullptr) return nullptr;
    if (map_pages(start, bytes, file)) {
      files_[start] = file;
      return start;
    }
    release(start);
    return nullptr;
  }
  bool is_imported(const void* start) const {
    return imported_.count(static_cast<char*>(const_cast<void*>(start))) != 0;
  }

  /// The allocation that begins at or last before the address on its device, or null.
  const std::pair<char* const, std::size_t>* before(const void* address) const {
    auto next = blocks_.upper_bound(static_cast<char*>(const_cast<void*>(address)));
    if (next == blocks_.begin()) return nullptr;
    --next;
    return device_of(next->first) == device_of(address) ? &*next : nullptr;
  }

  void set_retired(char* start, bool retired) {
    if (retired)
      retired_.insert(start);
    else
      retired_.erase(start);
  }
  bool is_retired(char* start) const { return retired_.count(start) != 0; }

  std::size_t used(int device) const { return used_[device]; }
  int key() const { return key_; }
  const std::map<char*, std::size_t>& blocks() const { return blocks_; }

 private:
  /// The sanitizer's marks take an eighth of what they mark, so they only reach some way beyond what was ever
  /// allocated.
  void mark_unusable_until(int device, char* end) {
    constexpr std::size_t kBeyond = std::size_t{16} << 20;
    char*& marked = marked_end_[device];
    if (end <= marked) return;
    char* const device_end = base_ + static_cast<std::size_t>(device + 1) * device_bytes_;
    char* const until = static_cast<std::size_t>(device_end - end) > kBeyond ? end + kBeyond : device_end;
    mark_unusable(marked, static_cast<std::size_t>(until - marked));
    marked = until;
  }

  static bool write_all(int file, const char* from, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t more = pwrite(file, from + done, bytes - done, static_cast<off_t>(done));
      if (more <= 0) return false;
      done += static_cast<std::size_t>(more);
    }
    return true;
  }

  /// Puts pages of a file, or new ones of this process alone, in the place of an allocation's.
  bool map_pages(char* start, std::size_t bytes, int file) {
    const std::size_t length = round_up(bytes, kPage);
    const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    if (mmap(start, length, PROT_READ | PROT_WRITE, kind | MAP_FIXED, file, 0) == MAP_FAILED) return false;
    if (key_ > 0) pkey_mprotect(start, length, PROT_READ | PROT_WRITE, key_);
    mark_unusable(start + bytes, length - bytes);
    return true;
  }

  std::size_t device_bytes_, bytes_ = 0;
  char* base_ = nullptr;
  char* marked_end_[kMaxDevices] = {};
  int key_ = -1;
  std::map<char*, std::size_t> holes_, blocks_;
  std::set<char*> managed_, retired_, imported_;
  std::map<char*, int> files_;  // of allocations of whole pages; -1: in none
  std::size_t used_[kMaxDevices] = {};
};

Arena& arena() {
  static Arena the_arena;
  return the_arena;
}

thread_local int access_depth = 0;

void make_like_new(void* start, std::size_t bytes) {
  const DeviceAccess access;
  mark_usable(start, bytes);
  std::memset(start, 0xff, bytes);
  if constexpr (kChecksMemory)
    global_shadow().set(reinterpret_cast<std::uintptr_t>(start), bytes, Stamp::kUninitialised);
}

void make_unusable(void* start, std::size_t bytes) {
  if constexpr (kChecksMemory)
    global_shadow().set(reinterpret_cast<std::uintptr_t>(start), bytes, Stamp::kNotAllocated);
  mark_unusable(start, bytes);
}

}  // namespace

void* allocate_device_memory(int device, std::size_t bytes) {
  if (allocation_fails()) return nullptr;
  void* const start = arena().allocate(device, bytes);
  if (start == nullptr) return nullptr;
  make_like_new(start, bytes);
  return start;
}

void* allocate_whole_pages(int device, std::size_t bytes) {
  if (allocation_fails()) return nullptr;
  void* const start = arena().allocate(device, bytes, kPage, true);
  if (start == nullptr) return nullptr;
  make_like_new(start, bytes);
  return start;
}

int file_of_device_memory(void* start) { return arena().file_of(static_cast<char*>(start)); }

void* import_device_memory(int device, int file, std::size_t bytes) {
  void* const start = arena().import(device, file, bytes);
  if (start == nullptr) return nullptr;
  mark_usable(start, bytes);
  if constexpr (kChecksMemory) global_shadow().set(reinterpret_cast<std::uintptr_t>(start), bytes, Stamp::kLongAgo);
  return start;
}

bool is_imported(const void* start) { return arena().is_imported(start); }

void* allocate_managed_memory(int device, std::size_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;  // protection is by page
  void* const start = arena().allocate(device, bytes, kPage);
  if (start == nullptr) return nullptr;
  arena().share_with_host(static_cast<char*>(start), bytes);
  mark_usable(start, bytes);
  std::memset(start, 0, bytes);
  if constexpr (kChecksMemory) global_shadow().set(reinterpret_cast<std::uintptr_t>(start), bytes, Stamp::kLongAgo);
  return start;
}

bool free_device_memory(void* start) {
  const std::size_t bytes = allocation_bytes(start);
  if (bytes == 0) return false;
  make_unusable(start, bytes);
  return arena().release(static_cast<char*>(start));
}

void retire_device_memory(void* start) {
  {
    const DeviceAccess access;
    std::memset(start, 0xff, allocation_bytes(start));
  }
  make_unusable(start, allocation_bytes(start));
  arena().set_retired(static_cast<char*>(start), true);
}

void renew_device_memory(void* start) {
  arena().set_retired(static_cast<char*>(start), false);
  make_like_new(start, allocation_bytes(start));
}

bool is_device_address(const void* address) { return arena().contains(address); }
int device_of(const void* address) { return arena().device_of(address); }

std::size_t allocation_bytes(const void* start) {
  const auto* const block = arena().contains(start) ? arena().before(start) : nullptr;
  return block != nullptr && block->first == start ? block->second : 0;
}

std::size_t bytes_from(const void* address) {
  const auto* const block = arena().contains(address) ? arena().before(address) : nullptr;
  if (block == nullptr || arena().is_retired(block->first)) return 0;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - block->first);
  return offset < block->second ? block->second - offset : 0;
}

std::size_t free_device_bytes(int device) { return settings().memory_bytes - arena().used(device); }

std::string describe_device_address(std::uintptr_t address) {
  const auto* const block = arena().before(reinterpret_cast<const void*>(address));
  if (block == nullptr) return fmt::format("device address {:#x}, before every allocation", address);
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(block->first);
  if (offset < block->second) {
    return fmt::format("byte {} of an allocation of {} bytes{}", offset, block->second,
                       arena().is_retired(block->first) ? ", which is a graph's and not in use" : "");
  }
  if (offset < block->second + (std::size_t{1} << 20))
    return fmt::format("byte {} past the end of an allocation of {} bytes", offset - block->second, block->second);
  return fmt::format("device address {:#x}, in no allocation (freed?)", address);
}

bool is_program_data(std::uintptr_t address) {
  using Ranges = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;
  static const Ranges ranges = [] {
    Ranges found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
            const std::uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            static_cast<Ranges*>(data)->emplace_back(start, start + info->dlpi_phdr[i].p_memsz);
          }
          return 0;
        },
        &found);
    return found;
  }();
  for (const auto& [start, end] : ranges) {
    if (address >= start && address < end) return true;
  }
  return false;
}

void forget_order_of_device_memory() {
  for (const auto& [start, bytes] : arena().blocks())
    global_shadow().forget_order(reinterpret_cast<std::uintptr_t>(start), bytes);
}

DeviceAccess::DeviceAccess() {
  const int key = arena().key();
  if (access_depth++ == 0 && key > 0) pkey_set(key, 0);
}

DeviceAccess::~DeviceAccess() {
  const int key = arena().key();
  if (--access_depth == 0 && key > 0) pkey_set(key, PKEY_DISABLE_ACCESS);
}

}  // namespace tandem::simulator
