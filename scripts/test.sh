#!/usr/bin/env bash
# The tests in one command: installs what is missing, builds preset cpu, runs ctest. Leaves out the long tests (label `long`),
# unless it is called with --all. Other arguments go through to ctest and choose alone: scripts/test.sh -R ring
set -euo pipefail
cd "$(dirname "$0")/.."

chosen=("$@")
case "${1:-}" in
  "") chosen=(--label-exclude '^long$') ;;
  --all) chosen=("${@:2}") ;;
esac
scripts/setup.sh --tests
build=$(scripts/build.sh cpu)
code=0
scripts/run_ctest.sh "$build" "${chosen[@]}" || code=$?
if [ $# -eq 0 ]; then
  left_out=$(ctest --test-dir "$build" --show-only --label-regex '^long$' | sed -n 's/^Total Tests: //p')
  echo "left out: $left_out long tests; scripts/test.sh --label-regex '^long\$' runs them, scripts/test.sh --all everything"
fi
exit "$code"
