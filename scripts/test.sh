#!/usr/bin/env bash
# All tests in one command: installs what is missing, builds preset cpu, runs ctest. Arguments go through to ctest:
# scripts/test.sh -R ring
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --tests
build=$(scripts/build.sh cpu)
exec ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@"
