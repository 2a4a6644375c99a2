#!/usr/bin/env bash
# Runs the tests of a build folder, and names those that were skipped at the end: scripts/run_ctest.sh FOLDER [CTEST-OPTION ...]
# Where TANDEM_CI or CI is set, a skipped test that tests/must_run.txt lists, as for want of Chromium, PyTorch or TensorBoard, is
# a failure (exit code 1). Tests that need a GPU are skipped without one.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: scripts/run_ctest.sh FOLDER [CTEST-OPTION ...]" >&2; exit 2; }
folder=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
# Three at once on two cores: tests of several ranks, which count for as many, wait for each other most of the time.
at_once=$(($(nproc) * 3 / 2))
# Ranks that wait for each other on a busy machine; less than the tests' own limits, so that a hang is explained.
export TANDEM_COMM_TIMEOUT=${TANDEM_COMM_TIMEOUT:-100}
# A test that hangs ends after twenty minutes, unless it has a limit of its own.
ctest --test-dir "$folder" --output-on-failure --no-tests=error --timeout 1200 --parallel "$at_once" "$@" | tee "$log" || code=$?

mapfile -t skipped < <(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (Skipped)$/\1/p' "$log")
[ ${#skipped[@]} -gt 0 ] || exit "$code"
echo "skipped: ${#skipped[@]} tests; what each lacks: $folder/Testing/Temporary/LastTest.log"
printf '  %s\n' "${skipped[@]}"
case "${TANDEM_CI:-${CI:-}}" in "" | 0 | false) exit "$code" ;; esac

# A line of the list is a name, or a pattern of the shell.
missing=()
for name in "${skipped[@]}"; do
  while IFS= read -r pattern; do
    # shellcheck disable=SC2053
    case "$pattern" in "" | "#"*) ;; *) [[ $name != $pattern ]] || missing+=("$name") ;; esac
  done <"${TANDEM_MUST_RUN:-$(dirname "$0")/../tests/must_run.txt}"
done
[ ${#missing[@]} -gt 0 ] || exit "$code"
echo "run_ctest: here these tests must run, but were skipped: scripts/setup.sh --tests installs what they need" >&2
printf '  %s\n' "${missing[@]}" >&2
exit 1
