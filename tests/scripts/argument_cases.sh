#!/usr/bin/env bash
# What scripts make of their arguments; run.sh with stand-ins for all that it calls.
# usage: argument_cases.sh REPOSITORY
set -uo pipefail
scripts=$1/scripts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE TEXT COMMAND...: its exit code, and one line of what it prints (or nothing like it, for TEXT "!text").
expect() {
  local code=$1 text=$2 got found=no
  shift 2
  "$@" >"$work/out.txt" 2>&1
  got=$?
  ! grep -qF -- "${text#!}" "$work/out.txt" || found=yes
  case $text in !*) [ $found = no ] && found=yes || found=no ;; esac
  if [ $got != "$code" ] || [ $found = no ] || grep -q Traceback "$work/out.txt"; then
    echo "FAILED: $*: exit $got (expected $code), output for '$text':"
    sed 's/^/    /' "$work/out.txt"
    failures=$((failures + 1))
  fi
}

expect 2 "usage: scripts/setup.sh" bash "$scripts/setup.sh" --foo
expect 2 "usage: scripts/setup.sh" bash "$scripts/setup.sh" --tests more
expect 2 "usage: scripts/build.sh" bash "$scripts/build.sh" --foo
expect 2 "unknown build '--foo'" bash "$scripts/check_builds.sh" --foo
expect 2 "!== check_builds" bash "$scripts/check_builds.sh" cuda --long  # before anything is built
expect 2 "usage: scripts/offline_bundle.sh" bash "$scripts/offline_bundle.sh" --foo
expect 2 "usage: scripts/offline_bundle.sh" bash "$scripts/offline_bundle.sh" "$work/one" "$work/two"

# refuse TEXT SCRIPT ARGUMENTS...: exit code 2 and one line on standard error, "error: " with TEXT in it.
refuse() {
  local text=$1
  shift
  "$@" >"$work/printed.txt" 2>"$work/errors.txt"
  local got=$?
  if [ $got != 2 ] || [ "$(wc -l <"$work/errors.txt")" != 1 ] || ! grep -qF -- "$text" "$work/errors.txt" ||
    ! grep -q '^error: ' "$work/errors.txt"; then
    echo "FAILED: $*: exit $got (expected 2), errors for '$text':"
    sed 's/^/    /' "$work/errors.txt"
    failures=$((failures + 1))
  fi
}

head -c 3000 /bin/sh >"$work/binary"
echo "a line" >"$work/text"
printf 'kernel\tsite\tglobal\t1\tmany\t2\n' >"$work/words"
printf 'file\tkernel\tmany\t0\n' >"$work/sizes"
for reader in lint_table check_kernel_coverage kernel_resources; do
  refuse "the following arguments are required" "$scripts/$reader.py"
  refuse "error: /none: No such file or directory" "$scripts/$reader.py" /none
  refuse "error: $work: Is a directory" "$scripts/$reader.py" "$work"
done
refuse "error: $work/text:1: has 1 columns, not 6" "$scripts/lint_table.py" "$work/text"
refuse "columns, not 6" "$scripts/lint_table.py" "$work/binary"
refuse "$work/words:1: 1 many 2: expected whole numbers" "$scripts/lint_table.py" "$work/words"
refuse "error: $work/text:1: has 1 columns, not 4" "$scripts/check_kernel_coverage.py" "$work/text"
refuse "error: $work/text:1: has 1 columns, not 4" "$scripts/kernel_resources.py" "$work/text" --launches "$work/text"
refuse "$work/sizes:1: many 0: expected whole numbers" "$scripts/kernel_resources.py" "$work/text" --launches "$work/sizes"
refuse "unrecognized arguments: --foo" "$scripts/kernel_resources.py" "$work/text" --foo
expect 1 "0 kernels and architectures" "$scripts/kernel_resources.py" "$work/binary"
refuse "--jobs 0: must be at least 1" "$scripts/mutations.py" --jobs 0
refuse "--jobs 'many': not a whole number" "$scripts/mutations.py" --jobs many
refuse "--only nowhere: no file with faults" "$scripts/mutations.py" --only nowhere
refuse "/none: no such page" "$scripts/check_docs.py" /none
refuse "unrecognized arguments: --foo" "$scripts/check_docs.py" --foo
refuse "the following arguments are required: NAME" "$scripts/new_op.py"
refuse "NAME 'relu6_cuda': CMake would take its files for others" "$scripts/new_op.py" relu6_cuda
refuse "the following arguments are required: PAGE, FOLDER" "$scripts/extract_example.py"
refuse "the following arguments are required: build" "$scripts/training_hashes.py"
refuse "/none/apps/cifar_train is not there" "$scripts/training_hashes.py" /none
refuse "--steps 0: must be at least 1" "$scripts/training_hashes.py" /none --steps 0
refuse "--batch 6: must be a multiple of 4" "$scripts/training_hashes.py" /none --batch 6
mkdir -p "$work/build/apps" && cp /bin/sh "$work/build/apps/cifar_train"
refuse "--only nowhere: no run holds this" "$scripts/training_hashes.py" "$work/build" --only nowhere
refuse "--compare $work: " "$scripts/training_hashes.py" "$work/build" --compare "$work"
refuse "the following arguments are required: FILE" "$scripts/merge_conv_bench.py"
printf '{"program": "conv_bench", "ceilings": {}, "results": [{}]}' >"$work/report.json"
refuse "$work/report.json: lacks what conv_bench --json writes" "$scripts/merge_conv_bench.py" "$work/report.json"
printf '{"program": "conv_bench", "ceilings": {}, "results": 3}' >"$work/report.json"
refuse "$work/report.json: lacks what conv_bench --json writes" "$scripts/merge_conv_bench.py" "$work/report.json"
printf '{"program": "conv_bench", "ceilings": {}, "results": [], "device": "cpu", "device_name": "one", "time": "now"}' >"$work/report.json"
refuse "--json '': name a file" "$scripts/merge_conv_bench.py" "$work/report.json" --json ""
refuse "--json '$work': name a file" "$scripts/merge_conv_bench.py" "$work/report.json" --json "$work"
refuse "--json '$work/none/a': name a file in a folder that is there" \
  "$scripts/merge_conv_bench.py" "$work/report.json" --json "$work/none/a"
refuse "$work/binary: no JSON" "$scripts/merge_conv_bench.py" "$work/binary"
if [ -c /dev/full ]; then
  for options in "" "--json $work/all.json"; do
    # shellcheck disable=SC2086
    "$scripts/merge_conv_bench.py" "$work/report.json" $options >/dev/full 2>"$work/errors.txt"
    code=$?
    if [ $code != 1 ] || [ "$(wc -l <"$work/errors.txt")" != 1 ] || ! grep -q "No space left" "$work/errors.txt"; then
      echo "FAILED: merge_conv_bench.py $options on a full disk: exit $code: $(cat "$work/errors.txt")"
      failures=$((failures + 1))
    fi
  done
fi

# run.sh in a tree of its own: the program refuses --foo, and mpirun tells what it was given.
mkdir -p "$work/tree/scripts" "$work/tree/build/apps" "$work/bin"
cp "$scripts/run.sh" "$work/tree/scripts"
[ ! -e "$scripts/mpi.env" ] || cp "$scripts/mpi.env" "$work/tree/scripts"
stand_in() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }
stand_in "$work/tree/scripts/setup.sh" 'exit 0'
stand_in "$work/tree/scripts/build.sh" 'echo build'
stand_in "$work/tree/scripts/get_data.sh" 'echo "data $*"'
stand_in "$work/tree/build/apps/cifar_train" 'case "$*" in *--foo*) echo "error: unknown option --foo" >&2; exit 2 ;; esac; echo "answer to $*"'
stand_in "$work/bin/mpirun" 'echo "mpirun $*"'
PATH=$work/bin:$PATH
unset TANDEM_CIFAR10
run=$work/tree/scripts/run.sh
expect 0 "data cifar10" bash "$run"
expect 0 "mpirun -np 2 build/apps/cifar_train --dataset cifar10 --log a.jsonl" bash "$run" --log a.jsonl
expect 0 "mpirun -np 2 build/apps/cifar_train --data there" bash "$run" --data there
for chosen in "--data there" "--data=there" "--dataset mnist" "--config run.toml"; do
  # shellcheck disable=SC2086
  expect 0 "!data cifar10" bash "$run" $chosen
done
for question in --help -h --version "--print-config --epochs 2"; do
  # shellcheck disable=SC2086
  expect 0 "answer to $question" bash "$run" $question
  # shellcheck disable=SC2086
  expect 0 "!data cifar10" bash "$run" $question
  # shellcheck disable=SC2086
  expect 0 "!mpirun" bash "$run" $question
done
expect 2 "error: unknown option --foo" bash "$run" --foo
expect 2 "!data cifar10" bash "$run" --foo

[ $failures = 0 ] && echo "all cases passed"
