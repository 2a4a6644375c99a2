#!/usr/bin/env bash
# The builds other than the one that scripts/test.sh tests:
#   minimal  a compiler and the small libraries: no oneDNN, MPI, CUDA, libpng or libjpeg; builds and trains for a moment,
#            as does a program of another project with what it installs
#   shared   shared libraries: their names, and a program of another project that uses them, on one rank and on two
#   asan     unit tests of core/, kernels/, autograd/ and data/ and the op table under AddressSanitizer and
#            UndefinedBehaviorSanitizer, leaks included
#   tsan     what has threads (loader, prefetcher, ranks that are threads) under ThreadSanitizer
#   simulated  kernels on the simulated GPU, every access checked: all kernels, several orders of threads
#   cuda     every kernel compiles and links for real GPUs without warnings or spills, and cuDNN's graphs are those that are
#            meant, where nvcc is at hand
#   sources  the sources as they are written: format, words; each includes what it uses; headers compile by themselves
#   tidy     clang-tidy is silent about the libraries and programs
# usage: scripts/check_builds.sh [--long] [minimal|shared|asan|tsan|simulated|cuda|sources|tidy ...]
# Without a name: all but tsan. With --long, of asan and simulated only what is left out without it: the long tests (label
# `long`), and of asan a short training, unit tests of the other folders, and all tests that start programs.
set -euo pipefail
cd "$(dirname "$0")/.."

check_minimal() {
  local build
  build=$(scripts/build.sh minimal)
  "$build/apps/cifar_train" --no-run-dir --dataset synthetic --model small_cnn --limit-train 512 --limit-test 256 \
    --epochs 1
  # Without what is optional.
  BINARIES=1 check_installed "$build" install cmake
}

# check_installed BUILD WHAT...: another project uses what a build installs (tests/consumer/check_program.sh). What cannot be
# tried here says so (77).
check_installed() {
  local build=$1 step
  shift
  for step; do CXX=${CXX:-g++} tests/consumer/check_program.sh "$step" . "$build" "$build/consumer" || [ $? -eq 77 ]; done
}

check_shared() {
  local build ranks=
  build=$(scripts/build.sh shared tandem_train)
  ! command -v mpiexec >/dev/null || ranks="env $(grep '^[A-Z]' scripts/mpi.env | tr '\n' ' ')mpiexec -n"
  SHARED=ON MPIEXEC=$ranks check_installed "$build" install cmake pkg-config
}

run_tests() { scripts/run_ctest.sh "$@"; }
# What runs on a simulated device or as a part of the suite need not have what tests/must_run.txt lists.
run_some_tests() { TANDEM_CI=0 scripts/run_ctest.sh "$@"; }

check_asan() {
  local build part parts=(core kernels autograd op_cases data) first targets=()
  first="^($(IFS='|'; echo "${parts[*]}")):"
  if [ "$long" -eq 1 ]; then
    build=$(scripts/build.sh asan)
    "$build/apps/cifar_train" --no-run-dir --dataset synthetic --model small_cnn --limit-train 256 --limit-test 128 \
      --epochs 1 --replicas 2
    run_tests "$build" --label-exclude '^(unit|no-asan)$'
    run_tests "$build" --label-regex '^unit$' --label-exclude '^no-asan$' --exclude-regex "$first"
    run_tests "$build" --label-regex '^unit$' --label-regex '^long$' --label-exclude '^no-asan$' --tests-regex "$first"
  else
    for part in "${parts[@]}"; do targets+=("tandem_${part}_tests"); done
    build=$(scripts/build.sh asan "${targets[@]}")
    run_some_tests "$build" --label-regex '^unit$' --label-exclude '^(long|no-asan)$' --tests-regex "$first"
  fi
}

check_tsan() {
  local build programs=(core data comm train) targets=()
  for program in "${programs[@]}"; do targets+=("tandem_${program}_tests"); done
  build=$(scripts/build.sh tsan "${targets[@]}")
  run_some_tests "$build" --tests-regex "^($(IFS='|'; echo "${programs[*]}")):" --label-exclude '^no-asan$'
}

check_cuda() {
  if ! command -v nvcc >/dev/null; then
    echo "check_builds: no nvcc here, cuda not checked" >&2
    return
  fi
  local build log=build/cuda-build.log
  mkdir -p build
  cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a >/dev/null
  if ! build=$(scripts/build.sh cuda tandem_kernels tandem_comm cifar_train device_query 2>"$log"); then
    cat "$log" >&2
    return 1
  fi
  scripts/kernel_resources.py "$log"
  "$build/apps/device_query"
  # Graphs for cuDNN, carried out by a library that pretends to be it, where its headers are.
  if grep -q tandem_cudnn_tests "$build/build.ninja"; then
    scripts/build.sh cuda tandem_cudnn_tests 2>"$log" >/dev/null || { cat "$log" >&2; return 1; }
    "$build/tests/tandem_cudnn_tests"
  fi
  scripts/build.sh cuda fault_probe 2>"$log" >/dev/null || { cat "$log" >&2; return 1; }
  "$build/tests/fault_probe" --list
}

check_simulated() {
  local build
  build=$(scripts/build.sh simulated simulated_suite)
  if [ "$long" -eq 1 ]; then
    run_some_tests "$build" --label-regex '^simulated$' --label-regex '^long$'
    return
  fi
  rm -f "$build/kernels_that_ran.txt"
  run_some_tests "$build" --label-regex '^simulated$' --label-exclude '^long$'
  scripts/check_kernel_coverage.py "$build/kernels_that_ran.txt"
}

# Runs a script that needs clang-format or clang-tidy of one version; where that is missing (exit code 77), fetches it first.
with_llvm_tool() {
  local tool=$1 code=0 folder=$PWD/build/llvm-tools/$1 requirement
  shift
  PYTHONPATH=$folder "$@" || code=$?
  [ "$code" -eq 77 ] || return "$code"
  requirement=$(PYTHONPATH=scripts python3 -c 'import llvm_tools, sys; print(llvm_tools.requirement(sys.argv[1]))' "$tool")
  echo "check_builds: installs $requirement in $folder"
  if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$folder" "$requirement"; then
    echo "check_builds: what needs $tool was not checked: install it (pip install $requirement), or leave this build out" >&2
    return 1
  fi
  PYTHONPATH=$folder "$@"
}

check_sources() {
  local build
  with_llvm_tool clang-format scripts/check_style.py
  scripts/check_includes.py
  build=$(scripts/build.sh cpu)
  scripts/check_headers.py "$build"
}

check_tidy() {
  local build
  build=$(scripts/build.sh cpu)
  with_llvm_tool clang-tidy scripts/check_tidy.py "$build"
}

long=0
if [ "${1:-}" = --long ]; then long=1; shift; fi
[ $# -gt 0 ] || set -- minimal shared asan simulated cuda sources tidy
for name; do
  case "$name" in
    minimal | shared | asan | tsan | simulated | cuda | sources | tidy) ;;
    *) echo "check_builds: unknown build '$name': choose minimal, shared, asan, tsan, simulated, cuda, sources or tidy" >&2; exit 2 ;;
  esac
done
for name; do echo "== check_builds: $name"; "check_$name"; done
