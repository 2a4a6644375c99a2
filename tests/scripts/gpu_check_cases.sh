#!/usr/bin/env bash
# scripts/gpu_check.sh on a machine of stand-ins: what it refuses, what it runs and in which order, what it keeps, what its
# table says of steps that fail, hang, find nothing or are killed, and that the next call goes on from there.
# usage: gpu_check_cases.sh REPOSITORY [FAULT_PROBE]; with that program only whether planted faults are found
set -uo pipefail
script=$1/scripts/gpu_check.sh
probe=${2:-}
python=$(python3 -c 'import sys; print(sys.executable)')
. "$(dirname "$0")/stand_ins.sh"

# All that the script may find: the usual tools, and the stand-ins.
real_tools bash basename cat c++filt cp cut date df dirname env find fold grep gzip head ln mkdir mv nproc rm sed sleep sort \
  tail tar tee timeout tr uniq wc
ln -s "$python" bin/python3
stand_in nvcc <<<'echo "release 12.8"; echo "build 12.8"'
stand_in nvidia-smi <<<'[ -z "${NO_GPU:-}" ] || exit 9; case "$*" in *compute_cap*) echo 9.0 ;; *) echo "GPU 0" ;; esac'
stand_in ctest <<<'echo "$@"; [ -z "${SKIP_CTEST:-}" ] || echo "	  7 - cifar_train: cuDNN is missing (Skipped)"'
stand_in mpirun <<'MPIRUN'
echo "plm: ${OMPI_MCA_plm:-}"
while [ "${1#-}" != "$1" ] || [ "$1" -eq 2 ] 2>/dev/null || [ "$1" -eq 3 ] 2>/dev/null; do shift; done
exec "$@"
MPIRUN
# The programs: each fails if FAIL names it, hangs if HANG does, and leaves out tests if SKIP says why. What was called is
# in the file calls.
cat >program <<'PROGRAM'
#!/usr/bin/env bash
name=$(basename "$0")
case "$*" in *--help* | *--list*) ;; *) echo "$name $*" >>"$WORK/calls" ;; esac
case " ${HANG:-} " in *" $name "*) sleep 1000 ;; esac
case " ${FAIL:-} " in *" $name "*) echo "$name is made to fail"; exit 3 ;; esac
case " ${SPOIL_OUT:-} " in *" $name "*) rm -rf "$OUT" && : >"$OUT" ;; esac
if [ -n "${NO_GPU:-}" ]; then
  case "$name $*" in
    *--help* | *--list*) ;;
    device_query*) echo "no CUDA device: no NVIDIA driver is installed"; exit ;;
    tandem_*) printf '  skipped: no NVIDIA driver is installed\nskipped: 3 of 3 test cases\n'; exit 77 ;;
    fault_probe*) echo "fault_probe: CUDA: CUDA driver version is insufficient (cudaErrorInsufficientDriver)"; exit 1 ;;
    *) echo "error: --device cuda: no NVIDIA driver is installed"; exit 2 ;;
  esac
fi
case "$name $*" in
  *--help*) ;;
  "fault_probe --list") printf 'memcheck\twrite past the end\nracecheck\tno barrier\n' ;;
  "fault_probe --correct") ;;
  "fault_probe --tool racecheck --correct") echo "left out for racecheck: a flag (why)" ;;
  "fault_probe --tool "*" --correct") ;;
  fault_probe*) exit 1 ;;
  "op_table_recorder --replay"*) echo "skipped, no recordings"; exit 77 ;;
  "op_table_recorder --record"*) head -c "${GOLDEN_BYTES:-100}" /dev/zero >"$2" ;;
  conv_bench*) while [ "$1" != --json ]; do shift; done; echo '{"results": []}' >"$2" ;;
  device_query*) [ -z "${NO_CUDA:-}" ] && echo "cuda:0  stand-in" || echo "no CUDA device: the driver is too old" ;;
  tandem_data*) [ -z "${NO_TESTS:-}" ] || echo "No tests ran" ;;
  tandem_*) [ -z "${SKIP:-}" ] || printf '  skipped: %s\nskipped: 1 of 3 test cases\n' "$SKIP" ;;
  train_bench*) echo '{"median_seconds": 0.0015}' ;;
  cifar_train*--run-dir*)
    echo "$name $*"
    while [ "$1" != --run-dir ]; do shift; done
    mkdir -p "$2"
    printf '%s\n' '{"record": "run", "config": {"seed": 1}, "versions": {}, "host": "", "device": ""}' \
      '{"record": "epoch", "epoch": 1, "seconds": 1.75, "time": {"evaluation": 0.25, "writing": 0.25}}' \
      '{"record": "result", "epoch": 1, "test_accuracy": 94.125}' >"$2/log.jsonl" ;;
  *) echo "$name $*" ;;
esac
PROGRAM
chmod +x program
stand_in cmake <<'CMAKE'
case " ${FAIL:-} " in *" cmake "*) echo "cmake is made to fail"; exit 3 ;; esac
case "$1" in
  --version) exit ;;
  --build) echo "$*, temporary files in ${TMPDIR:-/tmp}" >>"$WORK/calls" ;;
  -S) echo "--   ✓ CUDA: 13.0"; echo "--   ✗ MPI: one process only"; exit ;;
  *) echo "cmake $*"; exit ;;
esac
mkdir -p "$BUILD/apps" "$BUILD/tests"
for program in apps/cifar_train apps/train_bench apps/conv_bench apps/device_query tests/op_table_recorder tests/fault_probe \
  tests/tandem_{core,kernels,op_cases,autograd,layers,optim,data,comm,train}_tests; do
  case " ${FAIL:-} " in *" compile:$program "*) continue ;; esac
  [ -x "$BUILD/$program" ] || cp "$WORK/program" "$BUILD/$program"
done
[ -z "${PROBE:-}" ] || ln -sf "$PROBE" "$BUILD/tests/fault_probe"
echo "ptxas info    : Compiling entry function '_Z3addPf' for 'sm_90a'"
echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
echo "ptxas info    : Used 8 registers"
case "${FAIL:-}" in *compile:*) echo "a.cpp:1:10: fatal error: b.h: No such file or directory"; exit 1 ;; esac
CMAKE
# Reports what the program itself tells by its exit code; BLIND: nothing, NERVOUS: something in any case; SILENT: has no
# last word. Of correct kernels that the program has not chosen for this tool, too.
stand_in compute-sanitizer <<'SANITIZER'
tool=$2
shift 2
[ "${1#--error-exitcode}" = "$1" ] || shift 2
"$@"
code=$?
case "$*" in *"--tool $tool --correct") ;; *--correct) code=1 ;; esac
[ -z "${BLIND:-}" ] || code=0
[ -z "${NERVOUS:-}" ] || code=1
count=$((code != 0))
[ -z "${SILENT:-}" ] || exit 0
if [ "$tool" = racecheck ]; then
  echo "========= RACECHECK SUMMARY: $count hazards displayed (0 errors, $count warnings)"
else
  echo "========= ERROR SUMMARY: $count errors"
fi
exit 0
SANITIZER
# PyTorch's Python: TORCH says that it has it, and what of a comparison are its last lines; TORCH_CODE is how that ends.
stand_in torch_python <<'TORCH'
[ -n "${TORCH:-}" ] || exit 1
[ "$1" != -c ] || exit 0
echo "torch_python $*" >>"$WORK/calls"
case "$1" in
  *torch_speed_run.py) report='{"runs": [{"seconds": 9, "test_accuracy_by_views": 0}, {"seconds": 2.5, "published_seconds": 2.75, "test_accuracy_by_views": 93}]}' ;;
  *) report='[{"ratio": 1.5}]' ;;
esac
while [ "$1" != --json ]; do shift; done
echo "$report" >"$2"
echo -e "$TORCH"
exit "${TORCH_CODE:-0}"
TORCH
export TORCH_PYTHON=torch_python
export WORK=$work BUILD=$work/build OUT=$work/out OFFLINE=$work/offline CUDA_HOME=$work/toolkit

start_anew() { rm -rf "$BUILD" "$OUT" calls; }
# check_run CODE "VARIABLE=VALUE ..." "OPTIONS" TEXT...: runs the script with these, after what earlier runs have left; its exit
# code and output must be these.
check_run() {
  local code=$1 settings=$2 options=$3 got text
  shift 3
  rm -rf "$OUT"  # as where only what is below BUILD is kept from call to call
  # shellcheck disable=SC2086
  (eval "export $settings"; PATH=$work/bin bash "$script" $options) >out.txt 2>&1
  got=$?
  [ $got = "$code" ] || wrong "$settings $options" "exit $got instead of $code"
  for text in "$@"; do
    grep -Eq -- "$text" out.txt || wrong "$settings $options" "output without '$text'"
  done
  check_kept "$settings $options" "$code"
}
expect() { start_anew; check_run "$@"; }
wrong() {
  echo "FAILED: gpu_check.sh ($1): $2"
  sed 's/^/    /' out.txt
  failures=$((failures + 1))
}
# What is kept: few files, not large, with plain names, the table and all logs among them.
check_kept() {
  [ "$2" -ne 2 ] || return 0
  [ "$(find "$OUT" -type f | wc -l)" -le 10 ] || wrong "$1" "keeps more than 10 files"
  [ -z "$(find "$OUT" -size +16384k -o -mindepth 2)" ] || wrong "$1" "keeps large files, or folders"
  ! ls "$OUT" | grep -q '[^a-zA-Z0-9._-]' || wrong "$1" "keeps files of odd names"
  [ -s "$OUT/table.txt" ] && tar -tzf "$OUT/logs.tar.gz" >/dev/null || wrong "$1" "keeps no table, or no logs"
}
called() { grep -c "$1" calls; }  # how often

if [ -n "$probe" ]; then  # real faults, which the simulator finds as the tools would
  expect 0 "PROBE=$probe" "build sanitize" "planted_faults +ok"
  tar -xzOf "$OUT/logs.tar.gz" logs/planted_faults.log >faults.txt
  grep -q " planted faults, 0 surprises" faults.txt || wrong "PROBE" "did not look at the faults"
  grep -q "^left out for racecheck: a flag and a lock within a block (it follows barriers" faults.txt ||
    wrong "PROBE" "shows racecheck what is handed over by a flag"
  for unseen in "memcheck reports: cast to a wider type" "racecheck reports: a shuffle does not order memory"; do
    ! grep -q "^$unseen" faults.txt || wrong "PROBE" "asks for what no tool sees on a GPU: $unseen"
  done
  exit $((failures > 0))
fi

# What it cannot work with.
expect 2 "A=" "--fast" "not expected: --fast; usage: scripts/gpu_check.sh"
expect 2 "NO_GPU=1" "" "nvidia-smi finds no GPU; use --dry-run"
expect 2 "PART_LIMIT=soon" "" "whole numbers of seconds, not 'soon'"
mv bin/nvcc nvcc
expect 2 "A=" "--dry-run" "nvcc is not on the PATH; install the CUDA toolkit"
mkdir -p toolkit/bin && mv nvcc toolkit/bin/nvcc
expect 0 "A=" "build" "configure +ok"  # found where CUDA_HOME says
mv toolkit/bin/nvcc bin/nvcc
expect 2 "DATA=/nowhere" "" "DATA=/nowhere has no data_batch_1.bin"
expect 2 "OUT=/proc/none" "" "cannot write to /proc/none; name other folders by OUT and BUILD"
expect 1 "A=" "bench" "nothing is built in .*/build: scripts/gpu_check.sh build comes first"

# All goes well: the plan is told first, steps run in this order, and this is kept.
expect 0 "A=" "" "^build: at most [0-9]+ s; steps to run" "^sanitize: at most 510 s" "planted_faults 200, " \
  "configure +ok .*without MPI$" "tests_kernels +ok" "library_refusals +ok" "golden_record +ok" \
  "golden_replay +- .*no recordings" \
  "train_two_ranks +ok" "steps_vgg_lite_fp16 +ok .* ms without and with a graph: batch 128 1.500 1.500; batch 512 1.500 1.500; batch 1024 " \
  "bench_conv_f32 +ok" "bench_conv_f16 +ok" "tuned_conv_f32 +ok" "torch_fp32_vgg_lite_512 +- .*torch_python has no PyTorch" \
  "profile +ok" "recipe_bag-of-tricks +- .*no CIFAR-10: name its folder by DATA" "^compiled: at most 510 s" \
  "planted_faults +ok" "hopper_racecheck +ok" "sanitizer_racecheck +ok" "total: ok"
order=$(sed -n 's/^-- //p; s/^\([a-z_0-9]*\)  *\(ok\|-\)  .*/\1/p' "$OUT/table.txt" | tr '\n' ' ')
case "$order" in
  *"correctness device_query tests_core tests_kernels tests_warpgroup hopper_warpgroup hopper_cudnn hopper_fused"*) ;;
  *) wrong "" "runs in another order: $order" ;;
esac
case "$order" in
  *"steps steps_small_cnn_fp16 "*"steps_f32 torch_fp32_"*"recipes recipe_airbench94 "*"compiled compiled_fp16_"*"convolutions bench_conv_f16 "*) ;;
  *) wrong "" "times in another order: $order" ;;
esac
grep -q "train_bench .*--model airbench94 --precision fp32 --optimizer sgd --batch-size 1024 --cuda-graph on$" calls || wrong "" "times no graph"
grep -q "conv_bench .*--impl warpgroup$" calls || wrong "" "does not time each contestant in a process of its own"
"$python" - "$OUT" <<'PYTHON' || wrong "" "keeps other files, or no JSON"
import json, os, sys
folder = sys.argv[1]
assert sorted(os.listdir(folder)) == ["conv_f16.json", "conv_f32.json", "golden.json", "hopper.json", "ladder.json",
                                      "logs.tar.gz", "steps.json", "table.txt"], os.listdir(folder)
steps = json.load(open(folder + "/steps.json"))
assert len(steps) == 6 and [step["median_seconds"] for step in steps["own_airbench94_fp16"]] == 6 * [0.0015], steps
assert sorted(json.load(open(folder + "/hopper.json"))) == ["cudnn", "fused", "warpgroup"]
PYTHON
[ "$(tar -tzf "$OUT/logs.tar.gz" | grep -c 'planted_faults/.*log')" = 6 ] || wrong "" "keeps not all logs"
tar -xzOf "$OUT/logs.tar.gz" logs/planted_faults.log | grep -q "^left out for racecheck: a flag (why)" ||
  wrong "" "does not tell which correct kernels a tool has not seen"
tar -xzOf "$OUT/logs.tar.gz" logs/train_two_ranks.log | grep -q "plm: ^rsh" || wrong "" "lets Open MPI look for ssh"

# A path is that of the caller's folder.
expect 0 "TORCH='step, ms: ours 2, pytorch eager 3\\nratio 1.50' TORCH_PYTHON=bin/torch_python" "build steps compiled" \
  "torch_fp16_vgg_lite_128 +ok .* 1.50 times PyTorch; ms: ours 2, pytorch eager 3" "compiled_fp16_airbench94_1024 +ok" "total: ok"
grep -q '^"small_cnn_1024_fp16_eager_graphed": \[{"ratio": 1.5}\]' "$OUT/steps.json" || wrong "TORCH" "keeps no comparison: $(cat "$OUT/steps.json")"
for way in "airbench94 --precision fp16 --batch-size 512 --optimizer sgd .*--cuda-graph on,off --torch-mode eager,graphed" \
  "small_cnn --precision fp16 --batch-size 128 --optimizer adam .*--torch-mode compile,reduce-overhead"; do
  grep -q "compare_pytorch.py .*--model $way" calls || wrong "TORCH" "does not compare $way"
done
# A way of PyTorch that does not run: the step has failed, and what the others took is told.
expect 1 "TORCH='step, ms: ours 2, pytorch eager 3\\nratio 1.50' TORCH_CODE=1" "build steps" \
  "torch_fp16_vgg_lite_512 +FAILED .* 1.50 times PyTorch; ms: ours 2, pytorch eager 3"

# The recipes, each by ten seeds, and in PyTorch without its first run. What is complete is not trained again by the call that goes on.
mkdir -p data && touch data/data_batch_1.bin
expect 0 "DATA=data TORCH=1" "build recipes compiled" "recipe_bag-of-tricks +ok .* 94.12 %, 1.50 s, 10 runs" "recipe_muon_no_graph +ok" \
  "torch_recipe_hiverge +ok .* 93.00 %, 2.50 s, 2.75 s with the whitening, 1 runs" "torch_recipe_compiled +ok" "total: ok"
for run in "cifar_train --recipe hiverge .*--precision bf16 --cuda-graph on --data $work/data --seed 10 " "torch_speed_run.py .*--recipe bag-of-tricks "; do
  grep -q "$run" calls || wrong "DATA" "does not run $run"
done
"$python" - "$OUT" <<'PYTHON' || wrong "DATA" "keeps other figures of recipes"
import json, sys
ours, theirs = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("speed_run", "torch_speed_run"))
names = ["airbench94", "bag-of-tricks", "hiverge", "muon"]
assert sorted(ours) == sorted([name + "_graph_on" for name in names] + ["airbench94_graph_off", "muon_graph_off"]), list(ours)
assert sorted(theirs) == sorted([*names, "airbench94_compiled"]), list(theirs)
PYTHON
trained=$(called "cifar_train --recipe muon .*--cuda-graph on .*--run-dir")
rm "$BUILD/check/steps/recipe_muon"  # as if it had been cut off
rm -r "$BUILD/check/runs/muon-on/seed-10"
check_run 0 "DATA=data TORCH=1" "recipes" "recipe_muon +ok .* 10 runs" "total: ok"
[ "$(called "cifar_train --recipe muon .*--cuda-graph on .*--run-dir")" = $((trained + 1)) ] || wrong "DATA" "trains again what is complete"
check_run 0 "DATA=data" "recipes --fresh" "total: ok"
[ "$(called "cifar_train --recipe muon .*--cuda-graph on .*--run-dir")" = $((2 * trained + 1)) ] || wrong "DATA --fresh" "takes old runs"

# What cannot be kept is named, and no reason to say that all is well.
start_anew
(SPOIL_OUT=train_bench PATH=$work/bin bash "$script" build bench) >out.txt 2>&1
[ $? = 1 ] || wrong "SPOIL_OUT" "ends well where nothing is kept"
for text in "^tuned_conv_f32 +ok" "^NOT KEPT, as $OUT cannot be written or is full: this table" \
  "^NOT KEPT, .* full: .*/ladder.json" "total: ok, 6 files NOT KEPT \(they stay below $BUILD\)"; do
  grep -Eq -- "$text" out.txt || wrong "SPOIL_OUT" "output without '$text'"
done

# Folders whose names hold what shells and patterns make something of.
start_anew
folder=$work/"odd/it's [1] *"
(BUILD=$folder/build OUT=$folder/out PATH=$work/bin bash "$script" build correctness) >out.txt 2>&1 ||
  wrong "BUILD=$folder" "does not end well"
[ -s "$folder/out/hopper.json" ] || wrong "BUILD=$folder" "keeps $(ls "$folder/out")"

# All cores compile, whatever OpenMP is told to use; temporary files are where there is room.
expect 0 "OMP_NUM_THREADS=1 TMPDIR=$work/none" "build" "compile +ok"
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
grep -q -- "--build .* --parallel $cores .*temporary files in $BUILD/check/tmp$" calls || wrong "TMPDIR=none" "$(cat calls)"
[ -d "$BUILD/check/tmp" ] || wrong "TMPDIR=none" "names a folder that is not there"

# Parts in calls of their own. What has come to an end is not run again, unless programs have changed or --fresh says so.
expect 0 "A=" "build" "compile +ok" "device_query +not run" "total: ok"
check_run 0 "A=" "correctness" "compile +ok" "tests_kernels +ok" "bench_conv_f16 +not run" "total: ok"
check_run 0 "A=" "correctness" "^correctness: .* steps were run by earlier calls" "tests_kernels +ok" "total: ok"
[ "$(called "tandem_core_tests")" = 1 ] || wrong "correctness" "runs again what it has run"
[ -s "$OUT/hopper.json" ] || wrong "correctness" "does not keep what an earlier call has found"
touch "$BUILD/tests/tandem_layers_tests"
check_run 0 "A=" "correctness" "total: ok"
[ "$(called "tandem_core_tests")" = 2 ] || wrong "correctness" "takes results of other programs"
check_run 0 "A=" "correctness --fresh" "total: ok"
[ "$(called "tandem_core_tests")" = 3 ] || wrong "correctness --fresh" "takes old results"

# A failure in each part is named, and leaves what the others find.
expect 1 "FAIL='compile:tests/tandem_layers_tests tandem_autograd_tests train_bench' BLIND=1" "" \
  "compile +FAILED .*1 errors, the first: a.cpp:1:10: fatal error: b.h" "programs_start +FAILED .*tandem_layers_tests" \
  "tests_layers +FAILED .*No such file" \
  "tests_autograd +FAILED .*tandem_autograd_tests is made to fail" "tests_kernels +ok" "train_one_rank +ok" \
  "steps_small_cnn_fp16 +FAILED .*train_bench is made to fail" "bench_ladder +ok" \
  "planted_faults +FAILED" "memcheck does NOT report: write past the end" "racecheck does NOT report: " \
  "sanitizer_memcheck +ok" "total: [0-9]+ steps FAILED or did not run"
expect 1 "FAIL=cmake" "" "configure +FAILED" "cmake is made to fail" "nothing is built" "tests_core +not run"
expect 0 "A=" "build" "compile +ok"
check_run 1 "FAIL=cmake" "build" "configure +FAILED" "compile +not run" "programs_start +not run"  # though they were once
check_run 1 "FAIL=conv_bench" "build correctness" "hopper_cudnn +FAILED" "tests_libraries +ok" "train_two_ranks +ok"
[ ! -e "$OUT/hopper.json" ] || wrong "FAIL=conv_bench" "keeps a benchmark that did not run"

# What hangs ends at its own limit; what its part has no time for is run by the next call, and nothing else is.
expect 1 "HANG=tandem_core_tests LIMIT=4" "build correctness" "tests_core +TIMEOUT .*its limit is 4 s" "tests_kernels +ok"
rm -rf "$BUILD/check/steps" calls
check_run 1 "HANG=tandem_core_tests PART_LIMIT=4" "correctness" \
  "device_query +ok" "tests_core +NO TIME" "tests_kernels +NO TIME"
check_run 0 "A=" "correctness" "tests_core +ok" "train_two_ranks +ok" "total: ok"
[ "$(called "device_query")" = 1 ] || wrong "correctness" "runs again what had its time"

# The whole call has a limit, too: what it leaves out has no time.
start_anew
check_run 0 "A=" "build"
begin=$SECONDS
check_run 1 "HANG='tandem_core_tests train_bench' CALL_LIMIT=4" "correctness bench" \
  "device_query +ok" "tests_core +NO TIME" "tests_kernels +NO TIME" "steps_small_cnn_fp16 +NO TIME" "tuned_conv_f32 +NO TIME"
[ $((SECONDS - begin)) -lt 20 ] || wrong "CALL_LIMIT=4" "took $((SECONDS - begin)) s"

# nvidia-smi names a GPU, but programs see none.
check_run 1 "NO_CUDA=1" "correctness --fresh" "device_query +FAILED .*no CUDA device: the driver is too old"

# Killed in a step: what came before is kept, the table tells, and the next call goes on.
for signal in TERM KILL; do
  start_anew
  check_run 0 "A=" "build"
  rm -rf "$OUT"
  HANG=tandem_core_tests LIMIT=30 PATH=$work/bin bash "$script" correctness >out.txt 2>&1 &
  killed=$!
  for ((i = 0; i < 300; i++)); do
    if grep -qs "tandem_core_tests" calls && [ -s "$BUILD/check/running" ]; then break; fi
    sleep 0.1
  done
  OUT=$work/other PATH=$work/bin bash "$script" correctness >out.txt 2>&1
  grep -q "another call, process $killed, is at work in $BUILD" out.txt || wrong "" "disturbs a call that is at work"
  kill -$signal $killed
  wait $killed 2>/dev/null
  check_kept "kill -$signal" 1
  left=$(cut -d' ' -f2 "$BUILD/check/running" 2>/dev/null)
  grep -Eq "device_query +ok" "$OUT/table.txt" || wrong "kill -$signal" "keeps nothing of what was done"
  grep -Eq "tests_core +CUT OFF" "$OUT/table.txt" || wrong "kill -$signal" "does not tell what was cut off"
  check_run 0 "A=" "correctness" "tests_core +ok" "total: ok"
  [ "$(called "device_query")" = 1 ] || wrong "kill -$signal" "starts from nothing"
  [ -z "$left" ] || [ -z "$(tr -d '\0' 2>/dev/null <"/proc/$left/cmdline")" ] || wrong "kill -$signal" "leaves the killed call's step running"
done

# Tests that leave themselves out have not run, unless they want more GPUs.
expect 1 "SKIP='cuDNN 9.0 was not found' SKIP_CTEST=1 NO_TESTS=1" "build correctness" "tests_data +FAILED .*No tests ran" \
  "tests_libraries +SKIPS .*did not run: 1 of 3 test cases, 1 of them: cuDNN 9.0 was not found" \
  "library_refusals +SKIPS .*did not run: .*cuDNN is missing"
# A recording that is too large is compressed.
expect 0 "SKIP='needs 2 CUDA devices' GOLDEN_BYTES=20000000" "build correctness" \
  "tests_core +ok .*did not run: 1 of 3 test cases, which are for other machines" "golden_record +ok" "total: ok"
[ -s "$OUT/golden.json.gz" ] || wrong "GOLDEN_BYTES" "keeps no large recording"

# A rehearsal starts everything, and says that nothing ran; what fails for another reason than a missing GPU has failed.
expect 0 "NO_GPU=1" "--dry-run" "a rehearsal: nothing ran on a GPU" "compile +ok" "programs_start +ok" "tests_kernels +no GPU" \
  "hopper_cudnn +no GPU" "steps_airbench94_fp32 +no GPU" "bench_conv_f16 +no GPU" "planted_faults +no GPU" "sanitizer_memcheck +no GPU" "total: ok"
expect 1 "NO_GPU=1 FAIL=conv_bench" "build correctness --dry-run" "hopper_cudnn +FAILED .*conv_bench is made to fail"

# Packages: damaged; and those of Open MPI, whose mpirun Debian makes by alternatives.
mkdir offline && echo damaged >offline/libx.deb
expect 1 "A=" "build --dry-run" "unpack +FAILED" "compile +ok"
mv bin/mpirun orterun
stand_in dpkg-deb <<<'mkdir -p "$3/usr/bin" && cd "$3/usr/bin" && cp "$WORK/orterun" . && ln -s orterun mpirun.openmpi'
expect 0 "A=" "build" "unpack +ok" "total: ok"
check_run 0 "A=" "correctness" "train_two_ranks +ok"
mv orterun bin/mpirun
rm -r offline bin/dpkg-deb

# compute-sanitizer that sees faults everywhere, and that is not there.
expect 1 "NERVOUS=1" "build sanitize" "planted_faults +FAILED" "memcheck does NOT pass the correct kernels" \
  "hopper_memcheck +FAILED" "sanitizer_racecheck +FAILED"
expect 1 "SILENT=1" "build sanitize" "hopper_memcheck +FAILED .*has not said what it found" "sanitizer_memcheck +FAILED"
rm bin/compute-sanitizer
expect 1 "A=" "build sanitize" "planted_faults +FAILED" "sanitizer_memcheck +FAILED .*compute-sanitizer is not on the PATH"

[ $failures = 0 ] && echo "all cases passed"
exit $((failures > 0))
