// The simulated CUDA runtime: memory and events of other processes, which are files that these map as well.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/ipc.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::simulator {

namespace {

constexpr std::size_t kPage = 4096;

/// What a handle says.
struct FileOfProcess {
  static constexpr std::uint64_t kMemory = 0x7464654d454d4f31, kEvent = 0x7464654556454e31;

  std::uint64_t kind = 0, inode = 0, bytes = 0;
  std::int64_t process = 0;
  int file = 0;
};
static_assert(sizeof(FileOfProcess) <= sizeof(cudaIpcMemHandle_t));

template <typename Handle>
bool write_handle(Handle* handle, FileOfProcess content) {
  struct stat status{};
  if (fstat(content.file, &status) != 0) return false;
  content.inode = status.st_ino;
  content.process = getpid();
  *handle = {};
  std::memcpy(handle->reserved, &content, sizeof content);
  return true;
}

template <typename Handle>
FileOfProcess read_handle(const Handle& handle) {
  FileOfProcess content;
  std::memcpy(&content, handle.reserved, sizeof content);
  return content;
}

/// A file of zeros as long as another, or -1.
int other_file(int file) {
  struct stat status{};
  const int other = memfd_create("tandem simulated other memory", MFD_CLOEXEC);
  if (other < 0 || (fstat(file, &status) == 0 && ftruncate(other, status.st_size) == 0)) return other;
  close(other);
  return -1;
}

/// The file, opened here, or -1: the process has ended or closed it.
int open_file(const FileOfProcess& content) {
  const std::string path = fmt::format("/proc/{}/fd/{}", content.process, content.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || (fstat(file, &status) == 0 && status.st_ino == content.inode)) return file;
  close(file);
  return -1;
}

using Pages = std::map<void*, std::shared_ptr<SharedPage>>;

/// How often memory of this process is open elsewhere, by where it begins; and the same of memory that is open here.
Pages& exported() {
  static Pages pages;
  return pages;
}
Pages& imported() {
  static Pages pages;
  return pages;
}

/// Each has a process's number for each time that it has opened the memory.
void replace_one(const SharedPage& page, int old, int now) {
  for (std::size_t i = 0; i < SharedPage::kNumbers; ++i) {
    int expected = old;
    if (page.number(i).compare_exchange_strong(expected, now)) return;
  }
}

/// Runs what streams have before marks that other processes may wait for: on a GPU nobody need do anything for that.
class PassingThread {
 public:
  PassingThread() : thread_([this] { work(); }) {}
  ~PassingThread() {
    ends_ = true;
    thread_.join();
  }
  PassingThread(const PassingThread&) = delete;
  PassingThread& operator=(const PassingThread&) = delete;

  /// For who holds the runtime's mutex.
  void add(const Clock& clock) { waiting_.push_back(clock); }

 private:
  void work() {
    while (!ends_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(runtime_mutex());
      try {
        std::erase_if(waiting_, [](const Clock& clock) { return timeline().run_towards(clock); });
      } catch (...) {
        timeline().keep_fault(std::current_exception());
      }
    }
  }

  std::vector<Clock> waiting_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

std::size_t pages_bytes(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

std::shared_ptr<SharedPage> SharedPage::map(int file, std::size_t offset, bool owns_file) {
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (page == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedPage>(new SharedPage(page, file, owns_file));
}

SharedPage::~SharedPage() {
  munmap(page_, kPage);
  if (owns_file_) close(file_);
}

int take_back_export(void* start) {
  const auto found = exported().find(start);
  if (found == exported().end()) return 0;
  int times = 0;
  for (std::size_t i = 0; i < SharedPage::kNumbers; ++i) {
    const int process = found->second->number(i);
    times += process != 0 && kill(process, 0) == 0;
  }
  exported().erase(found);
  return times;
}

void pass_soon(const Clock& clock) {
  if (timeline().is_done(clock)) return;
  static PassingThread thread;
  thread.add(clock);
}

}  // namespace tandem::simulator

using namespace tandem::simulator;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* start) {
  const std::lock_guard lock(runtime_mutex());
  if (is_imported(start)) return note(cudaErrorInvalidValue);
  timeline().synchronize_all();  // its pages move into a file
  const int file = file_of_device_memory(start);
  if (file < 0) return note(cudaErrorInvalidValue);
  const std::size_t bytes = allocation_bytes(start);
  if (auto& page = exported()[start]; page == nullptr) page = SharedPage::map(file, pages_bytes(bytes), false);
  const bool is_done = exported()[start] != nullptr &&
                       write_handle(handle, {.kind = FileOfProcess::kMemory, .bytes = bytes, .file = file});
  return note(is_done ? cudaSuccess : cudaErrorMapBufferObjectFailed);
}

cudaError_t cudaIpcOpenMemHandle(void** start, cudaIpcMemHandle_t handle, unsigned flags) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const FileOfProcess content = read_handle(handle);
  if (flags != cudaIpcMemLazyEnablePeerAccess) return note(cudaErrorInvalidValue);
  if (content.kind != FileOfProcess::kMemory) return note(cudaErrorInvalidResourceHandle);
  if (content.process == getpid()) return note(cudaErrorDeviceUninitialized);
  if (settings().ipc == Ipc::off) return note(cudaErrorMapBufferObjectFailed);
  const std::lock_guard lock(runtime_mutex());
  int file = open_file(content);
  if (file < 0) return note(cudaErrorMapBufferObjectFailed);
  auto page = SharedPage::map(file, pages_bytes(content.bytes), false);
  if (settings().ipc == Ipc::foreign) close(std::exchange(file, other_file(file)));
  *start = page ? import_device_memory(current_device(), file, content.bytes) : nullptr;
  if (*start == nullptr) {
    close(file);
    return note(cudaErrorMapBufferObjectFailed);
  }
  replace_one(*page, 0, getpid());
  imported()[*start] = std::move(page);
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* start, TandemWhere where) {
  const std::lock_guard lock(runtime_mutex());
  const auto found = imported().find(start);
  if (found == imported().end()) return note(cudaErrorInvalidValue);
  timeline().synchronize_all();
  StreamState& state = state_of(nullptr);
  timeline().enqueue(state, "cudaIpcCloseMemHandle", site_id(where), [start] {
    check_order_of_free(start);
    free_device_memory(start);
  });
  timeline().synchronize(state);
  replace_one(*found->second, getpid(), 0);
  imported().erase(found);
  return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (event == nullptr || event->is_imported) return note(cudaErrorInvalidResourceHandle);
  if (!event->is_interprocess) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(runtime_mutex());
  if (event->shared == nullptr) {
    const int file = memfd_create("tandem simulated event", MFD_CLOEXEC);
    if (file < 0) return note(cudaErrorMapBufferObjectFailed);
    if (ftruncate(file, kPage) == 0) event->shared = SharedPage::map(file, 0, true);
    if (event->shared == nullptr) {
      close(file);
      return note(cudaErrorMapBufferObjectFailed);
    }
  }
  const bool is_done = write_handle(handle, {.kind = FileOfProcess::kEvent, .file = event->shared->file()});
  return note(is_done ? cudaSuccess : cudaErrorMapBufferObjectFailed);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  const FileOfProcess content = read_handle(handle);
  if (content.kind != FileOfProcess::kEvent) return note(cudaErrorInvalidValue);
  if (content.process == getpid()) return note(cudaErrorDeviceUninitialized);
  const std::lock_guard lock(runtime_mutex());
  const int file = settings().ipc == Ipc::off ? -1 : open_file(content);
  auto page = file < 0 ? nullptr : SharedPage::map(file, 0, true);
  if (page == nullptr) {
    if (file >= 0) close(file);
    return note(cudaErrorMapBufferObjectFailed);
  }
  *event = new CUevent_st;
  (*event)->timed = false;
  (*event)->is_imported = true;
  (*event)->shared = std::move(page);
  return cudaSuccess;
}
