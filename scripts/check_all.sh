#!/usr/bin/env bash
# The long checks, run before an issue is called resolved; what runs on every change is in .ci/run. Prints a table at the end.
# usage: scripts/check_all.sh [--list] [STEP ...]      all steps, or those named
# What a step prints is in build/check_all/STEP.log. Exit code 1 if a step failed; one that cannot run here is skipped
# and named (its exit code is 77).
set -uo pipefail
cd "$(dirname "$0")/.."
logs=build/check_all
export TANDEM_WERROR=ON

# --- What there is to check: step NAME WHAT COMMAND... ---------------------------------------------------------------------

steps() {
  step long "the long tests of preset cpu, which scripts/test.sh leaves out" scripts/test.sh --label-regex '^long$'
  step simulated "kernels on the simulated GPU, every access checked" scripts/check_builds.sh simulated
  step cuda "every kernel compiles and links for real GPUs" check_cuda
  step tidy "clang-tidy is silent about the libraries and programs" scripts/check_builds.sh tidy
  step asan "unit tests of core/, kernels/, autograd/ and data/ and the op table under AddressSanitizer" scripts/check_builds.sh asan
  step asan-long "all other tests, and the long ones, under AddressSanitizer" scripts/check_builds.sh --long asan
  step simulated-long "the long tests of preset simulated" scripts/check_builds.sh --long simulated
  # The tests are compiled with Catch2 3 here and not in .ci/run: Debian 12, where that runs, has version 2 only.
  step debian-13 "both README commands on a fresh Debian 13" scripts/check_debian.sh trixie scripts/run.sh "scripts/test.sh --all"
  step debian-12 "both README commands on a fresh Debian 12" scripts/check_debian.sh bookworm scripts/run.sh "scripts/test.sh --all"
  step container "what the Dockerfile runs, on a fresh Debian 12" check_container
  step mpich "training on 2 ranks and the tests with MPICH instead of Open MPI" scripts/check_debian.sh trixie \
    --with "mpich libmpich-dev" "$train_a_little" "scripts/test.sh --exclude-regex parity"
  step clang "preset cpu by clang, without warnings, and its tests" check_clang
  step clang-debian-13 "preset cpu by Debian 13's clang, without warnings, and its tests" scripts/check_debian.sh trixie \
    --with clang "CXX=clang++ scripts/test.sh --exclude-regex parity"
  step portable "the CPU's kernels compiled for any machine of this architecture (TANDEM_NATIVE=OFF), and their tests" check_portable
  step shared "preset cpu with shared libraries: tests of core/, and programs that use what it installs" check_shared
  step instruction-sets "a portable build with shared libraries: the kernels' tests with each instruction set that this machine has" \
    check_instruction_sets
  step old-processor "the same build on an emulated processor without AVX: tests of the kernels, and a short training" check_old_processor
  step cuda-consumer "programs of another project, and its own element-wise function, by nvcc with what preset cuda installs" \
    check_cuda_consumer
  step tsan "what has threads under ThreadSanitizer" scripts/check_builds.sh tsan
  step snippets "what pages show: commands, programs and their output" check_snippets
  step docs-site "the site of all pages and of the API, without warnings, looked at and searched in Chromium" check_docs_site
  step mutations "faults planted in the libraries, which the tests must notice" scripts/mutations.py
  step fuzz "what reads files, by fuzzers, 60 s each" scripts/fuzz.sh 60
  step simulated-asan "kernels on the simulated GPU under AddressSanitizer" check_simulated_asan
}

train_a_little="scripts/run.sh --dataset synthetic --limit-train 2048 --limit-test 512 --epochs 2 --check-replicas"

# A line of the Dockerfile is a command, so that a fresh system stands in for an image, with the PATH that images have.
check_container() {
  local commands environment
  mapfile -t commands < <(sed -nE 's/^(RUN|CMD) (exec )?//p' Dockerfile)
  environment="export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $(sed -n 's/^ENV //p' Dockerfile);"
  [ ${#commands[@]} -ge 3 ] || { echo "the Dockerfile has no commands"; return 1; }
  scripts/check_debian.sh bookworm "${commands[@]/#/$environment }"
}

check_clang() {
  command -v clang++ >/dev/null || { echo "there is no clang++: apt-get install clang"; return 77; }
  cmake --preset cpu -B build/clang -DCMAKE_CXX_COMPILER=clang++ && cmake --build build/clang --parallel "$(nproc)" &&
    ctest --test-dir build/clang --output-on-failure --no-tests=error --parallel "$(nproc)" --exclude-regex parity
}

check_snippets() {
  local build
  build=$(scripts/build.sh cpu) && scripts/check_snippets.py --build "$build"
}

check_portable() {
  cmake --preset cpu -B build/portable -DTANDEM_NATIVE=OFF &&
    cmake --build build/portable --parallel "$(nproc)" --target tandem_kernels_tests tandem_op_cases_tests &&
    ctest --test-dir build/portable --output-on-failure --no-tests=error --parallel "$(nproc)" --tests-regex '^(kernels|op_cases):'
}

check_shared() {
  local build
  build=$(scripts/build.sh shared tandem_core_tests tandem_train) &&
    ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" \
      --tests-regex '^(core|consumer):|^docs: a program' --label-exclude '^long$'
}

check_instruction_sets() {
  local build case name rest has=baseline
  ! grep -qw avx2 /proc/cpuinfo || has+=" AVX2"
  ! grep -qw avx512vl /proc/cpuinfo || has+=" AVX-512"
  build=$(scripts/build.sh portable-shared tandem_kernels_tests tandem_op_cases_tests) || return
  # What glibc takes the processor for, and what it must then load; and what oneDNN, which asks the processor itself, may use.
  for case in AVX-512::DEFAULT AVX2:-AVX512F:AVX2 baseline:-AVX2,-AVX512F:SSE41; do
    name=${case%%:*} rest=${case#*:}
    grep -qw "$name" <<<"$has" || { echo "not run: this processor has no $name"; continue; }
    echo "== $name"
    TANDEM_EXPECTED_INSTRUCTION_SET=$name GLIBC_TUNABLES="glibc.cpu.hwcaps=${rest%:*}" \
      ONEDNN_MAX_CPU_ISA=${rest#*:} DNNL_MAX_CPU_ISA=${rest#*:} \
      ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" \
      --tests-regex '^(kernels|op_cases):' || return
  done
}

# Nehalem has SSE4.2 and nothing newer: an instruction of AVX that is not behind a question ends a program there. Each of
# these takes one thread: the emulator is slow enough.
old_processor_tests="the kernels that were loaded*,gemm matches the reference,the fused convolution equals its parts,"`
  `"the fast loops of the CPU take half types,a training step agrees*,fast pooling agrees*,the fast cast gives*"
check_old_processor() {
  command -v qemu-x86_64 >/dev/null || { echo "there is no qemu-x86_64: apt-get install qemu-user"; return 77; }
  local build emulator=(env OMP_NUM_THREADS=1 TANDEM_EXPECTED_INSTRUCTION_SET=baseline qemu-x86_64 -cpu Nehalem)
  build=$(scripts/build.sh portable-shared tandem_kernels_tests cifar_train) || return
  "${emulator[@]}" "$build/tests/tandem_kernels_tests" "$old_processor_tests" &&
    "${emulator[@]}" "$build/apps/cifar_train" --no-run-dir --dataset synthetic --model small_cnn --limit-train 256 \
      --limit-test 128 --epochs 1
}

check_cuda() {
  command -v nvcc >/dev/null || { echo "there is no nvcc"; return 77; }
  scripts/check_builds.sh cuda
}

# Needs nvcc, but no GPU: the programs run on the CPU without one.
check_cuda_consumer() {
  command -v nvcc >/dev/null || { echo "there is no nvcc"; return 77; }
  local build step
  cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a && build=$(scripts/build.sh cuda tandem_train) || return
  for step in install cmake functor; do
    CXX=${CXX:-g++} CUDA=ON tests/consumer/check_program.sh "$step" . "$build" "$build/consumer" || return
  done
}

check_docs_site() {
  command -v doxygen >/dev/null || { echo "there is no doxygen: apt-get install doxygen"; return 77; }
  scripts/build_docs.sh
}

check_simulated_asan() {
  local build
  build=$(scripts/build.sh simulated-asan simulated_suite) &&
    ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" --label-regex '^simulated$'
}

# --- Running them ----------------------------------------------------------------------------------------------------------

list=0 chosen=() names=() table=() failed=0 skipped=()
for argument; do
  case "$argument" in
    --list) list=1 ;;
    -*) echo "usage: scripts/check_all.sh [--list] [STEP ...]" >&2; exit 2 ;;
    *) chosen+=("$argument") ;;
  esac
done

is_chosen() {
  [ ${#chosen[@]} -gt 0 ] || return 0
  local name
  for name in "${chosen[@]}"; do [ "$name" != "$1" ] || return 0; done
  return 1
}

step() { names+=("$1"); }
steps
for name in "${chosen[@]}"; do
  case " ${names[*]} " in
    *" $name "*) ;;
    *) echo "check_all: there is no step '$name'; choose from: ${names[*]}" >&2; exit 2 ;;
  esac
done

if [ "$list" -eq 1 ]; then
  step() { printf '%-18s %s\n' "$1" "$2"; }
  steps
  exit 0
fi

step() {
  local name=$1 begin=$SECONDS code=0 result
  shift 2
  is_chosen "$name" || return 0
  echo "== check_all: $name" >&2
  "$@" </dev/null >"$logs/$name.log" 2>&1 || code=$?
  case "$code" in
    0) result=ok ;;
    77) result="skipped: $(tail -n 1 "$logs/$name.log")"; skipped+=("$name") ;;
    *) result="FAILED ($code), see $logs/$name.log"; failed=$((failed + 1)); tail -n 20 "$logs/$name.log" >&2 ;;
  esac
  table+=("$(printf '%-18s %6s s  %s' "$name" "$((SECONDS - begin))" "$result")")
}
mkdir -p "$logs"
steps

printf '\n'
printf '%s\n' "${table[@]}" | tee "$logs/table.txt"
[ ${#skipped[@]} -eq 0 ] || echo "not run here: ${skipped[*]}"
[ "$failed" -eq 0 ]
