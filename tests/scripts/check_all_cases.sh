#!/usr/bin/env bash
# scripts/check_all.sh with steps of its own put in place of the long ones: what it runs, its table and its exit codes.
# usage: check_all_cases.sh SOURCE_DIR
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts"
check_all=$folder/scripts/check_all.sh
sed '/^steps() {/,/^}/d' "$1/scripts/check_all.sh" >"$folder/rest"
{
  sed -n '1,/^logs=/p' "$folder/rest"
  cat <<'STEPS'
steps() {
  step good "one that passes" echo fine
  step bad "one that fails" bash -c 'echo it broke; exit 3'
  step absent "one that cannot run" bash -c 'echo no such tool; exit 77'
}
STEPS
  sed '1,/^logs=/d' "$folder/rest"
} >"$check_all"
chmod +x "$check_all"

# expect CODE TEXT ARGUMENT...: exit code, and a text in what it prints
expect() {
  local code=0 wanted=$1 text=$2
  shift 2
  "$check_all" "$@" >"$folder/out" 2>&1 || code=$?
  if [ "$code" -ne "$wanted" ] || ! grep -q -- "$text" "$folder/out"; then
    echo "check_all.sh $*: expected exit code $wanted and '$text', got $code and:"
    cat "$folder/out"
    exit 1
  fi
}
lacks() { ! grep -q -- "$1" "$folder/out" || { echo "should not be there: $1"; cat "$folder/out"; exit 1; }; }

expect 0 'bad  *one that fails' --list
[ ! -e "$folder/build" ] || { echo "--list ran something"; exit 1; }
expect 1 'bad .*FAILED (3)'
expect 1 'it broke'
expect 1 'not run here: absent'
expect 1 'good .* s  ok' bad good
lacks absent
expect 0 'absent .*skipped: no such tool' good absent
[ "$(cat "$folder/build/check_all/good.log")" = fine ]
expect 2 "no step 'godo'; choose from: good bad absent" godo
expect 2 usage --lst
listed=$("$1/scripts/check_all.sh" --list)
# All that .ci/run leaves out, with time or without.
for name in debian-13 long simulated cuda tidy shared asan asan-long simulated-long docs-site; do
  grep -q "^$name " <<<"$listed" || { echo "check_all.sh has no step $name"; exit 1; }
done
