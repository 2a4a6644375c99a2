#!/usr/bin/env bash
# Runs commands as a new user would in a fresh minimal Debian of some release, with a copy of this tree and nothing installed.
# usage: scripts/check_debian.sh RELEASE [--with "PACKAGE ..."] [COMMAND ...]
#   RELEASE    a release that debootstrap knows: bookworm (Debian 12), trixie (13)
#   --with     installs these packages first
#   COMMAND    a shell command, run in the copy's root; by default the two of the README: scripts/run.sh, scripts/test.sh
# Needs root (for chroot), debootstrap and a mirror; ends with 77 where one is missing. Nothing outside build/debian/ is
# changed; processes and mounts end with the script, and the system is removed unless KEEP=1.
# Environment: DEBIAN_MIRROR (default: http://deb.debian.org/debian), KEEP, and TANDEM_WERROR, which the commands get as well
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { echo "usage: scripts/check_debian.sh RELEASE [--with \"PACKAGE ...\"] [COMMAND ...]" >&2; exit 2; }
missing() { echo "check_debian: $*" >&2; exit 77; }

release=${1:-}
case "$release" in '' | -* | */*) usage ;; esac
shift
packages=
if [ "${1:-}" = --with ]; then
  [ $# -ge 2 ] || usage
  packages=$2
  shift 2
fi
[ $# -gt 0 ] || set -- scripts/run.sh scripts/test.sh
[ "$(id -u)" -eq 0 ] || missing "not root, which making a system in a folder takes: sudo scripts/check_debian.sh $release"
for tool in debootstrap unshare; do
  command -v "$tool" >/dev/null || missing "there is no $tool: apt-get install debootstrap util-linux"
done

mkdir -p build/debian build/debian/ccache
export root
root=$(mktemp -d "$PWD/build/debian/$release.XXXXXX")
chmod 755 "$root"
[ "${KEEP:-0}" = 1 ] || trap 'rm -rf --one-file-system "$root"' EXIT

begin=$SECONDS
debootstrap --variant=minbase "$release" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
  { tail -n 5 "$root.log" >&2; missing "debootstrap cannot make $release; all it said is in $root.log"; }
rm -f "$root.log"
echo "check_debian: fresh $release in $((SECONDS - begin)) s" >&2

# What this machine needs to reach its mirror.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-)' >"$root/etc/apt/apt.conf.d/99mirror" || true

mkdir "$root/tandem"
git -c safe.directory="*" ls-files -z --cached --others --exclude-standard --deduplicate |
  { xargs -0 ls -d 2>/dev/null || true; } |
  tar -cf - -T - | tar -xf - --no-same-owner -C "$root/tandem"

# in_system COMMAND: in namespaces of its own, so that mounts and processes end with it.
in_system() {
  unshare --mount --pid --fork --kill-child bash -ec '
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --bind /dev "$root/dev"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mkdir -p "$root/root/.ccache"
    mount --bind build/debian/ccache "$root/root/.ccache"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
      ${TANDEM_WERROR+"TANDEM_WERROR=$TANDEM_WERROR"} \
      chroot "$root" bash -ec "cd /tandem; $0"' "$1"
}

if [ -n "$packages" ]; then
  in_system "apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null"
fi
for command; do
  begin=$SECONDS
  echo "check_debian: $release: $command" >&2
  in_system "$command" || { code=$?; echo "check_debian: $release: $command ended with $code after $((SECONDS - begin)) s" >&2; exit 1; }
  echo "check_debian: $release: $command passed in $((SECONDS - begin)) s" >&2
done
