#!/usr/bin/env bash
# scripts/run_ctest.sh with a ctest of its own: what it says of skipped tests, and its exit codes.
# usage: run_ctest_cases.sh SOURCE_DIR
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ctest" <<'CTEST'
#!/usr/bin/env bash
echo "1/2 Test #1: one: passes (x) ... Passed"
[ -z "${FAKE_SKIPPED:-}" ] || printf '\nThe following tests did not run:\n%s\n' "$FAKE_SKIPPED"
echo "options: $*"
exit "${FAKE_CODE:-0}"
CTEST
chmod +x "$folder/ctest"
printf "# why\n\none: brackets *\n" >"$folder/list"
export TANDEM_MUST_RUN=$folder/list PATH=$folder:$PATH
unset CI TANDEM_CI

# expect CODE TEXT [NAME=VALUE ...]: exit code, and a text in what it prints, in this environment
expect() {
  local code=0 wanted=$1 text=$2
  shift 2
  env "$@" "$source/scripts/run_ctest.sh" build/x -R some >"$folder/out" 2>&1 || code=$?
  if [ "$code" -ne "$wanted" ] || ! grep -q -- "$text" "$folder/out"; then
    echo "run_ctest.sh with $*: expected exit code $wanted and '$text', got $code and:"
    cat "$folder/out"
    exit 1
  fi
}
source=$1
row() { printf '\t %s - %s (Skipped)' "$1" "$2"; }
listed=$(row 3 "one: brackets now")
other=$(row 12 "report: browser (2)")

expect 0 "options: --test-dir build/x --output-on-failure .* -R some" A=1
expect 7 "options: " FAKE_CODE=7
expect 0 "^  report: browser (2)$" FAKE_SKIPPED="$other"
expect 0 "skipped: 1 tests" FAKE_SKIPPED="$other" CI=false
expect 0 "skipped: 1 tests" FAKE_SKIPPED="$other" CI=true TANDEM_CI=0
expect 0 "skipped: 1 tests" FAKE_SKIPPED="$other" CI=true
expect 0 "skipped: 1 tests" FAKE_SKIPPED="$listed" CI=true TANDEM_CI=0
expect 1 "must run" FAKE_SKIPPED="$listed" CI=true
expect 1 "must run" FAKE_SKIPPED="$listed" TANDEM_CI=1
expect 1 "must run" FAKE_SKIPPED="$listed
$other" TANDEM_CI=1
! sed '1,/must run/d' "$folder/out" | grep -q browser || { echo "a test that is not listed is named as listed"; exit 1; }
expect 5 "skipped: 1 tests" FAKE_SKIPPED="$other" TANDEM_CI=1 FAKE_CODE=5
