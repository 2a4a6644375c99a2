#!/bin/sh
# Runs a command and compares how it ends: expect_exit.sh CODE LINES PATTERN COMMAND...
# CODE is its exit code, LINES how many lines of its output match the extended regular expression PATTERN.
code=$1 lines=$2 pattern=$3
shift 3
output=$("$@" 2>&1)
actual=$?
printf '%s\n' "$output"
matches=$(printf '%s\n' "$output" | grep -cE "$pattern")
if [ "$actual" -ne "$code" ] || [ "$matches" -ne "$lines" ]; then
  echo "expected exit code $code and $lines lines matching '$pattern', got $actual and $matches"
  exit 1
fi
