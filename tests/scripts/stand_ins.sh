# Sourced by tests of scripts that run among stand-ins. It goes to a new folder, $work, which is removed at the end, and
# counts failures in $failures. What the script under test may find is in bin: links to real tools, and stand-ins.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir bin
failures=0

# real_tools NAME...: links to those of this machine
real_tools() {
  local tool
  for tool; do ln -s "$(command -v "$tool")" "bin/$tool" || exit 1; done
}

# stand_in NAME: makes a program of the bash commands on standard input
stand_in() { { echo '#!/usr/bin/env bash'; cat; } >"bin/$1" && chmod +x "bin/$1"; }
