#!/usr/bin/env bash
# Trains a recipe with several seeds, and tests its accuracy against a bound: scripts/speed_run.sh [--runs N] [--recipe NAME]
# scripts/speed_run.py is the program, and --help tells all of it; this finds a build with a GPU where there is one.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for build in cuda cpu; do
  if [ -x "$root/build/$build/apps/cifar_train" ]; then
    exec python3 "$root/scripts/speed_run.py" --program "$root/build/$build/apps/cifar_train" "$@"
  fi
done
exec python3 "$root/scripts/speed_run.py" "$@"
