#!/usr/bin/env bash
# Which tests scripts/test.sh and scripts/check_builds.sh ask ctest for: the long ones only where they are told to.
# usage: tier_cases.sh SOURCE_DIR
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/scripts" "$folder/bin" "$folder/build/asan/apps"
cp "$1/scripts/test.sh" "$1/scripts/check_builds.sh" "$1/scripts/run_ctest.sh" "$folder/scripts"
stand_in() { cat >"$folder/$1" && chmod +x "$folder/$1"; }
stand_in scripts/setup.sh <<<'#!/bin/sh'
stand_in scripts/build.sh <<<'echo "build/$1"'
stand_in scripts/check_kernel_coverage.py <<<'echo coverage'
stand_in build/asan/apps/cifar_train <<<'echo trains'
stand_in bin/ctest <<'CTEST'
#!/usr/bin/env bash
case "$*" in *--show-only*) echo "Total Tests: 7"; exit ;; esac
shift 8  # folder, what is printed, limit, how many at a time
echo "ctest: $*"
exit "${CODE:-0}"
CTEST

# expect CODE LINES SCRIPT ARGUMENT...: exit code, and all that it prints, lines ending in ';'
expect() {
  local code=0 wanted=$1 lines=$2 script=$3 got
  shift 3
  got=$(PATH=$folder/bin:$PATH CODE=${CODE:-0} "$folder/scripts/$script" "$@" 2>&1 | tr '\n' ';'; exit "${PIPESTATUS[0]}") || code=$?
  if [ "$code" -ne "$wanted" ] || [ "$got" != "$lines" ]; then
    printf '%s %s: expected exit code %s and\n%s\ngot %s and\n%s\n' "$script" "$*" "$wanted" "$lines" "$code" "$got"
    exit 1
  fi
}

left_out="left out: 7 long tests; scripts/test.sh --label-regex '^long\$' runs them, scripts/test.sh --all everything;"
expect 0 "ctest: --label-exclude ^long\$;$left_out" test.sh
CODE=8 expect 8 "ctest: --label-exclude ^long\$;$left_out" test.sh
expect 0 "ctest: ;" test.sh --all
expect 0 "ctest: -E parity;" test.sh --all -E parity
expect 0 "ctest: -R ring;" test.sh -R ring
CODE=8 expect 8 "ctest: -R ring;" test.sh -R ring
parts='^(core|kernels|autograd|op_cases|data):'
expect 0 "== check_builds: asan;ctest: --label-regex ^unit\$ --label-exclude ^(long|no-asan)\$ --tests-regex $parts;" check_builds.sh asan
rest="ctest: --label-exclude ^(unit|no-asan)\$;"
rest+="ctest: --label-regex ^unit\$ --label-exclude ^no-asan\$ --exclude-regex $parts;"
rest+="ctest: --label-regex ^unit\$ --label-regex ^long\$ --label-exclude ^no-asan\$ --tests-regex $parts;"
expect 0 "== check_builds: asan;trains;$rest" check_builds.sh --long asan
expect 0 "== check_builds: simulated;ctest: --label-regex ^simulated\$ --label-exclude ^long\$;coverage;" check_builds.sh simulated
expect 0 "== check_builds: simulated;ctest: --label-regex ^simulated\$ --label-regex ^long\$;" check_builds.sh --long simulated
CODE=8 expect 8 "== check_builds: simulated;ctest: --label-regex ^simulated\$ --label-exclude ^long\$;" check_builds.sh simulated
