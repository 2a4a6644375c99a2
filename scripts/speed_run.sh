#!/usr/bin/env bash
# Trains a recipe with several seeds, and tests its accuracy against a bound: scripts/speed_run.sh [--runs N] [--recipe NAME]
# scripts/speed_run.py is the program, and --help tells all of it; this finds a build with a GPU where there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
for build in cuda cpu; do
  if [ -x "build/$build/apps/cifar_train" ]; then exec python3 scripts/speed_run.py --program "$PWD/build/$build/apps/cifar_train" "$@"; fi
done
exec python3 scripts/speed_run.py "$@"
