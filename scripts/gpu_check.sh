#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one and perhaps no network. In parts, each of which ends within
# nine minutes on 16 cores; a second call of a part goes on where the one before stopped.
# usage: scripts/gpu_check.sh [PART ...] [--fresh] [--dry-run]
#   build         everything, for the GPU found: unpacks what scripts/offline_bundle.sh collected, compiles, looks at registers
#   correctness   the CUDA tests, the kernels for Hopper with a benchmark against cuDNN, golden outputs, a short training
#   steps         training steps without and with CUDA graphs, beside PyTorch's where it is installed, eager and as graphs
#   steps_f32     the same in f32
#   recipes       the recipes of the speed run over ten seeds, and PyTorch's
#   compiled      training steps beside torch.compile
#   convolutions  convolutions and the ladder, timed; a profile of some steps
#   sanitize      compute-sanitizer over planted faults, the kernels for Hopper and the op table
#   bench         steps, steps_f32, recipes, compiled and convolutions: all that is timed, in the order that matters
#   all           all of these (the default)
#   --fresh      forgets what earlier calls of these parts have found; after a build that changed anything that happens anyway
#   --dry-run    for machines without a GPU: steps that need one are only started, and the table says "no GPU"
# Environment: OUT         what is kept: a table, the logs in one file, a few JSON files (build/gpu_check)
#              BUILD       where it is built, and where it works (build/gpu)
#              OFFLINE     Debian packages collected by scripts/offline_bundle.sh (offline/); used where it exists
#              LIMIT       seconds that one step on the GPU may take (by step: 30 to 240)
#              PART_LIMIT  seconds that a part may take (510; building takes fewer cores as much longer)
#              CALL_LIMIT  seconds that all of this call may take, where commands are cut off; its last steps then have no time
#              CUDA_HOME   where nvcc is if it is not on the PATH (/usr/local/cuda)
#              TORCH_PYTHON  the Python whose PyTorch training is timed beside (python3)
#              DATA        folder with the binary files of CIFAR-10, for the recipes; without it these are left out
# Exit code 1 if any step of these parts failed or did not come to run, 2 for a machine or arguments that it cannot work with.
set -uo pipefail
called_from=$PWD
cd "$(dirname "$0")/.."

timed_parts=(steps steps_f32 recipes compiled convolutions)
all_parts=(build correctness "${timed_parts[@]}" sanitize)
usage="usage: scripts/gpu_check.sh [$(IFS='|'; echo "${all_parts[*]}")|bench|all ...] [--fresh] [--dry-run]"
parts=() fresh=0 dry=0
for argument in "$@"; do
  case "$argument" in
    build | correctness | steps | steps_f32 | recipes | compiled | convolutions | sanitize) parts+=("$argument") ;;
    bench) parts+=("${timed_parts[@]}") ;;
    all) parts+=("${all_parts[@]}") ;;
    --fresh) fresh=1 ;;
    --dry-run) dry=1 ;;
    *) echo "gpu_check: not expected: $argument; $usage" >&2; exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=("${all_parts[@]}")
export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
for tool in nvcc cmake tar gzip; do
  command -v "$tool" >/dev/null && continue
  echo "gpu_check: $tool is not on the PATH; install $([ "$tool" = nvcc ] && echo "the CUDA toolkit" || echo it)" >&2
  exit 2
done
for limit in "${LIMIT:-1}" "${PART_LIMIT:-1}" "${CALL_LIMIT:-1}"; do
  [[ $limit =~ ^[1-9][0-9]{0,5}$ ]] && continue
  echo "gpu_check: LIMIT, PART_LIMIT and CALL_LIMIT are whole numbers of seconds, not '$limit'" >&2
  exit 2
done
if [ "$dry" -eq 1 ]; then
  export CUDA_VISIBLE_DEVICES=
elif ! timeout 60 nvidia-smi -L >/dev/null 2>&1; then
  echo "gpu_check: nvidia-smi finds no GPU; use --dry-run for a rehearsal without one" >&2
  exit 2
fi

# Steps run in shells of their own, so that their time can be limited: they see what is exported.
absolute() { case "$1" in /*) echo "$1" ;; *) echo "$called_from/$1" ;; esac; }
out=$(absolute "${OUT:-$PWD/build/gpu_check}") build=$(absolute "${BUILD:-$PWD/build/gpu}")
export root=$PWD out build offline=${OFFLINE:-$PWD/offline}
offline=$(absolute "$offline")
export torch_python=${TORCH_PYTHON:-python3}
case "$torch_python" in */*) torch_python=$(absolute "$torch_python") ;; esac
export data=${DATA:+$(absolute "$DATA")}
if [ -n "$data" ] && [ ! -e "$data/data_batch_1.bin" ]; then
  echo "gpu_check: DATA=$data has no data_batch_1.bin; scripts/get_data.sh fetches CIFAR-10" >&2
  exit 2
fi
export work=$build/check CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Logs, what steps came to, and what is kept of their results.
export logs=$work/logs steps=$work/steps results=$work/results prefix=$build/packages
for folder in "$out" "$logs" "$steps" "$results"; do
  mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] && continue
  echo "gpu_check: cannot write to $folder; name other folders by OUT and BUILD" >&2
  exit 2
done
# The step of a call that was killed runs on until its limit, and would share the GPU with this one.
is_process() { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q -- "$2"; }
if read -r other left 2>/dev/null <"$work/running"; then
  if is_process "$other" gpu_check; then
    echo "gpu_check: another call, process $other, is at work in $build; wait for its end, or name another folder by BUILD" >&2
    exit 2
  fi
  ! is_process "$left" "^timeout --kill-after=5 " || kill -KILL -- "-$left"
fi
echo "$$ none" >"$work/running"
# All cores: nproc alone tells what OpenMP may use.
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
export cores
# Every compiler that runs keeps files of many MiB in TMPDIR, which may be small, or missing.
free_kib=$(df -Pk "${TMPDIR:-/tmp}" 2>/dev/null | sed -n '$s/^.* \([0-9][0-9]*\)  *[0-9]*% .*/\1/p')
if [ "${free_kib:-0}" -lt $((2 << 20)) ] || [ ! -w "${TMPDIR:-/tmp}" ]; then
  export TMPDIR=$work/tmp
  mkdir -p "$TMPDIR" || exit 2
fi

# --- Steps, and the table of what they came to ----------------------------------------------------------------------------

planning=0       # 1: steps are only listed
planned=()       # part, name and seconds of every step, in order
part=            # whose steps run
part_deadline=0  # when they must be done
current=         # the step that runs, and its process
child=

# A step's outcome is a file: status, seconds, note. Statuses: ok; - (nothing to do, or nothing to do it with); no GPU (in a
# rehearsal); and those that count as failures: FAILED, TIMEOUT, SKIPS (tests that did not run), NO TIME (left of its part),
# CUT OFF (the script was ended), and "not run".
record() { printf '%s\t%s\t%s\n' "$2" "$3" "${4:-}" >"$steps/$1.part" && mv "$steps/$1.part" "$steps/$1"; }
# read_outcome NAME: into status, seconds and text.
read_outcome() {
  status="not run" seconds=- text=
  [ ! -f "$steps/$1" ] || IFS=$'\t' read -r status seconds text <"$steps/$1"
}
has_failed() { case "$1" in ok | - | "no GPU") return 1 ;; *) return 0 ;; esac; }
row() { printf '%-24s %-8s %6s  %s\n' "$@"; }

write_table() {
  local line section name status seconds text last=
  describe_run
  for line in "${planned[@]}"; do
    read -r section name seconds <<<"$line"
    [ "$section" = "$last" ] || printf '%s\n' "-- $section"
    last=$section
    read_outcome "$name"
    row "$name" "$status" "$seconds" "$text"
  done
  [ ${#left_out[@]} -eq 0 ] || printf '%s\n' "${left_out[@]}"
}

describe_run() {
  printf 'gpu_check %s, %s%s\n' "${parts[*]}" "$(date -u +"%Y-%m-%d %H:%M UTC")" \
    "$([ "$dry" -eq 0 ] || echo ", a rehearsal: nothing ran on a GPU")"
}

# All logs in one file; of very long ones the beginning and the end.
pack_logs() {
  local log packed=$work/logs.packed
  if [ -z "$(find "$logs" -type f -size +4096k -print -quit)" ]; then
    tar -C "$work" -czf "$work/logs.tar.gz" logs
    return
  fi
  rm -rf "$packed" && mkdir -p "$packed" && cp -R "$logs" "$packed/logs"
  find "$packed" -type f -size +4096k | while IFS= read -r log; do
    { head -c 1048576 "$log"; printf '\n... left out ...\n'; tail -c 2097152 "$log"; } >"$packed/short"
    mv "$packed/short" "$log"
  done
  tar -C "$packed" -czf "$work/logs.tar.gz" logs
  rm -rf "$packed"
}

# put NAME: standard input to this file in $OUT, as a whole or not at all.
put() {
  { cat >"$out/$1.part" && mv "$out/$1.part" "$out/$1"; } 2>/dev/null && return
  rm -f "$out/$1.part"
  return 1
}

# keep FILE: to $OUT, compressed if it is large; what is too large all the same is named in the table.
largest_file=$((16 * 1024 * 1024))
left_out=()  # what the last publish could not keep, for the table
keep() {
  local file=$1 name=${1##*/}
  if [ "$(wc -c <"$file")" -gt $largest_file ]; then
    gzip -c "$file" >"$work/$name.gz"
    file=$work/$name.gz name=$name.gz
  fi
  if [ "$(wc -c <"$file")" -gt $largest_file ]; then
    left_out+=("NOT KEPT, as it is larger than 16 MiB: $file")
  else
    put "$name" <"$file" || left_out+=("NOT KEPT, as $out cannot be written or is full: $file")
  fi
}

publish_table() { write_table | put table.txt; }

# What is kept is as good as complete after every step: nobody knows whether there will be another. Logs of the last seconds
# may be missing until the end.
packed_at=-10
publish() {
  local file kept
  left_out=()
  publish_table || left_out+=("NOT KEPT, as $out cannot be written or is full: this table")
  for kept in hopper.json steps.json speed_run.json torch_speed_run.json; do gather "${kept%.json}"; done
  for file in "$results"/*.json; do
    kept=$out/${file##*/}
    [ ! -f "$file" ] || [ "$kept" -nt "$file" ] || [ "$kept.gz" -nt "$file" ] || keep "$file"
  done
  if [ "${1:-}" = all ] || [ $((SECONDS - packed_at)) -ge 5 ]; then
    pack_logs && keep "$work/logs.tar.gz"
    packed_at=$SECONDS
  fi
  [ ${#left_out[@]} -eq 0 ] || publish_table || true
}

# gather NAME: NAME.json holds what steps wrote to NAME_*.json, by what stands for *. Of conv_bench, each of whose contestants
# is timed in a process of its own, it is one report, but where a file is not what it should be.
gather() {
  local file one separator='{'
  [ -n "$(find "$work" -maxdepth 1 -name "$1_*.json" -newer "$results/$1.json" 2>/dev/null)" ] ||
    [ ! -e "$results/$1.json" ] || return 0
  local files=("$work/$1"_*.json)
  [ -e "${files[0]}" ] || return 0
  if [ "$1" = hopper ]; then
    ! "$root/scripts/merge_conv_bench.py" "${files[@]}" --json "$results/$1.json" >"$logs/$1.log" 2>&1 || return 0
  fi
  for file in "${files[@]}"; do
    one=${file##*/"$1"_}
    printf '%s\n"%s": ' "$separator" "${one%.json}"
    cat "$file"
    separator=,
  done >"$work/$1.part"
  echo '}' >>"$work/$1.part" && mv "$work/$1.part" "$results/$1.json"
}

# Ended from outside: what runs is ended, too, and the table says so.
end_early() {
  trap - TERM INT HUP PIPE
  if [ -n "$child" ]; then
    kill -TERM "$child" 2>/dev/null
    sleep 1
    kill -KILL -- "-$child" 2>/dev/null
  fi
  [ -z "$current" ] || record "$current" "CUT OFF" - "the script was ended"
  exit 143
}
trap end_early TERM INT HUP PIPE
trap 'publish all; rm -f "$work/running"' EXIT

# step SECONDS NAME COMMAND...: runs it with its output in $logs/NAME.log. A last line "table: TEXT" is its note in the table;
# exit codes: 77 there is nothing to do, 78 tests did not run, 79 rehearsed.
step() {
  local limit=$1 name=$2 begin=$SECONDS code=0 left least status=ok text=
  shift 2
  if [ $planning -eq 1 ]; then planned+=("$part $name $limit"); return 0; fi
  left=$((part_deadline - begin))
  if [ "$left" -le 0 ]; then finish_step "$name" "NO TIME" -; return 1; fi
  current=$name
  record "$name" "CUT OFF" - "it runs, or the script was killed"
  publish_table
  least=$((limit < left ? limit : left))
  timeout --kill-after=5 $least bash -o pipefail -c '"$@"' step "$@" \
    >"$logs/$name.log" 2>&1 </dev/null &
  child=$!
  echo "$$ $child" >"$work/running"
  wait $child || code=$?
  echo "$$ none" >"$work/running"
  child= current=
  case "$code" in
    0) ;;
    77) status=- ;;
    78) status=SKIPS ;;
    79) status="no GPU" ;;
    *) status=FAILED ;;
  esac
  if [ "$code" -eq 124 ] || { [ "$code" -eq 137 ] && [ $((SECONDS - begin)) -ge $least ]; }; then
    status=$([ "$limit" -le "$left" ] && echo TIMEOUT || echo "NO TIME")
  fi
  text=$(sed -n '$s/^table: //p' "$logs/$name.log")
  [ "$status" = ok ] || text=${text:-$(last_words "$logs/$name.log")}
  [ "$status" != TIMEOUT ] || text="its limit is $limit s; last words: $text"
  finish_step "$name" "$status" "$((SECONDS - begin))s" "$text"
}
# Of a log the last error, or else the last line.
last_words() {
  local line
  line=$(grep -i 'error: ' "$1" | tail -n 1)
  [ -n "$line" ] || line=$(grep -v '^[=[:space:]-]*$' "$1" | tail -n 1)
  cut -c 1-120 <<<"$line"
}
finish_step() {
  record "$@"
  row "$1" "$2" "$3" "${4:-}"
  publish
  has_failed "$2" || return 0
  [ "$2" = "NO TIME" ] || { echo "see $logs/$1.log:"; tail -n 15 "$logs/$1.log" | sed 's/^/    /'; }
  return 1
}

# The same for what needs the GPU, unless an earlier call has brought it to an end with the programs as they are.
gpu_step() {
  local limit=${LIMIT:-$1} name=$2 rehearsal=()
  shift 2
  if [ $planning -eq 0 ] && is_done "$name"; then return; fi
  [ "$dry" -eq 0 ] || rehearsal=(rehearse)
  step "$limit" "$name" "${rehearsal[@]}" "$@"
}
is_done() {
  local status seconds text
  read_outcome "$1"
  case "$status" in "not run" | "NO TIME" | "CUT OFF" | "no GPU") return 1 ;; esac
  [ -d "$build/apps" ] || return 1
  [ -z "$(find "$build"/{apps,tests} -maxdepth 2 -type f -perm -u+x -newer "$steps/$1" -print -quit)" ]
}
# Starts what needs a GPU. It has passed the rehearsal if it ends well, or because it says that there is none.
rehearse() {
  local code
  "$@" 2>&1 | tee "$work/rehearsal.log"
  code=${PIPESTATUS[0]}
  case "$code" in 0 | 77 | 78) return 79 ;; esac
  # What Tandem says, and what the runtime says to programs that do without it.
  ! grep -q "no NVIDIA driver\|the driver shows no CUDA device\|cudaErrorInsufficientDriver\|cudaErrorNoDevice\|sees no GPU" \
    "$work/rehearsal.log" || return 79
  return "$code"
}

# --- The machine ----------------------------------------------------------------------------------------------------------

unpack_packages() {
  local package file
  rm -rf "$prefix" "$prefix.part" && mkdir -p "$prefix.part"
  for package in "$offline"/*.deb; do
    if command -v dpkg-deb >/dev/null; then
      dpkg-deb -x "$package" "$prefix.part" || return 1
    else
      (cd "$prefix.part" && ar p "$package" data.tar.xz | tar xJ) || return 1
    fi
  done
  # What Debian's alternatives would do: mpirun, mpicxx ...
  for file in "$prefix.part"/usr/bin/*.openmpi; do
    [ ! -L "$file" ] || ln -sf "${file##*/}" "${file%.openmpi}"
  done
  prefer_system "$prefix.part"
  mv "$prefix.part" "$prefix"
}

# Libraries that the system has as well, by the name that programs ask for, are the system's: other programs here need them.
prefer_system() {
  local file name known
  known=$( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null | sed -n 's/^\s*\(\S*\) .*/\1/p')
  for file in "$1"/usr/lib/*-linux-gnu/lib*.so.* "$1"/lib/*-linux-gnu/lib*.so.*; do
    name=${file##*/}
    case "$name" in libdnnl* | libmpi* | libopen-* | libfmt*) continue ;; esac  # headers here are those of the packages
    [ ! -L "$file" ] || ! grep -qxF "$name" <<<"$known" || rm "$file"
  done
}

packages_are_used=0
use_packages() {
  if [ $planning -eq 1 ] || [ $packages_are_used -eq 1 ] || [ ! -d "$prefix" ]; then return; fi
  packages_are_used=1
  local libraries
  libraries=$(printf '%s\n' "$prefix"/usr/lib/*-linux-gnu | head -1)
  export CMAKE_PREFIX_PATH=$prefix/usr:$libraries/openmpi${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export PATH=$prefix/usr/bin:$PATH
  local folders=$libraries:$libraries/openmpi/lib:$prefix/lib/${libraries##*/}
  export LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export CPATH=$prefix/usr/include${CPATH:+:$CPATH} LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
  # Open MPI was built for /usr: this is where it is now. Its plugins for networks are not there.
  export OPAL_PREFIX=$prefix/usr OPAL_LIBDIR=$libraries/openmpi/lib OPAL_DATADIR=$prefix/usr/share
  export PMIX_INSTALL_PREFIX=$libraries/pmix2 PMIX_MCA_pcompress_base_silence_warning=1
  export OMPI_MCA_btl_vader_single_copy_mechanism=none
  export OMPI_MCA_mca_base_component_show_load_errors=0 PMIX_MCA_mca_base_component_show_load_errors=0
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI 4 gives up where it finds no way to other machines, which are not needed.
command -v ssh >/dev/null || command -v rsh >/dev/null || export OMPI_MCA_plm=^rsh

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
  c++ --version | head -1
  cmake --version | head -1
  echo "$cores cores; temporary files in ${TMPDIR:-/tmp}"
}

# --- build ----------------------------------------------------------------------------------------------------------------

configure() {
  local generator=() answer
  ! command -v ninja >/dev/null || generator=(-G Ninja)
  run_cmake() {
    cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DTANDEM_DEVELOPMENT_BUILD=ON \
      -DTANDEM_WERROR=OFF -DTANDEM_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$(architecture)" -DCMAKE_CUDA_FLAGS=-Xptxas=-v "$@"
  }
  answer=$(run_cmake 2>&1)
  local code=$?
  # The machine's own headers of cuDNN fit its library; those carried along are for what it lacks.
  local carried=()
  if grep -q "✗ cuDNN.*cudnn\.h" <<<"$answer" && [ -f "$offline/cudnn/include/cudnn.h" ]; then
    carried+=(-DCuDNN_ROOT="$offline/cudnn")
  fi
  if grep -q "✗ cuDNN.*cudnn_frontend\.h" <<<"$answer" && [ -f "$offline/cudnn_frontend/include/cudnn_frontend.h" ]; then
    carried+=(-DCuDNNFrontend_ROOT="$offline/cudnn_frontend")
  fi
  if [ $code -eq 0 ] && [ ${#carried[@]} -gt 0 ]; then
    answer=$(run_cmake "${carried[@]}" 2>&1)
    code=$?
  fi
  printf '%s\n' "$answer"
  answer=$(sed -n 's/^.*✗ \(oneDNN\|MPI\|NCCL\|cuBLAS\|cuDNN\):.*/ \1/p' <<<"$answer")
  [ -z "$answer" ] || echo "table: without" $answer
  return $code
}

# Goes on after errors: what one file is needed for is missing then, and everything else runs. What ptxas said is kept
# over several runs, which build only what has changed.
compile() {
  local go_on=-k
  [ ! -f "$build/build.ninja" ] || go_on=-k0
  local log=$work/compile.log code=0
  cmake --build "$build" --parallel "$cores" -- "$go_on" 2>&1 | tee -a "$build/compiled.log" | tee "$log" || code=$?
  ! grep -q 'error: ' "$log" ||
    echo "table: $(grep -c 'error: ' "$log") errors, the first: $(grep -m 1 'error: ' "$log" | sed "s|$root/||g" | cut -c 1-120)"
  return $code
}
build_fault_probe() { cmake --build "$build" --parallel "$cores" --target fault_probe; }

# Every program is there, and finds its libraries.
programs_start() {
  local program failed=()
  for program in tests/tandem_{core,kernels,op_cases,autograd,layers,optim,data,comm,train}_tests tests/op_table_recorder \
    apps/{train_bench,conv_bench,cifar_train}; do
    "$build/$program" --help >/dev/null || failed+=("${program#*/}")
  done
  "$build/tests/fault_probe" --list || failed+=(fault_probe)
  [ ${#failed[@]} -eq 0 ] || echo "error: these do not start: ${failed[*]}"
  return $((${#failed[@]} > 0))
}

part_build() {
  local compile_seconds
  compile_seconds=$(on_16_cores 300)
  step 30 machine describe_machine
  local packages=("$offline"/*.deb)
  if [ -e "${packages[0]}" ]; then
    step 60 unpack unpack_packages
  else
    step 5 unpack no_packages
  fi
  use_packages
  step "$(on_16_cores 60)" configure configure || return
  step "$compile_seconds" compile compile
  step 60 kernel_resources "$root/scripts/kernel_resources.py" "$build/compiled.log"
  step "$compile_seconds" build_fault_probe build_fault_probe
  step 60 programs_start programs_start
}
no_packages() { echo "no packages in $offline: using the system's"; return 77; }
# What 16 cores do in these seconds, fewer cores do in as many times more.
on_16_cores() { echo $(($1 * (16 + cores - 1) / cores)); }

# --- correctness ----------------------------------------------------------------------------------------------------------

# live COMMAND...: its output comes line by line, so that the log of what hangs and is killed tells how far it came.
live() { if command -v stdbuf >/dev/null; then stdbuf -oL "$@"; else "$@"; fi; }

# cuda_tests LIBRARY TAGS: a library's tests that have these tags. Test cases that skip themselves have not run, which is a
# failure unless they are for several GPUs, or for simulated ones.
cuda_tests() {
  local log=$work/tests.log code all reasons
  live "$build/tests/tandem_$1_tests" "$2" --durations yes | tee "$log"
  code=${PIPESTATUS[0]}
  [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || return "$code"
  ! grep -q "^No test" "$log" || return 1
  all=$(sed -n 's/^skipped: \([0-9]* of [0-9]* test cases\)$/\1/p' "$log")
  [ -n "$all" ] || return 0
  reasons=$(sed -n 's/^  *skipped: //p' "$log" | grep -v '^needs [0-9]* CUDA devices\|is not simulated' | sort | uniq -c |
    sort -rn | sed 's/^ *\([0-9]*\) /\1 of them: /')
  if [ -z "$reasons" ]; then
    echo "table: did not run: $all, which are for other machines"
    return "$code"
  fi
  echo "table: did not run: $all, $(head -n 1 <<<"$reasons")"
  return 78
}

# by_ctest REGEX: the tests of these names.
by_ctest() {
  ctest --test-dir "$build" --no-tests=error --output-on-failure -R "$1" | tee "$work/ctest.log" || return
  if grep -q '(Skipped)$' "$work/ctest.log"; then
    echo "table: did not run: $(grep '(Skipped)$' "$work/ctest.log" | head -n 1)"
    return 78
  fi
}

# 77 says that there is no GPU: then nothing was recorded, and the step has failed.
record_golden() {
  rm -f "$results/golden.json" "$out/golden.json"
  "$build/tests/op_table_recorder" --record "$work/golden.json" || return 1
  mv "$work/golden.json" "$results/golden.json"
}

# Processes on one GPU, which share its memory: two, and three, which reduce by parts. Segments of the usual size as well.
tests_of_ranks() {
  if [ ! -x "$build/tests/tandem_comm_mpi_tests" ]; then
    echo "table: the build is without MPI"
    return 77
  fi
  TANDEM_CUDA_IPC=on mpirun --oversubscribe -np "$1" "$build/tests/tandem_comm_mpi_tests" "[device window]" --durations yes
}

train() {
  local ranks=$1
  local program=("$build/apps/cifar_train" --no-run-dir --device cuda --dataset synthetic --limit-train 4096 --limit-test 1024
    --epochs 2 --model small_cnn)
  if [ "$ranks" -eq 1 ]; then
    live "${program[@]}"
  else
    mpirun --oversubscribe -np "$ranks" "${program[@]}" --check-replicas
  fi
}

# conv_bench JSON OPTION...: every benchmark of convolutions goes through here.
conv_bench() {
  rm -f "$1" "$out/${1##*/}"
  live "$build/apps/conv_bench" --device cuda --json "$@"
}

# The kernels for Hopper and whom they are compared with, each in a process of its own: what fails or hangs takes no other
# along. The plainest question first: nothing is measured beforehand, caches are as the run before has left them.
bench_hopper() {
  rm -f "$results/hopper.json"
  conv_bench "$work/hopper_$1.json" --layers vgg_lite --batch 512 --groups 7 --precision fp16,bf16 \
    --passes fwd,dgrad,wgrad --cache hot --impl "$1"
}

# That nvidia-smi names a GPU does not tell that programs can use it.
query_devices() { "$build/apps/device_query" | tee "$work/devices" && grep -q '^cuda:0' "$work/devices"; }

part_correctness() {
  local library
  gpu_step 30 device_query query_devices
  gpu_step 60 tests_core cuda_tests core "[cuda]"
  gpu_step 90 tests_kernels cuda_tests kernels "[cuda]~[warpgroup]~[library]"
  gpu_step 60 tests_warpgroup cuda_tests kernels "[cuda][warpgroup]"
  gpu_step 45 hopper_warpgroup bench_hopper warpgroup
  gpu_step 90 hopper_cudnn bench_hopper cudnn  # which may compile plans at run time
  gpu_step 45 hopper_fused bench_hopper fused
  gpu_step 60 tests_libraries cuda_tests kernels "[library]"
  for library in op_cases autograd layers optim data comm train; do gpu_step 60 "tests_$library" cuda_tests "$library" "[cuda]"; done
  # What cifar_train says of a cuBLAS or cuDNN that is missing, too old or something else.
  gpu_step 60 library_refusals by_ctest "cifar_train: (cuDNN is|cuBLAS is|auto does)"
  gpu_step 60 golden_record record_golden
  gpu_step 60 golden_replay "$build/tests/op_table_recorder" --replay "$root/tests/golden"
  gpu_step 60 train_one_rank train 1
  gpu_step 60 tests_two_ranks tests_of_ranks 2
  gpu_step 60 tests_three_ranks tests_of_ranks 3
  gpu_step 60 train_two_ranks train 2
  gpu_step 60 train_as_on_cpu by_ctest "train: CUDA follows the CPU"
}

# --- bench: steps, steps_f32, recipes, compiled and convolutions ----------------------------------------------------------

step_models=(small_cnn vgg_lite airbench94)
# What training steps of a model are timed with, here and in PyTorch.
optimizer_of() { if [ "$1" = airbench94 ]; then echo sgd; else echo adam; fi; }

# bench_steps MODEL PRECISION: batches of three sizes, without and with CUDA graphs.
bench_steps() {
  local batch graph report=$work/steps_own_$1_$2.json separator='[' note=
  rm -f "$report" "$report.part"
  for batch in 128 512 1024; do
    note+="; batch $batch"
    for graph in off on; do
      live "$build/apps/train_bench" --device cuda --steps 50 --warmup 15 --model "$1" --precision "$2" \
        --optimizer "$(optimizer_of "$1")" --batch-size "$batch" --cuda-graph "$graph" | tee "$work/step.json" || return
      note+=" $(python3 -c 'import json; print("%.3f" % (1e3 * json.load(open("'"$work"'/step.json"))["median_seconds"]))')"
      { echo "$separator"; cat "$work/step.json"; } >>"$report.part"
      separator=,
    done
  done
  echo ']' >>"$report.part" && mv "$report.part" "$report"
  echo "table: ms without and with a graph${note/;/:}"
}

has_torch() { "$torch_python" -c 'import importlib.util as u; raise SystemExit(not (u.find_spec("torch") and u.find_spec("numpy")))'; }

# bench_torch MODEL PRECISION BATCH MODES: whole steps beside PyTorch's in these ways, in turns. Where one of them does not run,
# the step has failed and the others are told.
bench_torch() {
  local log=$work/torch.log report=$work/steps_$1_$3_$2_${4//,/_}.json code
  rm -f "$report"
  if ! has_torch; then
    echo "table: $torch_python has no PyTorch"
    return 77
  fi
  live "$torch_python" "$root/scripts/compare_pytorch.py" --device cuda --python "$torch_python" --model "$1" --precision "$2" \
    --batch-size "$3" --optimizer "$(optimizer_of "$1")" --threads 8 --cuda-graph on,off --torch-mode "$4" \
    --torch-format channels_last --pairs 4 --steps 50 --warmup 15 --json "$report" \
    --bench "$build/apps/train_bench" | tee "$log"
  code=${PIPESTATUS[0]}
  echo "table: $(sed -n '$s/^ratio \(.*\)$/\1 times PyTorch; /p' "$log")$(sed -n 's/^step, ms: /ms: /p' "$log")"
  return "$code"
}

# beside_torch PREFIX PRECISION SECONDS MODES: bench_torch of all models and sizes.
beside_torch() {
  local model batch
  for batch in 512 128 1024; do
    for model in "${step_models[@]}"; do gpu_step "$3" "$1_${model}_$batch" bench_torch "$model" "$2" "$batch" "$4"; done
  done
}

part_steps() {
  local model precision
  for precision in fp16 fp32; do
    for model in "${step_models[@]}"; do gpu_step 60 "steps_${model}_$precision" bench_steps "$model" "$precision"; done
  done
  beside_torch torch_fp16 fp16 90 eager,graphed
}

part_steps_f32() { beside_torch torch_fp32 fp32 90 eager,graphed; }

# torch.compile takes most of the time.
part_compiled() {
  beside_torch compiled_fp16 fp16 150 compile,reduce-overhead
  gpu_step 200 torch_recipe_compiled torch_recipe airbench94 --runs 4 --compile default
}

# note_of_runs FILE ACCURACY SKIPPED: the table's line of runs, of which the first ones may warm up.
note_of_runs() {
  python3 - "$@" <<'PYTHON'
import json, statistics, sys
report = json.load(open(sys.argv[1]))
runs = (report.get("each") or report["runs"])[int(sys.argv[3]):]
accuracy, seconds = statistics.fmean(run[sys.argv[2]] for run in runs), statistics.median(run["seconds"] for run in runs)
published = [run.get("published_seconds") for run in runs]
whole = "" if None in published else ", %.2f s with the whitening" % statistics.median(published)
print("table: %.2f %%, %.2f s%s, %d runs" % (accuracy, seconds, whole, len(runs)))
PYTHON
}

# recipe NAME GRAPH: ten seeds of the CIFAR-10 speed run. The next call does not repeat those that are complete.
recipe() {
  local folder=$work/runs/$1-$2 report=$work/speed_run_$1_graph_$2.json
  if [ -z "$data" ]; then
    echo "table: no CIFAR-10: name its folder by DATA"
    return 77
  fi
  [ "$folder/options.json" -nt "$build/apps/cifar_train" ] || rm -rf "$folder"
  live "$root/scripts/speed_run.py" --recipe "$1" --runs 10 --out "$folder" --program "$build/apps/cifar_train" -- \
    --device cuda --precision bf16 --cuda-graph "$2" --data "$data" || return
  cp "$folder/speed-run.json" "$report.part" && mv "$report.part" "$report"
  note_of_runs "$report" accuracy 0
}
# torch_recipe NAME OPTION...: the same recipe in PyTorch; its first run warms up.
torch_recipe() {
  local report
  report=$work/torch_speed_run_$1$([[ "$*" != *--compile* ]] || echo _compiled).json
  if [ -z "$data" ] || ! has_torch; then
    echo "table: no CIFAR-10 (DATA), or $torch_python has no PyTorch"
    return 77
  fi
  rm -f "$report"
  live "$torch_python" "$root/scripts/torch_speed_run.py" --data "$data" --device cuda --precision fp16 --quiet --recipe "$@" \
    --json "$report" || return
  note_of_runs "$report" test_accuracy_by_views 1
}

part_recipes() {
  local name
  for name in airbench94 muon hiverge; do gpu_step 120 "recipe_$name" recipe "$name" on; done
  gpu_step 240 recipe_bag-of-tricks recipe bag-of-tricks on
  for name in airbench94 muon hiverge; do gpu_step 90 "torch_recipe_$name" torch_recipe "$name" --runs 6; done
  gpu_step 120 torch_recipe_bag-of-tricks torch_recipe bag-of-tricks --runs 4
  for name in airbench94 muon; do gpu_step 120 "recipe_${name}_no_graph" recipe "$name" off; done
}

profile_training() {
  rm -rf "$work/profiled"
  live "$build/apps/cifar_train" --device cuda --dataset synthetic --limit-train 8192 --limit-test 512 --epochs 1 --model vgg_lite \
    --precision fp16 --batch-size 512 --profile steps=6:10 --run-dir "$work/profiled"
}

# bench_conv JSON PRECISION OPTION...: each layer by every implementation that there is, verified first.
bench_conv() { conv_bench "$1" --layers vgg_lite,mnist_cnn --batch 512 --groups 7 --precision "${@:2}"; }

bench_ladder() {
  local step steps=()
  for step in naive shared-tile register-tile tensor-cores pipelined halo; do steps+=("ladder-$step"); done
  conv_bench "$results/ladder.json" --layers vgg_lite --batch 128 --groups 3 --precision fp16 --cache hot \
    --impl "$(IFS=,; echo "${steps[*]}")"
}

part_convolutions() {
  local f32_contestants=ours,fused,tf32,3xtf32,cudnn,cudnn-unfused
  # As they are, caches hot, first; then with everything measured beforehand, and cold caches as well.
  gpu_step 90 bench_conv_f16 bench_conv "$results/conv_f16.json" fp16 --cache hot
  gpu_step 90 bench_conv_f32 bench_conv "$results/conv_f32.json" fp32 --cache hot --impl "$f32_contestants"
  gpu_step 90 bench_ladder bench_ladder
  gpu_step 60 profile profile_training
  gpu_step 120 tuned_conv_f16 bench_conv "$logs/conv_f16_tuned.json" fp16 --autotune --svg "$logs/conv_f16.svg"
  gpu_step 120 tuned_conv_f32 bench_conv "$logs/conv_f32_tuned.json" fp32 --autotune --svg "$logs/conv_f32.svg" \
    --impl "$f32_contestants"
  gpu_step 90 torch_resnet18_fp16 bench_torch resnet18 fp16 512 eager,graphed
  gpu_step 90 torch_vgg_lite_tf32 bench_torch vgg_lite tf32 512 eager,graphed
}

# --- sanitize -------------------------------------------------------------------------------------------------------------

sanitizer() {
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not on the PATH: it is part of the CUDA toolkit"
    return 1
  fi
  ${sanitizer_limit:+timeout --kill-after=2 "$sanitizer_limit"} compute-sanitizer --tool "$@"
}
# True if a log of compute-sanitizer holds an error or a hazard.
reports() { grep -Eq 'SUMMARY: [1-9][0-9]* (error|hazard)' "$1"; }

# sanitize TOOL COMMAND...: the command runs to its end, the tool sums up, and has found nothing.
sanitize() {
  local log=$work/sanitized.log
  sanitizer "$1" --error-exitcode 86 "${@:2}" 2>&1 | tee "$log" || return 1
  grep -q 'SUMMARY: ' "$log" || { echo "error: compute-sanitizer has not said what it found"; return 1; }
  ! reports "$log"
}
sanitize_op_table() { sanitize "$1" "$build/tests/op_table_recorder" --record "$work/$1.json"; }
sanitize_hopper() { sanitize "$1" "$build/tests/tandem_kernels_tests" "[cuda][warpgroup]"; }

# Each planted fault must be reported by its tool, and the correct kernels by none; fault_probe leaves those out that a tool
# cannot judge, and says so.
planted_faults() {
  local tool name log missed=0 list=$work/planted_faults.list
  local sanitizer_limit=20  # seconds: what is wrong may hang on hardware
  timeout "$sanitizer_limit" "$build/tests/fault_probe" --correct && "$build/tests/fault_probe" --list >"$list" || return 1
  mkdir -p "$logs/planted_faults"
  while IFS=$'\t' read -r tool name; do
    log="$logs/planted_faults/$tool, $name.log"
    sanitizer "$tool" "$build/tests/fault_probe" "$name" >"$log" 2>&1 </dev/null
    if reports "$log"; then
      echo "$tool reports: $name"
    else
      echo "$tool does NOT report: $name ($(last_words "$log"))"
      missed=$((missed + 1))
    fi
  done <"$list"
  for tool in memcheck racecheck initcheck synccheck; do
    log="$logs/planted_faults/$tool, correct kernels.log"
    if ! sanitizer "$tool" "$build/tests/fault_probe" --tool "$tool" --correct >"$log" 2>&1 || reports "$log"; then
      echo "$tool does NOT pass the correct kernels ($(last_words "$log"))"
      missed=$((missed + 1))
    fi
    grep "^left out for" "$log"
  done
  echo "$(wc -l <"$list") planted faults, $missed surprises"
  [ "$missed" -eq 0 ]
}

part_sanitize() {
  local tool
  gpu_step 200 planted_faults planted_faults
  for tool in memcheck racecheck synccheck initcheck; do gpu_step 60 "hopper_$tool" sanitize_hopper "$tool"; done
  for tool in memcheck racecheck synccheck initcheck; do gpu_step 90 "sanitizer_$tool" sanitize_op_table "$tool"; done
}
export -f $(compgen -A function)

# --- What is done now -----------------------------------------------------------------------------------------------------

part_seconds() { if [ "$1" = build ]; then on_16_cores "${PART_LIMIT:-510}"; else echo "${PART_LIMIT:-510}"; fi; }

planning=1
for part in "${all_parts[@]}"; do "part_$part"; done
planning=0

# tell_plan PART: its steps that are to be run, with the seconds that each may take.
tell_plan() {
  local line section name seconds text= finished=0
  for line in "${planned[@]}"; do
    read -r section name seconds <<<"$line"
    [ "$section" = "$1" ] || continue
    if [ "$1" != build ] && is_done "$name"; then finished=$((finished + 1)); else text+=", $name $seconds"; fi
  done
  printf '%s: at most %d s; %ssteps to run, and the seconds that each may take: %s\n' "$1" "$(part_seconds "$1")" \
    "$([ $finished -eq 0 ] || echo "$finished steps were run by earlier calls; ")" "${text#, }" | fold -s -w 118
}

# forget PART: what its steps came to.
forget() {
  local line section name
  for line in "${planned[@]}"; do
    read -r section name _ <<<"$line"
    [ "$section" != "$1" ] || rm -f "$steps/$name"
  done
  [ "$1" != recipes ] || rm -rf "$work/runs"
}
# Building starts anew, though most of it is there: nothing of an earlier call's table may stand for it.
for part in "${parts[@]}"; do
  if [ $fresh -eq 1 ] || [ "$part" = build ]; then forget "$part"; fi
done
describe_run
for part in "${parts[@]}"; do tell_plan "$part"; done
echo "What is kept is in $out, after every step; the work is in $build"
use_packages
for part in "${parts[@]}"; do
  part_deadline=$((SECONDS + $(part_seconds "$part")))
  if [ "$part_deadline" -gt "${CALL_LIMIT:-999999}" ]; then part_deadline=$CALL_LIMIT; fi
  if [ "$part" != build ] && [ ! -x "$build/apps/device_query" ]; then
    echo "gpu_check: nothing is built in $build: scripts/gpu_check.sh build comes first" >&2
    continue
  fi
  "part_$part"
done

failures=0
for line in "${planned[@]}"; do
  read -r section name _ <<<"$line"
  [[ " ${parts[*]} " == *" $section "* ]] || continue
  read_outcome "$name"
  ! has_failed "$status" || failures=$((failures + 1))
done
publish all
trap - EXIT
rm -f "$work/running"
printf '\n%s\n' "$(write_table)"
if [[ " ${parts[*]} " == *" correctness "* ]] && grep -qs "^pass " "$logs/hopper.log"; then cat "$logs/hopper.log"; fi
total=$([ "$failures" -eq 0 ] && echo ok || echo "$failures steps FAILED or did not run")
[ ${#left_out[@]} -eq 0 ] || total+=", ${#left_out[@]} files NOT KEPT (they stay below $build)"
echo "total: $total, ${SECONDS}s; kept in $out"
[ "$failures" -eq 0 ] && [ ${#left_out[@]} -eq 0 ]
