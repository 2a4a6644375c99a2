#!/usr/bin/env bash
# That CUDA's headers come from where the build looks for them, the toolkit's folder or the simulator's, and not from a
# folder that every compiler searches: elsewhere they are missing there.
# usage: cuda_headers_cases.sh BUILD, which Ninja has built
set -euo pipefail
found=$(ninja -C "$1" -t deps | awk '/: #deps /{object = $1} /^ *\/usr\/(local\/)?include\/(cuda|nccl|cudnn|cublas)/{print object, $1}')
if [ -n "$found" ]; then
  printf 'FAILED: link these to what has the headers (CUDA::cudart_static or tandem::simulator):\n%s\n' "$found"
  exit 1
fi
