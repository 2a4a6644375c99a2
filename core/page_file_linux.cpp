// Mappings of a memory file.
#include "tandem/core/page_file.h"

#include "tandem/core/error.h"
#include "tandem/core/memory_file.h"
#include "tandem/core/page_block.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

namespace tandem {

namespace {

constexpr std::int64_t kPage = PageBlock::kPage;

/// For mmap() and its like.
std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

/// What this system has, bytes.
std::int64_t memory_of_machine() {
  struct sysinfo info{};
  sysinfo(&info);
  return static_cast<std::int64_t>(info.totalram + info.totalswap) * info.mem_unit;
}

/// Of memory the system counts mappings of private memory, and none of files. Of addresses each process needs as many
/// as all have together.
void check_limits() {
  for (const auto& [resource, name] : {std::pair{RLIMIT_DATA, "memory (ulimit -d)"},
                                       {RLIMIT_FSIZE, "files (ulimit -f)"},
                                       {RLIMIT_AS, "addresses (ulimit -v)"}}) {
    rlimit limit{};
    require(getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY,
            "blocks that others can map: this process has a limit of its {}", name);
  }
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  int mode = 0;
  require(!(file >> mode) || mode != 2,
          "blocks that others can map: the system counts memory when it is asked for "
          "(vm.overcommit_memory is 2)");
}

/// Whether a page of 2 MiB comes as one: then all of it is there once a byte was written. More than one is tried: where
/// memory is in pieces, the system may have none at the moment.
bool gives_large_pages(PageFile& file) {
  constexpr std::int64_t kTried = 4;
  const PageFile::Mapped mapped = file.map(kTried * kPage, kPage);
  if (mapped.start == nullptr) return false;
  bool is_large = false;
  for (std::int64_t page = 0; page < kTried && !is_large; ++page) {
    std::byte* const start = mapped.start + page * kPage;
    *reinterpret_cast<volatile std::byte*>(start) = std::byte{1};
    unsigned char state = 0;
    is_large = mincore(start + kPage / 2, 4096, &state) == 0 && (state & 1) != 0;
  }
  munmap(mapped.start, size(kTried * kPage));
  file.give_back(mapped.range);
  return is_large;
}

}  // namespace

PageFile::PageFile() : most_(memory_of_machine()) {
  check_limits();
  file_ = make_memory_file("tandem blocks");
  require(file_ >= 0, "blocks that others can map: memfd_create: {}", std::system_category().message(errno));
  try {
    require(ftruncate(file_, kBytes) == 0, "blocks that others can map: {}", std::system_category().message(errno));
    require(gives_large_pages(*this),
            "blocks that others can map: the system gives shared memory small pages; with \"advise\" in "
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled it gives large ones");
  } catch (...) {
    close(file_);
    throw;
  }
}

PageFile::~PageFile() { close(file_); }

PageFile::Mapped PageFile::map(std::int64_t bytes, std::int64_t alignment) noexcept {
  const FileRange range{round_up(end_, alignment), bytes};
  if (bytes > most_ || bytes > kBytes - range.begin) return {};
  std::byte* const start = map_file_ranges(file_, {&range, 1});
  if (start == nullptr) return {};
  if (alignment == kPage) madvise(start, size(bytes), MADV_HUGEPAGE);
  end_ = range.begin + bytes;
  return {start, range};
}

void PageFile::give_back(FileRange range) noexcept {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range.begin, range.bytes);
}

void PageFile::keep_from_parent(std::byte* start, FileRange range) const noexcept {
  if (mmap(start, size(range.bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_, range.begin) == MAP_FAILED)
    std::abort();
}

}  // namespace tandem
