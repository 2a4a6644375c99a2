#!/usr/bin/env bash
# Installs the simulator to a fresh folder and lets another project test its kernels with it: the correct one passes in all
# orders, the one with a race is stopped with a message that names it. Then the same with examples/own_kernel, and with the page of
# the tutorial that is about it.
# usage: check_simulated.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
source_dir=$(realpath "$1") build_dir=$(realpath "$2") work_dir=$(realpath -m "$3")
rm -rf "$work_dir"
mkdir -p "$work_dir"
cmake --install "$build_dir" --prefix "$work_dir/prefix" >"$work_dir/install.log"
cmake -S "$source_dir/tests/consumer/simulated" -B "$work_dir/build" -G Ninja -DCMAKE_PREFIX_PATH="$work_dir/prefix" >"$work_dir/configure.log"
cmake --build "$work_dir/build" >"$work_dir/build.log"
ctest --test-dir "$work_dir/build" -R '^block_sum \(' --no-tests=error >"$work_dir/correct.log" ||
  { cat "$work_dir/correct.log"; echo "check_simulated: the correct kernel fails" >&2; exit 1; }
if ctest --test-dir "$work_dir/build" -R '^block_sum_with_race' -V >"$work_dir/race.log"; then
  echo "check_simulated: nobody noticed the race" >&2
  exit 1
fi
found=$(grep -c 'data race in block_sum: .*sums' "$work_dir/race.log" || true)
placed=$(grep -c 'at .*block_sum_with_race.cu:12' "$work_dir/race.log" || true)
echo "check_simulated: race named in $found of 5 orders, placed at its line in $placed"
[ "$found" -eq 5 ] && [ "$placed" -ge 5 ]

cmake -S "$source_dir/examples/own_kernel" -B "$work_dir/own_kernel" -G Ninja -DCMAKE_PREFIX_PATH="$work_dir/prefix" >"$work_dir/configure.log"
cmake --build "$work_dir/own_kernel" >"$work_dir/build.log"
ctest --test-dir "$work_dir/own_kernel" -V --no-tests=error >"$work_dir/own_kernel.log" || { cat "$work_dir/own_kernel.log"; exit 1; }
[ "$(grep -c ': forward right, backward right$' "$work_dir/own_kernel.log")" -eq 5 ] || { cat "$work_dir/own_kernel.log"; exit 1; }
CMAKE_GENERATOR=Ninja python3 "$source_dir/tests/consumer/check_tutorial.py" "$source_dir" "$work_dir/prefix" "$work_dir" 8-your-own-cuda-kernel.md
