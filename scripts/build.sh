#!/usr/bin/env bash
# Configures and builds one preset, quietly where all goes well: scripts/build.sh [PRESET [TARGET ...]]
# Without a preset: cuda where a GPU and nvcc answer, else cpu. Prints the build folder's name last.
# Environment: TANDEM_WERROR=ON makes warnings errors, as CI has them; by default a compiler newer than ours stops nobody.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-}
case "$preset" in -*) echo "usage: scripts/build.sh [PRESET [TARGET ...]]" >&2; exit 2 ;; esac
if [ -z "$preset" ]; then
  preset=cpu
  if command -v nvcc >/dev/null && nvidia-smi -L >/dev/null 2>&1; then preset=cuda; fi
fi
shift || true

echo "build: preset $preset" >&2
# Tests are built only where Catch2 is: running the main job must not need it.
tests=()
[ -e /usr/include/catch2 ] || tests=(-DTANDEM_BUILD_TESTS=OFF)
# Paths relative to the tree: clones of one tree then share the compiler cache.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" "${tests[@]}" "-DTANDEM_WERROR=${TANDEM_WERROR:-OFF}" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
sed -n '/-- Tandem/,/ccache/p' "$log" >&2
cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"} >&2
echo "build/$preset"
