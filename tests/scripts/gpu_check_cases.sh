#!/usr/bin/env bash
# scripts/gpu_check.sh on a machine of stand-ins: what it refuses, what it runs, and what its table says of steps that
# fail, hang, or find nothing.
# usage: gpu_check_cases.sh REPOSITORY [FAULT_PROBE]
set -uo pipefail
script=$1/scripts/gpu_check.sh
probe=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# All that the script may find: the usual tools, and the stand-ins.
mkdir -p bin
for tool in bash basename cat c++filt date dirname env grep head ln mkdir nproc rm sleep tail tee timeout tr wc; do
  ln -s "$(command -v $tool)" bin/$tool || exit 1
done
ln -s "$(python3 -c 'import sys; print(sys.executable)')" bin/python3
stand_in() { cat >"bin/$1" && chmod +x "bin/$1"; }
stand_in nvcc <<<'echo "release 12.8"; echo "build 12.8"'
stand_in nvidia-smi <<<'[ -z "${NO_GPU:-}" ] || exit 9; case "$*" in *compute_cap*) echo 9.0 ;; *) echo "GPU 0" ;; esac'
stand_in ctest <<<'echo "$@"'
stand_in mpirun <<<'while [ "${1#-}" != "$1" ] || [ "$1" -eq 2 ] 2>/dev/null; do shift; done; exec "$@"'
# The programs: each fails if FAIL names it, and hangs if HANG does.
cat >program <<'PROGRAM'
#!/usr/bin/env bash
name=$(basename "$0")
case " ${HANG:-} " in *" $name "*) sleep 1000 ;; esac
case " ${FAIL:-} " in *" $name "*) echo "$name is made to fail"; exit 3 ;; esac
case "$name $*" in
  *--help*) ;;
  "fault_probe --list") printf 'memcheck\twrite past the end\nracecheck\tno barrier\n' ;;
  "fault_probe --correct") ;;
  fault_probe*) exit 1 ;;
  "op_table_recorder --replay"*) echo "skipped, no recordings"; exit 77 ;;
  *) echo "$name $*" ;;
esac
PROGRAM
chmod +x program
stand_in cmake <<'CMAKE'
#!/usr/bin/env bash
case " ${FAIL:-} " in *" cmake "*) echo "cmake is made to fail"; exit 3 ;; esac
mkdir -p "$BUILD/apps" "$BUILD/tests"
for program in apps/cifar_train apps/train_bench apps/conv_bench apps/device_query tests/op_table_recorder tests/fault_probe \
  tests/tandem_{core,kernels,op_cases,autograd,layers,data,comm,train}_tests; do
  ln -sf "$WORK/program" "$BUILD/$program"
done
[ -z "${PROBE:-}" ] || ln -sf "$PROBE" "$BUILD/tests/fault_probe"
echo "ptxas info    : Compiling entry function '_Z3addPf' for 'sm_90a'"
echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
echo "ptxas info    : Used 8 registers"
CMAKE
# Reports what the program itself tells by its exit code; BLIND: nothing, NERVOUS: something in any case.
stand_in compute-sanitizer <<'SANITIZER'
#!/usr/bin/env bash
tool=$2
shift 2
[ "${1#--error-exitcode}" = "$1" ] || shift 2
"$@"
code=$?
[ -z "${BLIND:-}" ] || code=0
[ -z "${NERVOUS:-}" ] || code=1
count=$((code != 0))
if [ "$tool" = racecheck ]; then
  echo "========= RACECHECK SUMMARY: $count hazards displayed (0 errors, $count warnings)"
else
  echo "========= ERROR SUMMARY: $count errors"
fi
exit 0
SANITIZER
export WORK=$work BUILD=$work/build OUT=$work/out OFFLINE=$work/offline

# expect CODE "VARIABLE=VALUE ..." "OPTIONS" TEXT...: runs the script with these; its exit code and output must be these.
expect() {
  local code=$1 settings=$2 options=$3 got text
  shift 3
  rm -rf "$BUILD" "$OUT"
  # shellcheck disable=SC2086
  (eval "export $settings"; PATH=$work/bin bash "$script" $options) >out.txt 2>&1
  got=$?
  [ $got = "$code" ] || wrong "$settings $options" "exit $got instead of $code"
  for text in "$@"; do
    grep -Eq -- "$text" out.txt || wrong "$settings $options" "output without '$text'"
  done
}
wrong() {
  echo "FAILED: gpu_check.sh ($1): $2"
  sed 's/^/    /' out.txt
  failures=$((failures + 1))
}

# What it cannot work with.
expect 2 "A=" "--fast" "usage: scripts/gpu_check.sh"
expect 2 "NO_GPU=1" "" "nvidia-smi finds no GPU; use --dry-run"
mv bin/nvcc nvcc
expect 2 "A=" "--dry-run" "nvcc is not on the PATH; install the CUDA toolkit"
mv nvcc bin/nvcc

# All goes well.
expect 0 "A=" "" "tests_kernels +ok" "library_refusals +ok" "golden_record +ok" "golden_replay +- .*no recordings" \
  "train_two_ranks +ok" "bench_vgg_lite +ok" "bench_conv_f32 +ok" "bench_conv_f16 +ok" \
  "planted_faults +ok" "sanitizer_racecheck +ok" "total +ok"
expect 0 "A=" "--quick" "tests_kernels +ok" "train_one_rank +ok" "total +ok"
! grep -q "sanitizer\|bench" out.txt || wrong "--quick" "runs more than it should"
expect 0 "NO_GPU=1" "--dry-run" "build +ok" "programs_start +ok" "tests_kernels +no GPU" "total +ok"
[ -s "$OUT/table.txt" ] || wrong "--dry-run" "leaves no table"

# Steps that fail are named, and the others run.
expect 1 "FAIL=tandem_kernels_tests" "--quick" "programs_start +FAILED" "tests_kernels +FAILED" \
  "tests_layers +ok" "train_one_rank +ok" "total +FAILED"
expect 1 "FAIL=train_bench" "" "bench_small_cnn +FAILED .*see .*/bench_small_cnn.log" "train_bench is made to fail" \
  "sanitizer_memcheck +ok" "total +FAILED"
expect 1 "FAIL=conv_bench" "" "bench_conv_f16 +FAILED .*see .*/bench_conv_f16.log" "sanitizer_memcheck +ok"
expect 1 "FAIL=cmake" "" "configure +FAILED" "cmake is made to fail" "total +FAILED"
! grep -q "tests_" out.txt || wrong "FAIL=cmake" "tests what was not built"
expect 1 "HANG=device_query LIMIT=1" "--quick" "device_query +TIMEOUT" "tests_core +ok" "total +FAILED"
mkdir offline && echo damaged >offline/libx.deb
expect 1 "A=" "--quick --dry-run" "unpack +FAILED"
rm -r offline

# compute-sanitizer that sees no fault, that sees faults everywhere, and that is not there.
expect 1 "BLIND=1" "" "planted_faults +FAILED" "memcheck does NOT report: write past the end" \
  "racecheck does NOT report: " "sanitizer_memcheck +ok"
expect 1 "NERVOUS=1" "" "planted_faults +FAILED" "memcheck does NOT pass the correct kernels"
if [ -n "$probe" ]; then  # real faults, which the simulator finds as the tools would
  expect 0 "PROBE=$probe" "" "planted_faults +ok"
  grep -q " planted faults, 0 surprises" "$OUT/planted_faults.log" || wrong "PROBE" "did not look at the faults"
fi
rm bin/compute-sanitizer
expect 1 "A=" "" "planted_faults +FAILED" "sanitizer_memcheck +FAILED" "compute-sanitizer is not on the PATH"

[ $failures = 0 ] && echo "all cases passed"
exit $((failures > 0))
