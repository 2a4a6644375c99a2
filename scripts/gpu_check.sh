#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one and perhaps no network: builds for the GPU found, runs every
# CUDA test, records and compares the golden outputs, trains for a moment, runs benchmarks and compute-sanitizer, and
# prints a table of what ran.
# usage: scripts/gpu_check.sh [--quick] [--dry-run]
#   --quick    the tests, the golden outputs and a short training only
#   --dry-run  for machines without a GPU: does all but what a GPU is needed for, and says so in the table
# Environment: OUT      where logs, recordings and the table go (build/gpu_check)
#              BUILD    where it is built (build/gpu)
#              OFFLINE  Debian packages collected by scripts/offline_bundle.sh (offline/); used where it exists
#              LIMIT    seconds that one step on the GPU may take (by step: 60 to 120)
# Exit code 1 if any step failed or did not come to run, 2 for a machine or arguments that it cannot work with.
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
command -v nvcc >/dev/null || { echo "gpu_check: nvcc is not on the PATH; install the CUDA toolkit" >&2; exit 2; }
if ! nvidia-smi -L >/dev/null 2>&1 && [ "$dry" -eq 0 ]; then
  echo "gpu_check: nvidia-smi finds no GPU; use --dry-run for a rehearsal without one" >&2
  exit 2
fi

# Steps run in shells of their own, so that their time can be limited: they see what is exported.
export root=$PWD out=${OUT:-$PWD/build/gpu_check} build=${BUILD:-$PWD/build/gpu} offline=${OFFLINE:-$PWD/offline}
export prefix=$out/packages CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
mkdir -p "$out/golden"
table=$out/table.txt
: >"$table"
failures=0
# The GPU's share of 9 minutes (--quick: 4), beside 4 (2.5) of building on 16 cores.
gpu_seconds=$([ "$quick" -eq 1 ] && echo 80 || echo 300)
gpu_deadline=0

note() { printf '%-26s %-8s %6s  %s\n' "$1" "$2" "$3" "${4:-}" | tee -a "$table"; }
fail() { failures=$((failures + 1)); note "$@"; }

# step SECONDS NAME COMMAND...: runs it with its output in $out/NAME.log and adds a line to the table.
step() {
  local limit=$1 name=$2 begin=$SECONDS code=0
  shift 2
  timeout --kill-after=10 "$limit" bash -o pipefail -c '"$@"' step "$@" >"$out/$name.log" 2>&1 || code=$?
  case "$code" in
    0) note "$name" ok "$((SECONDS - begin))s"; return 0 ;;
    77) note "$name" - "$((SECONDS - begin))s" "$(tail -n 1 "$out/$name.log")"; return 0 ;;
    124 | 137) fail "$name" TIMEOUT "$((SECONDS - begin))s" "see $out/$name.log" ;;
    *) fail "$name" FAILED "$((SECONDS - begin))s" "see $out/$name.log" ;;
  esac
  tail -n 15 "$out/$name.log"
  return 1
}

gpu_step() {
  local limit=${LIMIT:-$1} name=$2 left=$((gpu_deadline - SECONDS))
  shift 2
  if [ "$dry" -eq 1 ]; then note "$name" "no GPU" -; return; fi
  if [ "$left" -le 0 ]; then fail "$name" "NO TIME" -; return; fi
  step "$((limit < left ? limit : left))" "$name" "$@"
}

unpack_packages() {
  local package
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
  local libraries=$prefix/usr/lib/x86_64-linux-gnu
  export CMAKE_PREFIX_PATH=$prefix/usr:$libraries/openmpi${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export PATH=$prefix/usr/bin:$PATH
  export LD_LIBRARY_PATH=$libraries:$libraries/openmpi/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export CPATH=$prefix/usr/include${CPATH:+:$CPATH} LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
  # Open MPI was built for /usr: this is where it is now.
  export OPAL_PREFIX=$prefix/usr OPAL_LIBDIR=$libraries/openmpi/lib OPAL_DATADIR=$prefix/usr/share
  export PMIX_INSTALL_PREFIX=$prefix/usr OMPI_MCA_btl_vader_single_copy_mechanism=none
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

architecture() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d .)
  case "$capability" in
    90 | '') echo 90a ;;
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

configure() {
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTANDEM_DEVELOPMENT_BUILD=ON -DTANDEM_CUDA=ON \
    -DCMAKE_CUDA_ARCHITECTURES="$(architecture)" -DCMAKE_CUDA_FLAGS=-Xptxas=-v
}
# What ptxas said is kept over several runs, which build only what has changed.
compile() { cmake --build "$build" --parallel "$(nproc)" | tee -a "$build/compiled.log"; }

# Every program is there, and finds its libraries.
programs_start() {
  local program
  for program in "$build"/tests/tandem_*_tests; do
    case "$program" in *_mpi_tests | *_training_tests) continue ;; esac  # they begin with MPI_Init
    "$program" --help >/dev/null || { echo "$program does not start"; return 1; }
  done
  "$build/tests/op_table_recorder" --help && "$build/apps/train_bench" --help && "$build/apps/conv_bench" --help &&
    "$build/tests/fault_probe" --list
}

# Runs the CUDA tests of a room, those with a tag or all that are proven. A suite that skips itself has not run.
cuda_tests() {
  "$build/tests/tandem_$1_tests" "[cuda]${2:-~[warpgroup]}" | tee "$out/.tests.log" || return 1
  ! grep -q "skipped, no\|skipped, this build" "$out/.tests.log"
}

# 77 says that there is no GPU: then nothing was recorded, and the step has failed.
record_golden() { "$build/tests/op_table_recorder" --record "$out/golden/recording.json" || return 1; }

# What cifar_train says of a cuBLAS or cuDNN that is missing, too old or something else.
library_refusals() {
  ctest --test-dir "$build" --no-tests=error --output-on-failure -R "cifar_train: (cuDNN is|cuBLAS is|auto does)"
}

train() {
  local ranks=$1
  local program=("$build/apps/cifar_train" --device cuda --dataset synthetic --limit-train 4096 --limit-test 1024
    --epochs 2 --model small_cnn)
  if [ "$ranks" -eq 1 ]; then
    "${program[@]}"
  else
    mpirun --oversubscribe -np "$ranks" "${program[@]}" --check-replicas
  fi
}

# Each layer by every implementation that there is, verified first.
bench_conv() {
  "$build/apps/conv_bench" --device cuda --layers vgg_lite,mnist_cnn --batch 512 --groups 7 --precision "fp${1#f}" --autotune \
    --json "$out/conv_$1.json" --svg "$out/conv_$1.svg" "${@:2}"
}

bench_ladder() {
  local step steps=()
  for step in naive shared-tile register-tile tensor-cores pipelined halo; do steps+=("ladder-$step"); done
  "$build/apps/conv_bench" --device cuda --layers vgg_lite --batch 128 --groups 3 --precision fp16 --cache hot \
    --impl "$(IFS=,; echo "${steps[*]}")" --json "$out/ladder.json"
}

bench_warpgroup() {
  "$build/apps/conv_bench" --device cuda --layers vgg_lite --batch 512 --groups 7 --precision fp16,bf16 --cache hot \
    --impl fused,warpgroup,cudnn --json "$out/warpgroup.json"
}

sanitizer() {
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not on the PATH: it is part of the CUDA toolkit"
    return 1
  fi
  compute-sanitizer --tool "$@"
}
# True if a log of compute-sanitizer holds an error or a hazard.
reports() { grep -Eq 'SUMMARY: [1-9][0-9]* (error|hazard)' "$1"; }

sanitize_op_table() {
  sanitizer "$1" --error-exitcode 86 "$build/tests/op_table_recorder" --record "$out/golden/$1.json" || return 1
}

# Each planted fault must be reported by its tool, and the correct kernels by none.
planted_faults() {
  local tool name log missed=0 list=$out/planted_faults.list
  "$build/tests/fault_probe" --list >"$list" || return 1
  mkdir -p "$out/planted_faults"
  while IFS=$'\t' read -r tool name; do
    log="$out/planted_faults/$tool, $name.log"
    sanitizer "$tool" "$build/tests/fault_probe" "$name" >"$log" 2>&1 </dev/null
    if reports "$log"; then
      echo "$tool reports: $name"
    else
      echo "$tool does NOT report: $name"
      missed=$((missed + 1))
    fi
  done <"$list"
  for tool in memcheck racecheck initcheck synccheck; do
    log="$out/planted_faults/$tool, correct kernels.log"
    if ! sanitizer "$tool" "$build/tests/fault_probe" --correct >"$log" 2>&1 || reports "$log"; then
      echo "$tool does NOT pass the correct kernels"
      missed=$((missed + 1))
    fi
  done
  echo "$(wc -l <"$list") planted faults, $missed surprises"
  [ "$missed" -eq 0 ]
}
export -f $(compgen -A function)

step 30 machine describe_machine
if compgen -G "$offline/*.deb" >/dev/null; then
  step 120 unpack unpack_packages && use_prefix
else
  note unpack - - "no packages in $offline: using the system's"
fi
# Its own headers of cuDNN serve a machine as well; those carried along are for machines that have only the library.
if [ -f "$offline/cudnn/include/cudnn.h" ]; then export CuDNN_ROOT=$offline/cudnn; fi
# What 16 cores do in these seconds, fewer cores do in as many times more.
on_16_cores() { echo $(($1 * (16 + $(nproc) - 1) / $(nproc))); }
build_seconds=$(on_16_cores "$([ "$quick" -eq 1 ] && echo 150 || echo 240)")
if step "$(on_16_cores 60)" configure configure && step "$build_seconds" build compile; then
  gpu_deadline=$((SECONDS + gpu_seconds))
  step 60 kernel_resources "$root/scripts/kernel_resources.py" "$build/compiled.log"
  step "$build_seconds" build_fault_probe cmake --build "$build" --parallel "$(nproc)" --target fault_probe
  step 60 programs_start programs_start
  gpu_step 60 device_query "$build/apps/device_query"
  for room in core kernels op_cases autograd layers data comm train; do gpu_step 60 "tests_$room" cuda_tests "$room"; done
  # Kernels for Hopper that no hardware has run yet: what hangs there must not take other tests with it.
  gpu_step 60 tests_warpgroup cuda_tests kernels "[warpgroup]"
  gpu_step 60 library_refusals library_refusals
  gpu_step 60 golden_record record_golden
  gpu_step 60 golden_replay "$build/tests/op_table_recorder" --replay "$root/tests/golden"
  gpu_step 60 train_one_rank train 1
  gpu_step 60 train_two_ranks train 2
  if [ "$quick" -eq 0 ]; then
    for model in small_cnn vgg_lite; do
      gpu_step 60 "bench_$model" "$build/apps/train_bench" --device cuda --model "$model" --steps 50 --warmup 10
    done
    gpu_step 60 bench_conv_f16 bench_conv f16
    gpu_step 60 bench_conv_f32 bench_conv f32 --impl ours,fused,tf32,3xtf32,cudnn,cudnn-unfused
    gpu_step 60 bench_ladder bench_ladder
    gpu_step 60 bench_warpgroup bench_warpgroup
    gpu_step 120 planted_faults planted_faults
    for tool in memcheck racecheck initcheck synccheck; do gpu_step 90 "sanitizer_$tool" sanitize_op_table "$tool"; done
  fi
fi
note total "$([ "$failures" -eq 0 ] && echo ok || echo FAILED)" "${SECONDS}s" "logs in $out"
printf '\n%s\n' "$(cat "$table")"
[ "$failures" -eq 0 ]
