#!/usr/bin/env bash
# scripts/get_data.sh without a network: local archives, file:// and localhost URLs, and everything it must refuse.
# usage: get_data_cases.sh REPOSITORY
set -uo pipefail
script=$1/scripts/get_data.sh
work=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# expect CODE TEXT ARGUMENTS...: runs the script; its exit code and a part of its output must be these.
expect() {
  local code=$1 text=$2 got
  shift 2
  bash "$script" "$@" >out.txt 2>&1
  got=$?
  if [ $got != "$code" ] || ! grep -qF -- "$text" out.txt; then
    echo "FAILED: get_data.sh $*: exit $got (expected $code), output without '$text':"
    sed 's/^/    /' out.txt
    failures=$((failures + 1))
  fi
}
holds() {
  local file
  for file in "${@:2}"; do
    [ -s "$1/$file" ] || { echo "FAILED: $1 has no $file"; failures=$((failures + 1)); }
  done
  [ -z "$(find . -name '.get_data.*' -print -quit)" ] || { echo "FAILED: left over: $(find . -name '.get_data.*')"; failures=$((failures + 1)); }
}
absent() { [ ! -e "$1" ] || { echo "FAILED: $1 should not be there"; failures=$((failures + 1)); }; }

# Archives of the right names and small contents.
cifar10="data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin"
idx="train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz"
mkdir -p cifar-10-batches-bin cifar-100-binary idx
for file in $cifar10 readme.html; do echo "$file" >cifar-10-batches-bin/$file; done
for file in train.bin test.bin; do echo "$file" >cifar-100-binary/$file; done
for file in $idx; do echo "$file" | gzip >"idx/$file"; done
tar -czf c10.tar.gz cifar-10-batches-bin
tar -czf c100.tar.gz cifar-100-binary
tar -czf idx.tar.gz idx

# From files.
expect 0 "not verified" cifar10 --from c10.tar.gz --no-verify --dir out/c10
holds out/c10 $cifar10
expect 0 "cifar10 is in out/c10" cifar10 --dir out/c10
expect 0 "not verified" cifar100 --from c100.tar.gz --no-verify --dir out/c100
holds out/c100 train.bin test.bin
expect 0 "not verified" mnist --from idx --no-verify --dir out/mnist
holds out/mnist $idx
expect 0 "not verified" fashion-mnist --from idx.tar.gz --no-verify --dir out/fashion
holds out/fashion $idx
expect 0 "not verified" cifar100 --from "file://$work/c100.tar.gz" --no-verify --dir out/url
holds out/url train.bin test.bin

# A folder that is in use keeps its other files, and --force replaces ours.
echo mine >out/c100/notes.txt && echo old >out/c100/test.bin
expect 0 "cifar100 is in" cifar100 --from c100.tar.gz --no-verify --dir out/c100
[ "$(cat out/c100/test.bin)" = old ] || { echo "FAILED: replaced without --force"; failures=$((failures + 1)); }
expect 0 "cifar100 is in" cifar100 --from c100.tar.gz --no-verify --dir out/c100 --force
[ "$(cat out/c100/test.bin out/c100/notes.txt)" = "test.bin
mine" ] || { echo "FAILED: --force did not replace the data, or took other files"; failures=$((failures + 1)); }

# An empty folder becomes the data's; a link stays, and the data goes where it points to.
mkdir out/empty out/elsewhere && ln -s elsewhere out/link && ln -s nowhere out/dangling
expect 0 "cifar100 is in" cifar100 --from c100.tar.gz --no-verify --dir out/empty
holds out/empty train.bin test.bin
expect 0 "cifar100 is in" cifar100 --from c100.tar.gz --no-verify --dir out/link
[ -L out/link ] || { echo "FAILED: the link was replaced"; failures=$((failures + 1)); }
holds out/elsewhere train.bin test.bin
expect 1 "out/dangling: is a link to nothing" cifar100 --from c100.tar.gz --no-verify --dir out/dangling

# Checksums are demanded.
expect 1 "expected c32a1d4ab5d03f1284b67883e8d87530" cifar10 --from c10.tar.gz --dir out/refused
expect 1 "expected f68b3c2dcbeaaa9fbdd348bbdeb94873" mnist --from idx --dir out/refused
absent out/refused

# What cannot be had.
expect 1 "no such file" cifar10 --from gone.tar.gz --dir out/refused
expect 1 "not a file" cifar10 --from idx --dir out/refused
expect 1 "cannot get file://$work/gone.tar.gz" cifar10 --from "file://$work/gone.tar.gz" --dir out/refused
expect 1 "is there a network?" cifar10 --from http://127.0.0.1:9/c.tar.gz --dir out/refused
expect 1 "holds no data_batch_1.bin" cifar10 --from c100.tar.gz --no-verify --dir out/refused
head -c 100 c10.tar.gz >cut.tar.gz
expect 1 "not a whole .tar.gz archive" cifar10 --from cut.tar.gz --no-verify --dir out/refused
echo text >file
expect 1 "is a file, expected a folder" cifar10 --from c10.tar.gz --no-verify --dir file
absent out/refused

# Hostile archives.
tar -czf up.tar.gz --transform 's,^,../,' -P cifar-100-binary/test.bin
expect 1 "names outside of its folder" cifar100 --from up.tar.gz --no-verify --dir out/refused
tar -czf root.tar.gz -P "$work/cifar-100-binary/test.bin"
expect 1 "names outside of its folder" cifar100 --from root.tar.gz --no-verify --dir out/refused
ln -s /etc/passwd cifar-100-binary/link && tar -czf link.tar.gz cifar-100-binary
expect 1 "links or special files" cifar100 --from link.tar.gz --no-verify --dir out/refused
absent out/refused
absent out/test.bin

# Usage.
expect 2 "which data set?"
expect 2 "unknown data set 'cifar'" cifar
expect 2 "unknown option --form" cifar10 --form x
expect 2 "--from needs a value" cifar10 --from
expect 2 "one data set at a time" cifar10 mnist
expect 0 "usage:" --help

# Debian's package, here a stand-in; a damaged one is passed over.
TANDEM_DEBIAN_FASHION_MNIST=$work/idx expect 0 "using Debian's" fashion-mnist --dir out/debian
holds out/debian $idx

# Over HTTP, from a server that resumes only where its address says so. A copy of the script pins our archive's checksum.
if command -v python3 >/dev/null && { command -v curl || command -v wget; } >/dev/null; then
  cat >server.py <<'PYTHON'
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range")
        if not wanted or not self.path.startswith("/resumes/"):
            return super().do_GET()
        data = open("." + self.path, "rb").read()
        start = int(wanted.split("=")[1].split("-")[0])
        print("resumed at", start, flush=True)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_port, flush=True)
server.serve_forever()
PYTHON
  mkdir resumes && cp c100.tar.gz resumes
  python3 server.py >server.txt 2>/dev/null &
  server=$!
  for _ in $(seq 100); do
    port=$(sed -n 's/^port //p' server.txt)
    [ -z "$port" ] || break
    sleep 0.1
  done
  url=http://127.0.0.1:$port
  expect 1 "does not give the official file" cifar100 --from "$url/c100.tar.gz" --dir out/http
  absent out/http
  expect 0 "mnist is in" mnist --from "$url/idx" --no-verify --dir out/http-idx
  holds out/http-idx $idx
  expect 1 "cannot get $url/gone.tar.gz" cifar100 --from "$url/gone.tar.gz" --dir out/refused

  mkdir scripts
  sed "s/03b5dce01913d631647c71ecec9e9cb8/$(md5sum <c100.tar.gz | cut -d' ' -f1)/" "$script" >scripts/get_data.sh
  script=$work/scripts/get_data.sh
  for place in resumes/ ""; do
    mkdir -p part/.get_data.cifar100.downloads
    head -c 100 c100.tar.gz >part/.get_data.cifar100.downloads/c100.tar.gz.part
    expect 0 "cifar100 is in" cifar100 --from "$url/${place}c100.tar.gz" --dir part/c100 --force
    holds part/c100 train.bin test.bin
  done
  # What was fetched outlives a time without network.
  mkdir -p away/.get_data.cifar100.downloads
  head -c 100 c100.tar.gz >away/.get_data.cifar100.downloads/c100.tar.gz.part
  expect 1 "is there a network?" cifar100 --from "http://127.0.0.1:9/c100.tar.gz" --dir away/c100
  [ -s away/.get_data.cifar100.downloads/c100.tar.gz.part ] || { echo "FAILED: lost the part"; failures=$((failures + 1)); }
  rm -rf away
  grep -q "resumed at 100" server.txt || { echo "FAILED: did not resume"; failures=$((failures + 1)); }
  expect 0 "cifar100 is in data/c100" cifar100 --from c100.tar.gz --dir data/c100  # verified, from a file
  holds data/c100 train.bin test.bin
fi

[ $failures = 0 ] && echo "all cases passed"
exit $((failures > 0))
