#!/usr/bin/env bash
# scripts/offline_bundle.sh with stand-ins for apt, dpkg and pip: what a bundle holds, what is refused, and that whatever goes
# wrong leaves an older bundle as it was.
# usage: offline_bundle_cases.sh REPOSITORY
set -uo pipefail
script=$1/scripts/offline_bundle.sh
export REAL_PYTHON
REAL_PYTHON=$(python3 -c 'import sys; print(sys.executable)')
. "$(dirname "$0")/stand_ins.sh"

# Its tools, of which the test takes some away: nothing else is on the PATH.
real_tools bash basename cat chmod cp cut dirname du find grep head ls mkdir mv rm sed sort touch tr wc xargs
stand_in apt-cache <<<'printf "catch2\n  Depends: libc6\nlibc6\nlibdnnl-dev\n  Depends: libdnnl2\nlibdnnl2\nlibOther\n"'
stand_in apt-get <<<'for name in "$@"; do case $name in download | -qq) ;; *) echo "$name" >"${name}_1_amd64.deb" ;; esac; done
[ -z "${NO_MIRROR:-}" ]'
stand_in dpkg-deb <<<'mkdir -p "$3/usr/lib"; touch "$3/usr/lib/$(cat "$2").so.1" "$3/usr/lib/libOpenCL.so.1"'
stand_in objdump <<<'printf "  NEEDED  libm.so.6\n  NEEDED  libOpenCL.so.1\n  NEEDED  ${NEEDED:-libdnnl2.so.1}\n"'
# A Python without packages; what it downloads are wheels with the headers of cuDNN $WHEEL_MAJOR and of its frontend.
stand_in python3 <<'PYTHON'
case "$*" in
  *"import site"*) echo "$NO_SITE" ;;
  *"pip download"*)
    echo "$*" >>"$CALLS"
    while [ "$1" != --dest ]; do shift; done
    mkdir -p "$2" && touch "$2/${3//-/_}.whl" ;;
  *zipfile*cudnn_frontend*)
    mkdir -p "$5/include/cudnn_frontend" "$5/cudnn"
    touch "$5/include/cudnn_frontend.h" "$5/include/cudnn_frontend/plans.h" "$5/include/cudnn_backend_base.h" ;;
  *zipfile*)
    mkdir -p "$5/nvidia/cudnn/include"
    echo "#define CUDNN_MAJOR $WHEEL_MAJOR" >"$5/nvidia/cudnn/include/cudnn_version.h" ;;
  *) exec "$REAL_PYTHON" "$@" ;;
esac
PYTHON
export CALLS=$work/calls NO_SITE=$work/none WHEEL_MAJOR=9 CUDA_HOME=$work/toolkit

toolkit() {  # toolkit VERSION: its headers are of this cuDNN, without a version of none; with 9, of the frontend, too
  rm -rf toolkit calls && mkdir -p toolkit/include
  if [ "$1" = 9 ]; then
    mkdir toolkit/include/cudnn_frontend
    touch toolkit/include/cudnn_frontend.h toolkit/include/cudnn_frontend/plans.h toolkit/include/cudnn_backend_base.h
  fi
  [ -z "$1" ] || printf '#define CUDNN_MAJOR %s\n#define CUDNN_MINOR 0\n' "$1" >toolkit/include/cudnn_version.h
}
# check CODE "VARIABLE=VALUE ..." FOLDER [TEXT]: exit code, a text of the output, and that nothing half made is left.
check() {
  local code=$1 settings=$2 folder=$3 text=${4:-} got
  (eval "export $settings"; PATH=$work/bin bash "$script" "$folder") >out.txt 2>&1
  got=$?
  [ $got = "$code" ] || wrong "$settings $folder" "exit $got instead of $code"
  [ -z "$text" ] || grep -Fq -- "$text" out.txt || wrong "$settings $folder" "output without '$text'"
  [ -z "$(find . -name '*.part')" ] || wrong "$settings $folder" "leaves $(find . -name '*.part')"
}
wrong() {
  echo "FAILED: offline_bundle.sh ($1): $2"
  sed 's/^/    /' out.txt
  failures=$((failures + 1))
}
holds() {  # holds FOLDER FILE...: these and no others
  local folder=$1
  shift
  [ "$(cd "$folder" && find . -type f | sed 's|^./||' | sort | tr '\n' ' ')" = "$(printf '%s ' "$@")" ] ||
    wrong "$folder" "holds $(find "$folder" -type f | tr '\n' ' ')"
}
whole=(catch2_1_amd64.deb cudnn/include/cudnn_version.h cudnn_frontend/include/cudnn_backend_base.h
  cudnn_frontend/include/cudnn_frontend.h cudnn_frontend/include/cudnn_frontend/plans.h libdnnl-dev_1_amd64.deb libdnnl2_1_amd64.deb)

# What is asked for, of what that depends on what a machine may lack, and the headers of cuDNN 9 and its frontend; relative to
# where it is called.
toolkit 9
check 0 "A=" "bundle/" "3 packages and the headers of cuDNN and cudnn-frontend"
holds bundle "${whole[@]}"
[ ! -e calls ] || wrong "" "downloads what this machine has"
# A second time in its place.
touch bundle/old_1_amd64.deb
check 0 "A=" "$work/bundle" "3 packages"
holds bundle "${whole[@]}"

# Headers of cuDNN 8, or none, are not taken. (Where the system has cuDNN 9 below /usr/include, those are.)
for version in 8 ''; do
  toolkit "$version"
  check 0 "A=" bundle "3 packages"
  grep -q "CUDNN_MAJOR  *9" bundle/cudnn/include/cudnn_version*.h || wrong "cuDNN ${version:-none}" "takes other headers than of cuDNN 9"
  [ -e bundle/cudnn_frontend/include/cudnn_frontend/plans.h ] || wrong "cuDNN ${version:-none}" "has no cudnn-frontend"
  grep -q nvidia-cudnn-frontend calls || wrong "cuDNN ${version:-none}" "takes cudnn-frontend from nowhere"
done

# Whatever goes wrong leaves the bundle that is there.
if [ -e calls ]; then check 1 "WHEEL_MAJOR=10" bundle "nvidia_cudnn_cu13.whl holds no headers of cuDNN 9"; fi
toolkit 9
touch bundle/old_1_amd64.deb
check 1 "NEEDED=libnew.so.3" bundle "no package here has libnew.so.3: add those that do to 'families'"
check 1 "NO_MIRROR=1" bundle
check 2 "A=" --foo "usage: scripts/offline_bundle.sh [FOLDER]"
for tool in apt-get dpkg-deb objdump python3; do
  mv bin/$tool taken
  check 2 "A=" bundle "needs $tool, to collect Debian packages"
  mv taken bin/$tool
done
holds bundle "${whole[@]}" old_1_amd64.deb
mkdir papers && echo words >papers/letter
check 2 "A=" papers "papers holds something else than a bundle; name another folder"
holds papers letter
# One package among other things does not make a bundle: these would be lost.
touch papers/firefox_1_amd64.deb
check 2 "A=" papers "papers holds something else than a bundle"
holds papers firefox_1_amd64.deb letter
mkdir downloads && touch downloads/firefox_1_amd64.deb
check 2 "A=" downloads "downloads holds something else than a bundle"
holds downloads firefox_1_amd64.deb
check 0 "A=" "odd [1]" "3 packages"
check 0 "A=" "odd [1]" "3 packages"

[ $failures = 0 ] && echo "all cases passed"
exit $((failures > 0))
