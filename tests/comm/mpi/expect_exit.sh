#!/bin/sh
# Runs a command and compares how it ends: expect_exit.sh CODE LINES PATTERN COMMAND...
# CODE is its exit code, LINES how many lines of its output match the extended regular expression PATTERN.
code=$1 lines=$2 pattern=$3
shift 3
output=$("$@" 2>&1)
actual=$?
printf '%s\n' "$output"
# Open MPI 4.1's mpiexec at times chokes on its own notice of an aborted rank, and hangs; our ranks are gone by then.
if printf '%s\n' "$output" | grep -q 'ORTE_ERROR_LOG: Data unpack .*show_help.c'; then
  echo "mpiexec broke down by itself; once more"
  output=$("$@" 2>&1)
  actual=$?
  printf '%s\n' "$output"
fi
matches=$(printf '%s\n' "$output" | grep -cE "$pattern")
if [ "$actual" -ne "$code" ] || [ "$matches" -ne "$lines" ]; then
  echo "expected exit code $code and $lines lines matching '$pattern', got $actual and $matches"
  exit 1
fi
