#!/usr/bin/env bash
# Runs mpiexec and compares how it ends: expect_exit.sh CODE LINES PATTERN SECONDS MPIEXEC...
# CODE is its exit code, LINES how many lines of its output match the extended regular expression PATTERN. A hang ends
# after SECONDS.
# Open MPI 4.1.4 over PMIx 4.2 (Debian 12) at times deadlocks or crashes in PMIx_server_finalize after a rank has failed,
# when no rank is left. That is none of our doing: the command then runs again, up to twice.
code=$1 lines=$2 pattern=$3 seconds=$4
shift 4
output=$(mktemp)
trap 'rm -f "$output"' EXIT

children_of() { cat /proc/"$1"/task/*/children 2>/dev/null || true; }

# True while process $1 has a child that runs. One that has ended and that nobody asked about (a zombie) does not count.
has_running_child() {
  local child state
  for child in $(children_of "$1"); do
    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$child/status" 2>/dev/null)
    case "$state" in '' | Z* | X*) ;; *) return 0 ;; esac
  done
  return 1
}

# mpiexec's last words: it writes them when no rank is left. Open MPI 5's calls itself prterun.
has_reported() {
  grep -qE '^(mpiexec|mpirun|prterun) (detected that one or more processes exited|noticed that process)' "$output"
}

# The exit code of the command in $actual; true if mpiexec itself broke down, which says nothing about the ranks.
breaks_down() {
  timeout -k 5 "$seconds" "$@" >"$output" 2>&1 &
  local timer=$! mpiexec started=no idle=0
  while kill -0 "$timer" 2>/dev/null; do
    sleep 0.1
    read -r mpiexec _ <<<"$(children_of "$timer")"
    [ -n "$mpiexec" ] || continue
    if has_reported; then
      idle=$((idle + 1))
    elif has_running_child "$mpiexec"; then
      started=yes idle=0
    elif [ "$started" = yes ]; then
      idle=$((idle + 1))
    fi
    if [ "$idle" -ge 100 ]; then
      kill -9 "$mpiexec"
      wait "$timer"
      echo "mpiexec did not end though all its ranks had"
      return 0
    fi
  done
  wait "$timer"
  actual=$?
  grep -q 'PMIx_server_finalize' "$output"
}

for attempt in 1 2 3; do
  if breaks_down "$@"; then broken=yes; else broken=no; fi
  cat "$output"
  [ "$broken" = yes ] || break
  echo "mpiexec broke down by itself (attempt $attempt)"
done
if [ "$broken" = no ] && [ "$actual" -eq 77 ]; then exit 77; fi  # the program says that it cannot run here
matches=$(grep -cE "$pattern" "$output")
if [ "$broken" = yes ] || [ "$actual" -ne "$code" ] || [ "$matches" -ne "$lines" ]; then
  echo "expected exit code $code and $lines lines matching '$pattern', got ${actual:-none} and $matches"
  exit 1
fi
