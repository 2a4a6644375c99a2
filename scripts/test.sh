#!/usr/bin/env bash
# All tests in one command: installs what is missing, builds preset cpu, runs ctest. Arguments go through to ctest:
# scripts/test.sh -R ring
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --tests
build=$(scripts/build.sh cpu)
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
exec ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@"
