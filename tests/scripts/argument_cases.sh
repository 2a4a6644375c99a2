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
expect 2 "usage: scripts/offline_bundle.sh" bash "$scripts/offline_bundle.sh" --foo
for reader in lint_table check_kernel_coverage kernel_resources; do
  expect 2 "usage:" python3 "$scripts/$reader.py"
  expect 2 "$reader: /none: No such file or directory" python3 "$scripts/$reader.py" /none
done

# run.sh in a tree of its own: the program refuses --foo, and mpirun tells what it was given.
mkdir -p "$work/tree/scripts" "$work/tree/build/apps" "$work/bin"
cp "$scripts/run.sh" "$work/tree/scripts"
[ ! -e "$scripts/mpi.env" ] || cp "$scripts/mpi.env" "$work/tree/scripts"
stand_in() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }
stand_in "$work/tree/scripts/setup.sh" 'exit 0'
stand_in "$work/tree/scripts/build.sh" 'echo build'
stand_in "$work/tree/scripts/get_data.sh" 'echo "data $*"'
stand_in "$work/tree/build/apps/cifar_train" 'case "$*" in *--foo*) echo "error: unknown option --foo" >&2; exit 2 ;; esac'
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
expect 2 "error: unknown option --foo" bash "$run" --foo
expect 2 "!data cifar10" bash "$run" --foo

[ $failures = 0 ] && echo "all cases passed"
