// A library for LD_PRELOAD that lets calls on files fail or take long, or kills the process in them. TANDEM_TEST_FAULTS
// holds CALL:PART:FIRST:HOW[:COUNT], several behind each other with blanks between: of those calls of CALL (open,
// write, fsync, rename, mkdir) whose path has PART in it, the FIRST-th and the COUNT-1 behind it (1 unless given; 0:
// all) fail with the error HOW (EIO, EDQUOT, ENOSPC, EROFS), kill the process (KILL), which has written half of its
// data then, or, but for write, take so many seconds longer (5s). TANDEM_TEST_KILL_LOG=FILE gets a line about each.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>
#include <string>

namespace {

struct Fault {
  std::string call, part, how;
  int first = 0, count = 1;
  std::atomic<int> calls{0};
};

int number_of(const std::string& how) {
  if (how == "EIO") return EIO;
  if (how == "EDQUOT") return EDQUOT;
  if (how == "ENOSPC") return ENOSPC;
  if (how == "EROFS") return EROFS;
  return 0;
}

std::deque<Fault>& faults() {
  static auto* const all = [] {
    auto* const list = new std::deque<Fault>;
    const char* const given = std::getenv("TANDEM_TEST_FAULTS");
    std::istringstream text(given == nullptr ? "" : given);
    for (std::string one; text >> one;) {
      Fault& fault = list->emplace_back();
      std::istringstream parts(one);
      std::string number;
      std::getline(parts, fault.call, ':');
      std::getline(parts, fault.part, ':');
      if (std::getline(parts, number, ':')) fault.first = std::atoi(number.c_str());
      std::getline(parts, fault.how, ':');
      if (std::getline(parts, number, ':')) fault.count = std::atoi(number.c_str());
    }
    return list;
  }();
  return *all;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void note(const Fault& fault, const std::string& path) {
  const char* const log = std::getenv("TANDEM_TEST_KILL_LOG");
  if (log == nullptr) return;
  const std::string line = fault.how + " in " + fault.call + " " + path + "\n";
  const int descriptor = real<int(const char*, int, ...)>("open")(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return;
  if (real<ssize_t(int, const void*, size_t)>("write")(descriptor, line.data(), line.size()) < 0) errno = 0;
  ::close(descriptor);
}

/// The fault that this call has, null for none.
const Fault* fault_of(const char* call, const std::string& path) {
  for (Fault& fault : faults()) {
    if (fault.call != call || path.find(fault.part) == std::string::npos) continue;
    const int number = ++fault.calls;
    if (number < fault.first || (fault.count > 0 && number >= fault.first + fault.count)) continue;
    note(fault, path);
    return &fault;
  }
  return nullptr;
}

/// Whether the call fails: errno says how. Or does not come back.
bool fails(const char* call, const std::string& path) {
  const Fault* const fault = fault_of(call, path);
  if (fault == nullptr) return false;
  if (fault->how == "KILL") ::kill(::getpid(), SIGKILL);
  if (fault->how.ends_with('s')) {
    ::sleep(static_cast<unsigned>(std::atoi(fault->how.c_str())));
    return false;
  }
  errno = number_of(fault->how);
  return true;
}

std::string path_of(int descriptor) {
  char path[PATH_MAX];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

int open_with(const char* name, const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && fails("open", path)) return -1;
  return real<int(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_with("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_with("open64", path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  auto* const go_on = real<ssize_t(int, const void*, size_t)>("write");
  if (faults().empty()) return go_on(descriptor, data, bytes);
  const Fault* const fault = fault_of("write", path_of(descriptor));
  if (fault == nullptr) return go_on(descriptor, data, bytes);
  if (fault->how == "KILL") {
    if (go_on(descriptor, data, bytes / 2) < 0) errno = 0;
    ::kill(::getpid(), SIGKILL);
  }
  errno = number_of(fault->how);
  return -1;
}

int fsync(int descriptor) { return fails("fsync", path_of(descriptor)) ? -1 : real<int(int)>("fsync")(descriptor); }

int rename(const char* from, const char* to) {
  return fails("rename", to) ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (fails("rename", to)) return -1;
  return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from, to_folder, to, flags);
}

int mkdir(const char* path, mode_t mode) {
  return fails("mkdir", path) ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
}

}  // extern "C"
