// Processes that end (pidfd_open), and their memory (process_vm_readv).
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/core/error.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace tandem::comm {

namespace {

/// A file that tells when a process has ended, or -1.
int open_process([[maybe_unused]] std::int64_t process) {
#if defined(SYS_pidfd_open)
  return static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#else
  return -1;
#endif
}

/// What to do about a refusal, for the end of a text.
const char* advice_for(int code) {
  return code == EPERM ? " (the system sets that by kernel.yama.ptrace_scope, a container by its rules on system calls)"
                       : "";
}

}  // namespace

PeerProcesses::~PeerProcesses() {
  for (const Peer& peer : peers_)
    if (peer.file >= 0) close(peer.file);
}

void PeerProcesses::exchange(Backend& backend) {
  for (const std::string& text : backend.all_gather_bytes(std::to_string(getpid()))) {
    const std::int64_t process = std::stoll(text);
    const bool is_here = process == getpid();
    peers_.push_back({process, is_here, is_here ? -1 : open_process(process)});
  }
}

bool PeerProcesses::has_ended(int rank) const {
  pollfd look{.fd = peer(rank).file, .events = POLLIN, .revents = 0};
  return peer(rank).file >= 0 && poll(&look, 1, 0) == 1;
}

void PeerProcesses::read(int rank, std::uint64_t address, void* into, std::int64_t bytes) const {
  // By pieces: the kernel holds the pages of a piece meanwhile, and may stop short of its end.
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  auto* to = static_cast<std::byte*>(into);
  while (bytes > 0) {
    const auto piece = static_cast<std::size_t>(std::min(kPiece, bytes));
    const iovec here{to, piece}, there{reinterpret_cast<void*>(address), piece};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(process(rank)), &here, 1, &there, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    const int code = got < 0 ? errno : EFAULT;
    require(got > 0, "cannot read {} bytes in the memory of rank {} (process {}): {}{}", bytes, rank, process(rank),
            std::system_category().message(code), advice_for(code));
    to += got;
    address += static_cast<std::uint64_t>(got);
    bytes -= got;
  }
}

bool is_readable_by_others(std::uint64_t address, std::int64_t bytes) {
  // The kernel looks at a mapping for this process as it does for others.
  const auto can_read = [](std::uint64_t at) {
    std::byte byte{};
    const iovec here{&byte, 1}, there{reinterpret_cast<void*>(at), 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
  };
  return bytes == 0 || (can_read(address) && can_read(address + static_cast<std::uint64_t>(bytes - 1)));
}

}  // namespace tandem::comm
