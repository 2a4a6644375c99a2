#!/usr/bin/env bash
# Installs the packages that building (and with --tests, testing) Tandem needs and that are not there yet.
# Does nothing, and needs no network, where all are there. Debian and Ubuntu only; elsewhere it prints the list.
# With --tests, and where nvcc is, the PATH's python3 gets nvidia-cudnn-frontend, and build/python-packages
# tensorboard and safetensors.
# usage: scripts/setup.sh [--tests]
set -euo pipefail

required=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libxxhash-dev libboost-dev zlib1g-dev)
# make: what CMake takes where a program of one's own names no generator.
useful=(make ccache libpng-dev libjpeg-dev libcairo2-dev libdnnl-dev libopenmpi-dev openmpi-bin libgloo-dev curl ca-certificates dataset-fashion-mnist)
for_tests=(catch2 libboost-context-dev)
useful_for_tests=(pkg-config chromium python3 python3-numpy python3-torch python3-xxhash)

case "$*" in
  "") ;;
  --tests) required+=("${for_tests[@]}"); useful+=("${useful_for_tests[@]}") ;;
  *) echo "usage: scripts/setup.sh [--tests]" >&2; exit 2 ;;
esac

# NVIDIA's headers over cuDNN, for tests of the CUDA build: a Python package, without what its Python half depends on. No
# error without them: cuDNN is left out then.
if [ "$*" = --tests ] && command -v nvcc >/dev/null && command -v python3 >/dev/null && ! python3 -c '
import os, sys
folders = sys.path + ["/usr", "/usr/local", os.environ.get("CUDA_HOME", "/usr/local/cuda")]
sys.exit(not any(os.path.exists(os.path.join(folder, "include", "cudnn_frontend.h")) for folder in folders))'; then
  echo "setup: installing nvidia-cudnn-frontend"
  python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action=ignore nvidia-cudnn-frontend ||
    echo "setup: nvidia-cudnn-frontend could not be installed; going on without cuDNN (a virtual environment may help)"
fi

# TensorBoard's own reader and the safetensors library, for tests of the files that we write; beside the builds, for they are of
# no use elsewhere.
packages=$(dirname "$0")/../build/python-packages
if [ "$*" = --tests ] && command -v python3 >/dev/null && ! PYTHONPATH=$packages python3 -c 'import safetensors, tensorboard' 2>/dev/null; then
  echo "setup: installing tensorboard and safetensors in build/python-packages"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$packages" --upgrade tensorboard==2.21.0 safetensors==0.8.0 ||
    echo "setup: tensorboard and safetensors could not be installed; going on without them reading our files"
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is no Debian or Ubuntu; please see to it that these are installed (Debian's names):"
  echo "  needed: ${required[*]}"
  echo "  useful: ${useful[*]}"
  exit 0
fi

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
# Another MPI library is as good; beside it, Open MPI would take over the name mpirun.
if is_installed libmpich-dev && is_installed mpich; then
  for i in "${!useful[@]}"; do
    case "${useful[i]}" in *openmpi*) unset "useful[i]" ;; esac
  done
fi
missing=()
for package in "${required[@]}" "${useful[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo; ask an administrator for: apt-get install ${missing[*]}" >&2
    for package in "${required[@]}"; do is_installed "$package" || exit 2; done
    exit 0
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq || echo "setup: apt-get update failed; going on with the old package lists" >&2
available=()
for package in "${missing[@]}"; do
  if apt-cache show "$package" >/dev/null 2>&1; then
    available+=("$package")
  else
    echo "setup: no package $package here; going on without it" >&2
  fi
done
if [ ${#available[@]} -gt 0 ]; then
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${available[@]}" >/dev/null || true
fi
for package in "${required[@]}"; do
  is_installed "$package" || { echo "setup: $package could not be installed; see the messages above" >&2; exit 2; }
done
