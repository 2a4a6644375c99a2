#!/usr/bin/env bash
# Collects what scripts/gpu_check.sh needs on a machine without a network: the Debian packages of the libraries, with what
# they depend on, the headers of cuDNN 9, and those of NVIDIA's cudnn-frontend, into offline/ (git-ignored). Debian or
# Ubuntu; the GPU machine needs the same or a newer release.
# usage: scripts/offline_bundle.sh [FOLDER]
# Environment: CUDA_HOME  a CUDA toolkit whose headers of both are taken, of cuDNN if they are of version 9 (/usr/local/cuda)
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")/.."

folder=${1:-$PWD/offline}
[ $# -le 1 ] || { echo "usage: scripts/offline_bundle.sh [FOLDER]" >&2; exit 2; }
case "$folder" in
  -*) echo "usage: scripts/offline_bundle.sh [FOLDER]" >&2; exit 2 ;;
  /*) ;;
  *) folder=$called_from/$folder ;;
esac
folder=${folder%/}
# The new bundle replaces the folder: whatever else is in it would be lost.
if [ -n "$(ls -A "$folder" 2>/dev/null)" ] &&
  { [ ! -d "$folder/cudnn/include" ] ||
    [ -n "$(find "$folder/" -mindepth 1 -maxdepth 1 ! -name '*.deb' ! -name cudnn ! -name cudnn_frontend -print -quit)" ]; }; then
  echo "offline_bundle: $folder holds something else than a bundle; name another folder" >&2
  exit 2
fi
for tool in apt-get dpkg-deb objdump python3; do
  command -v "$tool" >/dev/null || { echo "offline_bundle: needs $tool, to collect Debian packages" >&2; exit 2; }
done

wanted=(catch2 libcli11-dev nlohmann-json3-dev libfmt-dev libtomlplusplus-dev libxxhash-dev libboost-dev zlib1g-dev libpng-dev libjpeg-dev
  libdnnl-dev libopenmpi-dev openmpi-bin)
# Of all that these depend on, what a machine with a compiler may not have. Open MPI does without its plugins for networks.
families='^(catch2|libcli11-dev|nlohmann-json3-dev|libfmt.*|libtomlplusplus.*|libxxhash.*|libboost(1.[0-9]+)?-dev|zlib1g.*|libdnnl.*|'
families+='libpng(-dev|16.*)|libjpeg.*|ocl-icd-libopencl1|libopenmpi.*|openmpi.*|libpmix2.*|libhwloc15.*|libevent-(core|pthreads).*|libltdl7|libmunge2|libudev1)$'

list=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
  "${wanted[@]}" | grep -E '^[a-z0-9]' | sed 's/:.*//' | sort -u | grep -E "$families")

part=$folder.part
rm -rf "$part"
trap 'rm -rf "$part"' EXIT
mkdir -p "$part"
# apt drops its rights where it can; the folder must then be writable for it.
chmod 777 "$part"
(cd "$part" && apt-get download -qq $list)

# What the packages' libraries need must be among them, but for what comes with every compiler: or else no program links.
# What is for Fortran and Java is left out, and plugins, but for the one without which Open MPI starts nothing.
every_system='^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libutil|libresolv|libgcc_s|libstdc\+\+|libgomp|libatomic)\.so'
for package in "$part"/*.deb; do dpkg-deb -x "$package" "$part/unpacked"; done
missing=$(find "$part/unpacked" -type f \( -name 'lib*.so*' -o -name orterun -o -name 'mca_pmix_ext*' \) \
    ! -name 'libmca_common_*' ! -name '*_java*' ! -name '*_usempi*' ! -name '*_mpifh*' -print0 |
  xargs -0 objdump -p 2>/dev/null | sed -n 's/^ *NEEDED *//p' | sort -u |
  while read -r name; do
    [[ $name =~ $every_system ]] || [ -n "$(find "$part/unpacked" -name "$name" -print -quit)" ] || echo "$name"
  done)
rm -rf "$part/unpacked"
if [ -n "$missing" ]; then
  echo "offline_bundle: no package here has $(echo $missing): add those that do to 'families'" >&2
  exit 1
fi

# Headers: those of this machine, else those in NVIDIA's Python packages.
site_packages=$(python3 -c 'import site; print("\n".join(site.getsitepackages() + [site.getusersitepackages()]))')
folders_of() {  # folders_of PATH: where headers may be, PATH below a folder of Python packages among them
  printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}/include" /usr/include /usr/include/x86_64-linux-gnu
  sed "s|\$|/$1|" <<<"$site_packages"
}
wheel() {  # wheel PACKAGE: its files below $part/wheel/PACKAGE/content
  python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$part/wheel/$1" "$1"
  python3 -m zipfile -e "$part/wheel/$1"/*.whl "$part/wheel/$1/content"
}

# cuDNN 9, the version that the build takes. Its package is large: it holds the library, too.
cudnn_major() { cat "$1"/cudnn_version*.h 2>/dev/null | sed -n 's/^#define CUDNN_MAJOR *\([0-9]*\).*/\1/p' | head -n 1; }
headers=
while read -r candidate; do
  if [ "$(cudnn_major "$candidate")" = 9 ]; then headers=$candidate; break; fi
done < <(folders_of nvidia/cudnn/include)
mkdir -p "$part/cudnn/include" "$part/cudnn_frontend/include"
if [ -z "$headers" ]; then
  wheel nvidia-cudnn-cu13
  headers=$part/wheel/nvidia-cudnn-cu13/content/nvidia/cudnn/include
  if [ "$(cudnn_major "$headers")" != 9 ]; then
    echo "offline_bundle: $(cd "$part/wheel/nvidia-cudnn-cu13" && echo *.whl) holds no headers of cuDNN 9; install nvidia-cudnn-cu13 of version 9" >&2
    exit 1
  fi
fi
# Where both lie in one folder, cuDNN's are those that do not belong to the frontend.
find "$headers/" -maxdepth 1 -name 'cudnn*.h' ! -name 'cudnn_frontend*' ! -name cudnn_backend_base.h \
  -exec cp -L {} "$part/cudnn/include/" \;

headers=
while read -r candidate; do
  if [ -e "$candidate/cudnn_frontend.h" ]; then headers=$candidate; break; fi
done < <(folders_of include)
if [ -z "$headers" ]; then
  wheel nvidia-cudnn-frontend
  headers=$part/wheel/nvidia-cudnn-frontend/content/include
fi
cp -RL "$headers"/cudnn_frontend* "$headers/cudnn_backend_base.h" "$part/cudnn_frontend/include/"
rm -rf "$part/wheel" "$folder"
mv "$part" "$folder"
chmod 755 "$folder"
echo "offline_bundle: $(find "$folder" -name '*.deb' | wc -l) packages and the headers of cuDNN and cudnn-frontend, $(du -sh "$folder" | cut -f1), in $folder/"
