#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one and perhaps no network: builds for the GPU found, runs every CUDA
# test and compute-sanitizer, compares with the golden outputs, runs benchmarks and a short training, and prints a table.
# usage: scripts/gpu_check.sh [--quick] [--dry-run]
#   --quick    the tests and a short training only
#   --dry-run  for machines without a GPU: does all but what a GPU is needed for, and says so in the table
# Environment: OUT      where logs, recordings and the table go (build/gpu_check)
#              OFFLINE  Debian packages collected by scripts/offline_bundle.sh (offline/); used where it exists
# Exit code 1 if any step failed, 2 for a machine or arguments that it cannot work with.
set -uo pipefail
cd "$(dirname "$0")/.."

quick=0 dry=0
for argument in "$@"; do
  case "$argument" in
    --quick) quick=1 ;;
    --dry-run) dry=1 ;;
    *) echo "usage: scripts/gpu_check.sh [--quick] [--dry-run]" >&2; exit 2 ;;
  esac
done
root=$PWD
out=${OUT:-$root/build/gpu_check}
offline=${OFFLINE:-$root/offline}
mkdir -p "$out"
table=$out/table.txt
: >"$table"
failures=0
started=$SECONDS

note() { printf '%-44s %-8s %6s  %s\n' "$1" "$2" "$3" "${4:-}" | tee -a "$table"; }

# step NAME COMMAND...: runs it with its output in $out/NAME.log and adds a line to the table.
step() {
  local name=$1 begin=$SECONDS
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    note "$name" ok "$((SECONDS - begin))s"
    return 0
  fi
  failures=$((failures + 1))
  note "$name" FAILED "$((SECONDS - begin))s" "see $out/$name.log"
  tail -n 15 "$out/$name.log"
  return 1
}

gpu_step() {
  if [ "$dry" -eq 1 ]; then note "$1" "no GPU" -; else step "$@"; fi
}

unpack_packages() {
  local prefix=$root/build/offline_prefix package
  rm -rf "$prefix" && mkdir -p "$prefix"
  for package in "$offline"/*.deb; do
    if command -v dpkg-deb >/dev/null; then
      dpkg-deb -x "$package" "$prefix" || return 1
    else
      (cd "$prefix" && ar p "$package" data.tar.xz | tar xJ) || return 1
    fi
  done
}

use_prefix() {
  local prefix=$root/build/offline_prefix libraries
  libraries=$prefix/usr/lib/x86_64-linux-gnu
  export CMAKE_PREFIX_PATH=$prefix/usr:$libraries/openmpi${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export PATH=$prefix/usr/bin:$PATH
  export LD_LIBRARY_PATH=$libraries:$libraries/openmpi/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export CPATH=$prefix/usr/include${CPATH:+:$CPATH} LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
  # Open MPI was built for /usr: this is where it is now.
  export OPAL_PREFIX=$prefix/usr OPAL_LIBDIR=$libraries/openmpi/lib OPAL_DATADIR=$prefix/usr/share
  export PMIX_INSTALL_PREFIX=$prefix/usr OMPI_MCA_btl_vader_single_copy_mechanism=none
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

architecture() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d .)
  case "$capability" in
    90) echo 90a ;;
    '') echo 90a ;;
    *) echo "$capability" ;;
  esac
}

describe_machine() {
  date -u +"%Y-%m-%d %H:%M UTC"
  git rev-parse HEAD 2>/dev/null || true
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv || true
  nvcc --version | tail -2
  nproc
}

build=$root/build/gpu
configure() {
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTANDEM_DEVELOPMENT_BUILD=ON -DTANDEM_CUDA=ON \
    -DCMAKE_CUDA_ARCHITECTURES="$(architecture)" -DCMAKE_CUDA_FLAGS=-Xptxas=-v
}
compile() { cmake --build "$build" --parallel "$(nproc)"; }

# Runs the CUDA tests of a room; with arguments, under that tool. A suite that skips itself has not run.
cuda_tests() {
  local room=$1
  shift
  "$@" "$build/tests/tandem_${room}_tests" "[cuda]" | tee "$out/.tests.log" || return 1
  ! grep -q "skipped, no\|skipped, this build" "$out/.tests.log"
}

# What cifar_train says of a cuBLAS or cuDNN that is missing, too old or something else.
library_refusals() { ctest --test-dir "$build" --no-tests=error --output-on-failure -R "cifar_train: (cuDNN is|cuBLAS is|auto does)"; }

sanitize() { cuda_tests "$1" compute-sanitizer --tool "$2" --error-exitcode 86 --launch-timeout 120; }

train() {
  local ranks=$1
  shift
  local program=("$build/apps/cifar_train" --device cuda --dataset synthetic --limit-train 4096 --limit-test 1024 --epochs 2
    --model small_cnn "$@")
  if [ "$ranks" -eq 1 ]; then "${program[@]}"; else mpirun --oversubscribe -np "$ranks" "${program[@]}" --check-replicas; fi
}

command -v nvcc >/dev/null || { echo "gpu_check: nvcc is not on the PATH; install the CUDA toolkit" >&2; exit 2; }
if ! nvidia-smi -L >/dev/null 2>&1 && [ "$dry" -eq 0 ]; then
  echo "gpu_check: nvidia-smi finds no GPU; use --dry-run for a rehearsal without one" >&2
  exit 2
fi

step machine describe_machine
if compgen -G "$offline/*.deb" >/dev/null; then
  step unpack unpack_packages && use_prefix
else
  note unpack - - "no packages in $offline: using the system's"
fi
# Its own headers of cuDNN serve a machine as well; those carried along are for machines that have only the library.
if [ -f "$offline/cudnn/include/cudnn.h" ]; then export CuDNN_ROOT=$offline/cudnn; fi
step configure configure && step build compile
if [ -x "$build/apps/device_query" ]; then
  step kernel_resources "$root/scripts/kernel_resources.py" "$out/build.log"
  gpu_step device_query "$build/apps/device_query"
  rooms=(core kernels op_cases layers data comm)
  for room in "${rooms[@]}"; do gpu_step "tests_$room" cuda_tests "$room"; done
  gpu_step library_refusals library_refusals
  gpu_step train_one_rank train 1
  gpu_step train_two_ranks train 2
  if [ "$quick" -eq 0 ]; then
    for tool in memcheck racecheck initcheck synccheck; do gpu_step "sanitizer_$tool" sanitize op_cases "$tool"; done
  fi
fi
note total "$([ "$failures" -eq 0 ] && echo ok || echo FAILED)" "$((SECONDS - started))s" "logs in $out"
echo
cat "$table"
[ "$failures" -eq 0 ]
