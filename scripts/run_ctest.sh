#!/usr/bin/env bash
# Runs the tests of a build folder, and names those that were skipped at the end: scripts/run_ctest.sh FOLDER [CTEST-OPTION ...]
# Where TANDEM_CI or CI is set, every test must run: a skipped one that tests/may_be_skipped.txt does not list, as for want of
# Chromium, PyTorch or TensorBoard, is a failure (exit code 1).
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: scripts/run_ctest.sh FOLDER [CTEST-OPTION ...]" >&2; exit 2; }
folder=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" | tee "$log" || code=$?

mapfile -t skipped < <(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (Skipped)$/\1/p' "$log")
[ ${#skipped[@]} -gt 0 ] || exit "$code"
echo "skipped: ${#skipped[@]} tests; what each lacks: $folder/Testing/Temporary/LastTest.log"
printf '  %s\n' "${skipped[@]}"
case "${TANDEM_CI:-${CI:-}}" in "" | 0 | false) exit "$code" ;; esac

# A line of the list is a name, or a pattern of the shell.
not_listed=()
for name in "${skipped[@]}"; do
  is_listed=0
  while IFS= read -r pattern; do
    # shellcheck disable=SC2053
    case "$pattern" in "" | "#"*) ;; *) [[ $name != $pattern ]] || is_listed=1 ;; esac
  done <"${TANDEM_MAY_BE_SKIPPED:-$(dirname "$0")/../tests/may_be_skipped.txt}"
  [ "$is_listed" -eq 1 ] || not_listed+=("$name")
done
[ ${#not_listed[@]} -gt 0 ] || exit "$code"
echo "run_ctest: here every test must run, but these were skipped: scripts/setup.sh --tests installs what they need" >&2
printf '  %s\n' "${not_listed[@]}" >&2
exit 1
