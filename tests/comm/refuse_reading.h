// A process that may not read the memory of others, as in containers that forbid it.
#pragma once

#include "tandem/core/error.h"

#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#endif

namespace tandem::test {

/// From now on the system refuses process_vm_readv() to this process, which it does not forget.
inline void refuse_reading() {
#if defined(__linux__)
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},  // the number of the call
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_process_vm_readv},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{.len = 4, .filter = program};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0,
          "no filter of system calls: {}", errno);
#endif
}

}  // namespace tandem::test
