#!/usr/bin/env bash
# Gets a data set: downloads the official files (resuming), checks them against pinned checksums, unpacks atomically.
set -euo pipefail

# What people call it by, and where data goes: into this repository, or, as `tandem data`, into the working directory.
case ${BASH_SOURCE[0]##*/} in
  tandem_data) self="tandem data" root=$PWD place="the working directory" ;;
  *) self=scripts/get_data.sh root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) place="this repository" ;;
esac

usage() {
  cat <<TEXT
usage: $self cifar10|cifar100|mnist|fashion-mnist [options]

  --from URL-or-FILE  take it from there. cifar10, cifar100: the binary .tar.gz;
                      mnist, fashion-mnist: a folder with the four .gz files,
                      a URL of such a folder, or a .tar.gz of them
  --dir DIR           where to put it
                      (default: datasets/NAME in $place)
  --no-verify         accept files whose checksum is not the official one
                      (say so yourself; never the default)
  --force             get it again although it is there

A file that is already there is not fetched again; an interrupted download goes
on where it stopped. Files given by --from must have the official checksums too.
Debian's package dataset-fashion-mnist is used for fashion-mnist where it is
installed. Exit codes: 0 the data is in place, 1 it could not be had, 2 wrong
usage.
TEXT
}

say() { printf '%s\n' "$*" >&2; }
die() { say "${self##*/}: $*"; exit 1; }
misuse() { say "${self##*/}: $*; see $self --help"; exit 2; }

# --- What there is -------------------------------------------------------------------------------------------------------

cifar10_url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
cifar10_md5=c32a1d4ab5d03f1284b67883e8d87530
cifar100_url=https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz
cifar100_md5=03b5dce01913d631647c71ecec9e9cb8
mnist_url=https://ossci-datasets.s3.amazonaws.com/mnist
fashion_url=http://fashion-mnist.s3-website.eu-central-1.amazonaws.com
debian_fashion=${TANDEM_DEBIAN_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}

idx_files="train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz"

idx_md5() {  # as torchvision pins them
  case $1/$2 in
    mnist/train-images*) echo f68b3c2dcbeaaa9fbdd348bbdeb94873 ;;
    mnist/train-labels*) echo d53e105ee54ea40749a09fcbcd1e9432 ;;
    mnist/t10k-images*) echo 9fb629c4189551a2d022fa330f9573f3 ;;
    mnist/t10k-labels*) echo ec29112dd5afa0611ce80d1b7f02629c ;;
    fashion-mnist/train-images*) echo 8d4fb7e6c68d591d4c3dfef9ec88bf0d ;;
    fashion-mnist/train-labels*) echo 25c81989df183df01b3e8a0aad5dffbe ;;
    fashion-mnist/t10k-images*) echo bef4ecab320f06d8554ea6380940ec79 ;;
    fashion-mnist/t10k-labels*) echo bb300cfdad3c16e7a12a480ee83cd310 ;;
  esac
}

wanted_files() {
  case $1 in
    cifar10) echo data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin ;;
    cifar100) echo train.bin test.bin ;;
    *) echo "$idx_files" ;;
  esac
}

# --- Steps ---------------------------------------------------------------------------------------------------------------

md5_of() {
  if command -v md5sum >/dev/null; then md5sum <"$1" | cut -d' ' -f1; else md5 -q "$1"; fi
}

# verify FILE MD5
verify() {
  if [ "$verify" = no ]; then
    say "not verified (--no-verify): $1"
    return 0
  fi
  local got
  got=$(md5_of "$1")
  [ "$got" = "$2" ] || {
    say "${self##*/}: $1: checksum is $got, expected $2: not the official file, or damaged"
    return 1
  }
}

# fetch_part URL PART: curl or wget, going on with a PART that is there.
fetch_part() {
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 3 --connect-timeout 20 --continue-at - --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=3 --timeout=20 --continue --output-document="$2" "$1"
  else
    die "neither curl nor wget is installed: install one, or give --from FILE"
  fi
}

# download URL FILE: by way of FILE.part, which stays where the download is interrupted.
download() {
  say "fetching $1"
  case $1 in
    file://*) cp "${1#file://}" "$2.part" || return 1 ;;
    *)
      local begun=no status=0
      [ ! -s "$2.part" ] || begun=yes
      fetch_part "$1" "$2.part" || status=$?
      # Some servers refuse to go on (curl's 22, 33 and 36, wget's 8), also when nothing is missing: then from the
      # start. Without a network, what there is is kept.
      case $begun$status in
        yes0 | no0) ;;
        yes22 | yes33 | yes36 | yes8) rm -f "$2.part"; fetch_part "$1" "$2.part" || return 1 ;;
        *) return 1 ;;
      esac ;;
  esac
  mv "$2.part" "$2"
}

is_url() { case $1 in http://* | https://* | ftp://* | file://*) return 0 ;; *) return 1 ;; esac; }

no_network() {
  die "cannot get $1: is there a network? Elsewhere, fetch $2 and give it as: $self $name --from FILE"
}

# fetch URL MD5 FILE: downloads unless FILE is there, verifies; a wrong download is taken away and tried once more.
fetch() {
  local attempt
  for attempt in 1 2; do
    [ -e "$3" ] || download "$1" "$3" || no_network "$1" "$1"
    if verify "$3" "$2"; then return 0; fi
    rm -f "$3"
    [ "$attempt" = 1 ] && say "trying once more from the start"
  done
  die "$1 does not give the official file: try later, or give --from FILE"
}

# unpack ARCHIVE FOLDER: a .tar.gz whose names stay inside the folder and are plain files and folders.
unpack() {
  local names kinds outside
  names=$(tar -tzf "$1" 2>/dev/null) || die "$1: not a whole .tar.gz archive: get it again"
  outside=$(grep -Em1 '(^/)|(^|/)\.\.(/|$)' <<<"$names" || true)
  [ -z "$outside" ] || die "$1: holds names outside of its folder ($outside): refused"
  kinds=$(tar -tvzf "$1" | cut -c1 | sort -u | tr -d '\n')
  case $kinds in *[!d-]*) die "$1: holds links or special files: refused" ;; esac
  tar -xzf "$1" -C "$2" --no-same-owner --no-same-permissions || die "$1: cannot be unpacked: is the disk full?"
}

# Every wanted file somewhere below FOLDER is moved to its top.
gather() {
  local file found
  for file in $(wanted_files "$name"); do
    found=$(find "$1" -type f -name "$file" | head -n 1)
    [ -n "$found" ] || die "$source_text holds no $file: not an archive of $name"
    [ "$found" = "$1/$file" ] || mv "$found" "$1/$file"
  done
}

get_cifar() {
  local archive=$2
  if [ -n "$archive" ] && ! is_url "$archive"; then
    [ -e "$archive" ] || die "--from $archive: no such file: check the path, or leave --from out to download it"
    [ -f "$archive" ] || die "--from $archive: not a file; $name wants the binary .tar.gz"
    verify "$archive" "$3" || die "--from $archive: refused; --no-verify accepts it as it is"
  else
    fetch "${archive:-$1}" "$3" "$downloads/$(basename "${archive:-$1}")"
    archive=$downloads/$(basename "${archive:-$1}")
  fi
  source_text=$archive
  unpack "$archive" "$staging"
  gather "$staging"
}

# Debian packs the same contents anew, so its checksums differ; dpkg vouches for them, gzip's own checksum for their state.
take_debian_fashion() {
  local file
  for file in $idx_files; do
    [ -f "$debian_fashion/$file" ] && gzip -t "$debian_fashion/$file" 2>/dev/null || return 1
  done
  say "using Debian's dataset-fashion-mnist in $debian_fashion"
  for file in $idx_files; do cp "$debian_fashion/$file" "$staging/$file"; done
}

get_idx() {
  local from=$2 file
  if [ -z "$from" ] && [ "$name" = fashion-mnist ] && take_debian_fashion; then return 0; fi
  if [ -n "$from" ] && ! is_url "$from"; then
    [ -e "$from" ] || die "--from $from: no such file or folder: check the path, or leave --from out to download it"
    source_text=$from
    if [ -d "$from" ]; then
      for file in $idx_files; do
        [ -f "$from/$file" ] || die "--from $from: has no $file: name the folder that holds the four .gz files"
        cp "$from/$file" "$staging/$file"
      done
    else
      unpack "$from" "$staging"
      gather "$staging"
    fi
    for file in $idx_files; do
      verify "$staging/$file" "$(idx_md5 "$name" "$file")" || die "--from $from: refused; --no-verify accepts it as it is"
    done
    return 0
  fi
  for file in $idx_files; do
    fetch "${from:-$1}/$file" "$(idx_md5 "$name" "$file")" "$downloads/$file"
    cp "$downloads/$file" "$staging/$file"
  done
}

# --- Arguments -----------------------------------------------------------------------------------------------------------

name='' from='' target='' verify=yes force=no
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --from | --dir)
      [ -n "${2:-}" ] || misuse "$1 needs a value"
      if [ "$1" = --from ]; then from=$2; else target=$2; fi
      shift 2 ;;
    --no-verify) verify=no; shift ;;
    --force) force=yes; shift ;;
    -*) misuse "unknown option $1" ;;
    *) [ -z "$name" ] || misuse "one data set at a time: $name or $1?"; name=$1; shift ;;
  esac
done
case $name in
  cifar10 | cifar100 | mnist | fashion-mnist) ;;
  '') misuse "which data set? cifar10, cifar100, mnist or fashion-mnist" ;;
  *) misuse "unknown data set '$name': there are cifar10, cifar100, mnist and fashion-mnist" ;;
esac
target=${target:-$root/datasets/$name}
target=${target%/}

complete=yes
for file in $(wanted_files "$name"); do [ -s "$target/$file" ] || complete=no; done
if [ $complete = yes ] && [ $force = no ]; then
  say "$name is in $target"
  exit 0
fi
[ ! -e "$target" ] || [ -d "$target" ] || die "$target: is a file, expected a folder: move it away, or name another by --dir"
if [ -L "$target" ]; then  # the data belongs where the link points to
  [ -d "$target" ] || die "$target: is a link to nothing: remove it, or make the folder"
  target=$(cd -P "$target" && pwd)
fi

# --- Work: everything happens in folders beside the target, which gets the data at the end, whole and checked ------------

parent=$(dirname "$target")
mkdir -p "$parent" || die "cannot make $parent"
downloads=$parent/.get_data.$name.downloads  # kept when interrupted, so that the next run goes on
[ "$verify" = yes ] || rm -rf "$downloads"  # nothing would tell that it came from elsewhere
mkdir -p "$downloads" || die "cannot write in $parent"
staging=$(mktemp -d "$parent/.get_data.$name.XXXXXX")
source_text=$name
trap 'rm -rf "$staging"; [ ! -d "$downloads" ] || { find "$downloads" -size 0 -delete; rmdir "$downloads"; } 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

case $name in
  cifar10) get_cifar "$cifar10_url" "$from" "$cifar10_md5" ;;
  cifar100) get_cifar "$cifar100_url" "$from" "$cifar100_md5" ;;
  mnist) get_idx "$mnist_url" "$from" ;;
  fashion-mnist) get_idx "$fashion_url" "$from" ;;
esac

# Only the wanted files go on: by one rename of their folder, or, where the target holds other files (or is a mount point),
# one by one beside these.
final=$staging/.final
mkdir "$final"
for file in $(wanted_files "$name"); do mv "$staging/$file" "$final/$file"; done
chmod 755 "$final"
if [ -d "$target" ] && ! rmdir "$target" 2>/dev/null; then
  for file in $(wanted_files "$name"); do mv -f "$final/$file" "$target/$file"; done
else
  mv "$final" "$target"
fi
rm -rf "$downloads"
say "$name is in $target"
