#!/usr/bin/env bash
# Programs of another project, which use this library as its users do. WHAT is one of
#   install      installs the library and moves it: no file may be a link of the source tree, or name a folder of it
#   cmake        builds examples/train.cpp by find_package() and runs it, on one rank and on two; this and what follows
#                without a view of the source tree, where mounting is allowed
#   page         the same with the project in docs/your-own-program.md
#   modules      the same with the program in docs/modules.md, on one rank
#   examples     the same with the other programs of examples/, and with the host program of examples/embedding
#   tutorial     the same with the programs, answers and commands of docs/tutorial, but for the page of a CUDA kernel
#   functor      the same with the page's element-wise function in a .cu file, by nvcc (CUDA=ON) or in the simulator
#   pkg-config   builds examples/train.cpp by pkg-config and runs it, on one rank and on two; 77 without pkg-config
#   configure    takes the source tree as a part of another project, which keeps all that is its own
#   subproject   the same, and builds and runs examples/train.cpp, on one rank and on two: compiles the whole library, from a
#                copy of the source tree that cannot be written to
# usage: check_program.sh WHAT SOURCE_DIR BUILD_DIR WORK_DIR
# Environment: CXX; MPIEXEC, a command to which a number of ranks is added, or empty; LAUNCHER, a compiler cache, or empty;
#   SHARED=ON, for shared libraries, installed or as a part of another project; CUDA=ON for a build by nvcc; DEVICE, where the page's program computes on one rank, if not
#   on the CPU; BINARIES=1 to look for names of folders in archives, too, which have them where they are compiled with -g
set -euo pipefail
# (Several of these run at once in one WORK_DIR: what they write there begins with their name.)
what=$1 source_dir=$(realpath "$2") build_dir=$(realpath "$3") work_dir=$(realpath -m "$4")
prefix=$work_dir/moved
here=$source_dir/tests/consumer
export CMAKE_GENERATOR=Ninja CXX OMP_NUM_THREADS=1

fail() { echo "check_program: $what: $*" >&2; exit 1; }

# A program that uses the installed tree must not need this one: it is built and run where neither the source tree nor the
# build can be seen. What the script itself reads is copied, and the installed tree appears in another place. Without the
# right to mount (root, or the like) all can be seen.
run_apart() {
  local apart status=0
  apart=$(mktemp -d)
  mkdir "$apart/work" "$apart/source"
  local files=(tests/consumer tests/comm/mpi examples docs scripts)
  [ "$what" != subproject ] || files+=(CMakeLists.txt cmake include autograd comm core data kernels layers optim simulator train)
  (cd "$source_dir" && cp -r --parents "${files[@]}" "$apart/source")
  # For the compiler cache: paths below it do not count.
  export CCACHE_BASEDIR=$apart
  local options  # of sanitizers, which name a file of leaks to be passed over
  for options in ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS; do
    [ -z "${!options:-}" ] || export "$options=${!options//"$source_dir"/"$apart/source"}"
  done
  APART=1 unshare --mount bash -ec 'cd /
    mount --bind "$1" "$2/work"
    mount --bind -o ro "$2/source" "$2/source"
    mount -t tmpfs -o size=1m tmpfs "$3"
    [ ! -d "$4" ] || mount -t tmpfs -o size=1m tmpfs "$4"
    [ ! -e "$3/README.md" ] && [ ! -e "$4/CMakeCache.txt" ]
    exec "$2/source/tests/consumer/check_program.sh" "$5" "$2/source" / "$2/work"' \
    bash "$work_dir" "$apart" "$source_dir" "$build_dir" "$what" || status=$?
  rm -rf --one-file-system "$apart"
  exit "$status"
}
case "$what" in
  cmake | page | modules | pkg-config | examples | tutorial | functor | subproject)
    mkdir -p "$work_dir"
    if [ -z "${APART:-}" ]; then
      unshare --mount mount -t tmpfs tmpfs /mnt 2>/dev/null && run_apart
      echo "check_program: $what: mounting is not allowed here, so that the source tree can be seen" >&2
    fi ;;
esac

# quietly NAME COMMAND...: its output only if it fails
quietly() {
  local log=$work_dir/$what.$1.log
  "${@:2}" >"$log" 2>&1 || { cat "$log" >&2; fail "failed: ${*:2}"; }
}

check_install() {
  rm -rf "$work_dir"
  mkdir -p "$work_dir"
  quietly install cmake --install "$build_dir" --prefix "$work_dir/installed"
  mv "$work_dir/installed" "$prefix"
  local found folder text=-I folders=()
  [ "${BINARIES:-0}" = 0 ] || text=
  # As whole paths: a tree in /tandem is not what share/tandem names.
  for folder in "$source_dir" "$build_dir" "$work_dir"; do
    folders+=(-e "(^|-[IL]|[^[:alnum:]_.}/-])$(sed 's/[][\\.*^$+?(){}|]/\\&/g' <<<"$folder")([^[:alnum:]_.-]|\$)")
  done
  found=$(LC_ALL=C grep -rlE $text "${folders[@]}" "$prefix") && fail "names of folders of this machine: $found"
  found=$(find "$prefix/include" ! -type d ! \( -type f \( -name '*.h' -o -name '*.cuh' \) \)) && [ -z "$found" ] || fail "no headers: $found"
  # Programs are installed where they were built, and find each other there; shells find their completions.
  if [ -e "$build_dir/apps/tandem" ]; then
    "$prefix/bin/tandem" data --help | grep -q "usage: tandem data" || fail "tandem does not run its commands"
    for found in zsh/site-functions/_tandem bash-completion/completions/{tandem,cifar_train} \
      fish/vendor_completions.d/{tandem,cifar_train}.fish; do
      grep -q -- --complete "$prefix/share/$found" || fail "share/$found is not there"
    done
  fi
  [ -f "$prefix/share/tandem/gdb_printers.py" ] || fail "gdb's printers are not there"
  found=$(cd "$prefix/include" && grep -rhoE '^ *#include "tandem/[^"]+"' . | cut -d'"' -f2 | sort -u | while read -r header; do
    # (Headers of the simulator are included where GPUs are simulated.)
    [ -f "$header" ] || [[ $header == tandem/simulator/* && ! -d tandem/simulator ]] || echo "$header"
  done)
  [ -z "$found" ] || fail "installed headers include these, which are not there: $found"
  # The insides of these libraries are not installed, but for what their headers for users include.
  found=$(python3 - "$source_dir" "$prefix/include/tandem" <<'EOS'
import pathlib, re, sys
source, installed = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(source / "scripts"))
import header_examples
headers = {str(path.relative_to(installed)): path.read_text() for path in installed.rglob("*.h*")}
included = {name for text in headers.values() for name in re.findall(r'#include "tandem/([^"]+)"', text)}
print(*(name for name in headers if name.startswith(("data/", "comm/", "layers/", "train/")) and name not in included
        and not header_examples.needs_example(name)))
EOS
  )
  [ -z "$found" ] || fail "headers that no user includes are installed: $found"
  check_named_headers
  [ "${SHARED:-OFF}" != ON ] || check_sonames
}

# What pages for users, comments of installed headers and texts of errors tell users to include.
check_named_headers() {
  local header path='[a-z_0-9]+(/[a-z_0-9]+)+' page pages=() found=
  for page in your-own-program modules data training checkpoints mixed-precision regularization; do
    pages+=("$source_dir/docs/$page.md")
  done
  while read -r header; do
    [ -f "$prefix/include/tandem/${header#tandem/}" ] || found+=" $header"
  done < <({
    grep -ohE "$path\.(cuh|h)\b" "${pages[@]}"
    grep -rhE '^ *//' "$prefix/include/tandem" | grep -oE "$path\.cuh"
    (cd "$source_dir" && grep -rhE --include='*.cpp' --include='*.h' --include='*.cu*' "^[^#]*\"[^\"]*tandem/$path" \
      autograd comm core data kernels layers optim train) | grep -oE "tandem/$path\.(cuh|h)"
  } | grep -v '^my_' | sort -u)  # (those of the pages' own programs)
  [ -z "$found" ] || fail "users are told of these headers, which are not installed:$found"
}

# Each shared library says which versions may stand in for it: those of its minor version.
check_sonames() {
  local library name version interface patch count=0
  version=$(sed -n 's/^project(tandem VERSION \([0-9.]*\).*/\1/p' "$source_dir/CMakeLists.txt")
  interface=${version%.*} patch=${version##*.}
  for library in "$prefix"/lib*/libtandem_*.so "$prefix"/lib*/*/libtandem_*.so "$prefix"/lib*/glibc-hwcaps/*/libtandem_*.so.*.*.*; do
    [ -e "$library" ] || continue
    name=$(basename "${library%.so*}").so.$interface
    [ "$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]$/\1/p')" = "$name" ] || fail "$library: its SONAME is not $name"
    [ "$(basename "$(readlink -f "$(dirname "$library")/$name")")" = "$name.$patch" ] || fail "$name is no link to $name.$patch"
    count=$((count + 1))
  done
  [ "$count" -ge 8 ] || fail "$count shared libraries where core to train should be"
}

# check_output FILE: what examples/train.cpp prints: it learns; chance is 10 %
check_output() {
  grep -qE '^epoch 3: [4-9][0-9]\.[0-9] % of the images are right$' "$1" && [ "$(wc -l <"$1")" -eq 3 ] ||
    fail "$1: not what examples/train.cpp prints: $(cat "$1")"
}
run_train() { "$@" >"$work_dir/$what.txt" || fail "failed: $*"; check_output "$work_dir/$what.txt"; }
read -ra two_ranks <<<"${MPIEXEC:+$MPIEXEC 2}"  # nothing without MPI

# expect_refused CHANGE TEXT: the project with this change cannot be configured, for that reason
expect_refused() {
  local folder=$work_dir/refused
  rm -rf "$folder"
  mkdir "$folder"
  sed "$1" "$here/program/CMakeLists.txt" >"$folder/CMakeLists.txt"
  ! cmake -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" >"$folder/log" 2>&1 || fail "accepted: $1"
  grep -qF "$2" "$folder/log" || fail "expected '$2' in: $(cat "$folder/log")"
}

check_cmake() {
  quietly configure cmake -S "$here/program" -B "$work_dir/cmake" -DCMAKE_PREFIX_PATH="$prefix" \
    -DPROGRAMS="$source_dir/examples/train.cpp"
  quietly build cmake --build "$work_dir/cmake"
  run_train "$work_dir/cmake/train"
  [ ${#two_ranks[@]} -eq 0 ] || run_train "${two_ranks[@]}" "$work_dir/cmake/train"
  # Another minor version may have another interface.
  expect_refused 's/tandem 0.1/tandem 0.0/' 'requested version "0.0"'
  expect_refused 's/COMPONENTS core/COMPONENTS score/' 'this build of Tandem has no tandem::score'
  # What it needs and is not there is named, and the project's module path is as it was.
  expect_refused 's/find_package(tandem.*/set(CMAKE_DISABLE_FIND_PACKAGE_Threads ON)\nfind_package(tandem CONFIG)\n'`
    `'message(STATUS "${tandem_FOUND} ${tandem_NOT_FOUND_MESSAGE} [${CMAKE_MODULE_PATH}]")\nmessage(FATAL_ERROR)/' \
    '0 tandem could not be found because dependency Threads could not be found. []'
}

check_functor() {
  local arguments=(-DWITH_NVCC="${CUDA:-OFF}")
  [ "${CUDA:-OFF}" != ON ] || arguments+=(-DCMAKE_CUDA_ARCHITECTURES=90)  # one suffices
  quietly extract python3 "$source_dir/scripts/extract_example.py" "$source_dir/docs/your-own-program.md" "$work_dir/functor"
  quietly configure cmake -S "$work_dir/functor/my_function" -B "$work_dir/functor/build" -DCMAKE_PREFIX_PATH="$prefix" \
    "${arguments[@]}"
  quietly build cmake --build "$work_dir/functor/build"
  # By nvcc it runs on the CPU where there is no GPU; the simulator has one.
  quietly run ctest --test-dir "$work_dir/functor/build" --verbose --no-tests=error
  grep -q 'right on cpu$' "$work_dir/$what.run.log" || fail "$(cat "$work_dir/$what.run.log")"
  [ "${CUDA:-OFF}" = ON ] || [ "$(grep -c 'right on cuda:0$' "$work_dir/$what.run.log")" -eq 2 ] || fail "$(cat "$work_dir/$what.run.log")"
}

# What each prints when it has learnt.
check_examples() {
  local name programs=
  for name in image_folder spirals regression autoencoder two_inputs first_tensor first_autograd own_layer own_dataset own_optimizer two_ranks \
    mixed_precision fused_kernel; do programs+=";$source_dir/examples/$name.cpp"; done
  quietly configure cmake -S "$here/program" -B "$work_dir/examples" -DCMAKE_PREFIX_PATH="$prefix" \
    -DPROGRAMS="${programs#;}"
  quietly build cmake --build "$work_dir/examples"
  rm -rf "$work_dir/images"
  python3 "$here/make_image_folder.py" "$work_dir/images"
  run_example image_folder '(9[0-9]|100) % of 40 images are classified correctly' "$work_dir/images"  # chance is 50 %
  run_example spirals '(9[5-9]\.[0-9]|100\.0) % of the points are on the right spiral'
  run_example regression 'mean squared error 0\.00[0-9]*, mean absolute error 0\.0[0-9]*'
  run_example autoencoder 'mean squared error [0-9.]*, and after ten epochs 0\.[0-4][0-9]*'
  run_example two_inputs '(9[0-9]|100) % are right'
  # (What these two print in full is compared by the test of the tutorial.)
  run_example first_tensor 'f32\[3, 96, 96\], largest 1\.000' "$work_dir/examples/spots.png"
  head -c 4 "$work_dir/examples/spots.png" | grep -q PNG || fail "first_tensor wrote no picture"
  run_example first_autograd 'gradients agree with differences: true'
  run_example own_layer '0\.5 times -0\.6 is about -0\.(29|3[01])'
  run_example own_dataset 'epoch 20: loss 0\.[0-9]+, (9[5-9]|100) % of the test points are right' "$work_dir/examples/rings.safetensors"
  run_example own_optimizer 'SGD 0\.[01][0-9]+, Adagrad 0\.000[0-9]'
  run_example mixed_precision 'bf16: (8[5-9]|9[0-9]|100)[.0-9]* %, activations 1\.[0-9] MiB, 0 steps skipped, loss scale 1'
  grep -qE '^fp16: (8[5-9]|9[0-9]|100)[.0-9]* %, activations 1\.[0-9] MiB, [0-9]+ steps skipped' "$work_dir/examples/mixed_precision.txt" ||
    fail "mixed_precision: $(cat "$work_dir/examples/mixed_precision.txt")"
  check_fused_kernel
  check_two_ranks
  check_embedding
}
# The fused function takes less memory, and computes the same.
check_fused_kernel() {
  local output=$work_dir/examples/fused_kernel.txt
  run_example fused_kernel 'fused: [0-9.]+ MiB at most, [0-9.]+ ms'
  awk '/largest difference/ { same = $NF <= 1e-5 } /^apart/ { apart = $2 } /^fused/ { fused = $2 } END { exit !(same && fused < 0.7 * apart) }' \
    "$output" || fail "fused_kernel: $(cat "$output")"
}
# Two ranks take the steps that one takes, but for rounding.
check_two_ranks() {
  local output=$work_dir/examples/two_ranks.txt
  run_example two_ranks 'all replicas are the same bits'
  [ ${#two_ranks[@]} -gt 0 ] || return 0
  grep -qx '2 ranks have tensor(\[10\., 20\.\], f32\[2\], cpu), the average is 15' "$output" || fail "two_ranks: $(cat "$output")"
  "$work_dir/examples/two_ranks" | paste -d ' ' "$output" - | awk '/mean loss/ { n++; d = $5 - $NF; if (d * d > 1e-4) bad = 1 } END { exit bad || n != 4 }' ||
    fail "two_ranks: one rank and two have other losses: $(cat "$output")"
}
# A host program predicts by the weights that own_dataset has left, and outlives a file that is none.
check_embedding() {
  local program=$work_dir/embedding/embedding weights=$work_dir/examples/rings.safetensors found
  quietly configure cmake -S "$source_dir/examples/embedding" -B "$work_dir/embedding" -DCMAKE_PREFIX_PATH="$prefix"
  quietly build cmake --build "$work_dir/embedding"
  found=$(printf '0 1.2\n0 0\n1.9 1.9\n-0.9 0.8\n' | "$program" "$weights")
  [ "$found" = "0 1.2 on the ring
0 0 off the ring
1.9 1.9 off the ring
-0.9 0.8 on the ring" ] || fail "embedding: $found"
  head -c 100 "$weights" >"$work_dir/embedding/damaged"
  found=$("$program" "$work_dir/embedding/damaged" 2>&1 </dev/null) && fail "embedding takes a damaged file" || [ $? -eq 3 ]
  [[ $found == "no predictions: $work_dir/embedding/damaged: "* ]] || fail "embedding: $found"
}
# run_example NAME PATTERN [ARGUMENT ...]: its last line, on one rank and on two
run_example() {
  local program=$work_dir/examples/$1 pattern=$2 output=$work_dir/examples/$1.txt
  shift 2
  "$program" "$@" >"$output" || fail "failed: $program $*"
  tail -n 1 "$output" | grep -qxE "$pattern" || fail "$program: expected '$pattern', got: $(cat "$output")"
  [ ${#two_ranks[@]} -gt 0 ] && grep -q ProcessGroup "$source_dir/examples/$(basename "$program").cpp" || return 0
  "${two_ranks[@]}" "$program" "$@" >"$output" || fail "failed: ${two_ranks[*]} $program $*"
  tail -n 1 "$output" | grep -qxE "$pattern" || fail "$program on two ranks: expected '$pattern', got: $(cat "$output")"
}

check_page() {
  quietly extract python3 "$source_dir/scripts/extract_example.py" "$source_dir/docs/your-own-program.md" "$work_dir/page"
  quietly configure cmake -S "$work_dir/page/my_spirals" -B "$work_dir/page/build" -DCMAKE_PREFIX_PATH="$prefix"
  quietly build cmake --build "$work_dir/page/build"
  run_spirals "$work_dir/page/build/spirals" ${DEVICE:+"$DEVICE"}
  run_spirals "$work_dir/page/build/own_loop"
  [ ${#two_ranks[@]} -gt 0 ] || return 0
  run_spirals "${two_ranks[@]}" "$work_dir/page/build/spirals"
  run_spirals "${two_ranks[@]}" "$work_dir/page/build/own_loop"
}
run_spirals() {
  "$@" >"$work_dir/$what.txt" || fail "failed: $*"
  grep -qxE '(9[0-9]\.[0-9]|100\.0) % of (unseen|the) points are on the right spiral' "$work_dir/$what.txt" ||
    fail "$*: $(cat "$work_dir/$what.txt")"
}

check_modules() {
  local output=$work_dir/$what.txt
  quietly extract python3 "$source_dir/scripts/extract_example.py" "$source_dir/docs/modules.md" "$work_dir/modules"
  quietly configure cmake -S "$work_dir/modules/my_modules" -B "$work_dir/modules/build" -DCMAKE_PREFIX_PATH="$prefix"
  quietly build cmake --build "$work_dir/modules/build"
  (cd "$work_dir/modules" && build/modules) >"$output" || fail "failed: $(cat "$output")"
  [ "$(sed 's/: [0-9.]* at most$/: N/' "$output")" = "left as it was: head.weight is [10, 16], the model has [4, 16]
left as it was: head.bias is [10], the model has [4]
'': N
'head': N
'towers.0': N
'towers.1': N" ] || fail "not what the page says: $(cat "$output")"
}

check_tutorial() {
  local pages=()
  mapfile -t pages < <(cd "$source_dir/docs/tutorial" && ls [1-7]-*.md)
  [ ${#pages[@]} -eq 7 ] || fail "docs/tutorial has ${#pages[@]} pages where 7 are known"
  python3 "$here/check_tutorial.py" "$source_dir" "$prefix" "$work_dir" "${pages[@]}"
}

check_pkg_config() {
  command -v pkg-config >/dev/null || { echo "there is no pkg-config"; exit 77; }
  local flags folder way
  folder=$(dirname "$(find "$prefix" -name tandem.pc)")
  export PKG_CONFIG_PATH=$folder
  read -ra flags <<<"$(pkg-config --cflags tandem)"
  # Without types at run time a program would end where its modules are asked for theirs.
  ! "$CXX" -std=c++20 -fno-rtti "${flags[@]}" -fsyntax-only "$source_dir/examples/train.cpp" 2>"$work_dir/no_rtti.log" ||
    fail "-fno-rtti is accepted"
  grep -q 'compile without -fno-rtti' "$work_dir/no_rtti.log" || fail "-fno-rtti: $(cat "$work_dir/no_rtti.log")"
  quietly compile "$CXX" -std=c++20 "${flags[@]}" -c "$source_dir/examples/train.cpp" -o "$work_dir/train.o"
  for way in --shared --static; do
    read -ra flags <<<"$(pkg-config --libs ${way#--shared} tandem)"
    quietly link "$CXX" "$work_dir/train.o" -o "$work_dir/train" "${flags[@]}"
    export LD_LIBRARY_PATH=$folder/..
    run_train "$work_dir/train"
    [ ${#two_ranks[@]} -eq 0 ] || run_train "${two_ranks[@]}" "$work_dir/train"
  done
}

check_configure() {
  mkdir -p "$work_dir"
  local arguments=(-DTANDEM_SOURCE="$source_dir" -DBUILD_SHARED_LIBS="${SHARED:-OFF}" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$work_dir/build/lib"
    -DCMAKE_CXX_COMPILER_LAUNCHER="${LAUNCHER:-}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_CXX_STANDARD=23 -DCMAKE_UNITY_BUILD=ON
    -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON -DPROGRAMS="$source_dir/examples/train.cpp")
  # Command lines and their files are for programs alone.
  quietly configure cmake -S "$here/program" -B "$work_dir/build" "${arguments[@]}" -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
  ! grep -q -e -march=native -e -Werror "$work_dir/build/compile_commands.json" || fail "flags that are for this project's own builds"
  # What the kernels are compiled for is said, with what to do about it.
  local said="those of every .* and no newer ones: TANDEM_NATIVE=ON for this machine's"
  [ "${SHARED:-OFF}" != ON ] || said="baseline, AVX2 and AVX-512"
  [ "$(uname -m)" != x86_64 ] || grep -q "instructions of the kernels: $said" "$work_dir/$what.configure.log" ||
    fail "not said: $said"
  # Of settings of the other project those reach the libraries that they can be compiled with.
  [ "$(grep -c '"command".*-fvisibility=hidden' "$work_dir/build/compile_commands.json")" -eq 1 ] ||
    fail "the libraries' symbols are hidden"
  [ "$(grep -c '"file".*/unity_' "$work_dir/build/compile_commands.json")" -eq 1 ] ||
    fail "several files of the libraries are compiled as one"
  # The dynamic loader looks for kernels of other instruction sets beside those of all machines.
  ! grep -q 'glibc-hwcaps/.*kernels\.so' "$work_dir/build/build.ninja" ||
    grep -q '^build lib/glibc-hwcaps/x86-64-v3/libtandem_kernels\.so' "$work_dir/build/build.ninja" ||
    fail "kernels of other instruction sets are not beside the others"
  quietly install cmake --install "$work_dir/build" --prefix "$work_dir/installed"
  [ ! -e "$work_dir/installed" ] || fail "installs what nobody asked for"
}

check_subproject() {
  rm -rf "$work_dir/build"  # it was configured in another place
  check_configure
  quietly build cmake --build "$work_dir/build" --target train
  run_train "$work_dir/build/train"
  [ ${#two_ranks[@]} -eq 0 ] || run_train "${two_ranks[@]}" "$work_dir/build/train"
}

case "$what" in
  install | cmake | examples | tutorial | functor | modules | page | configure | subproject) "check_$what" ;;
  pkg-config) check_pkg_config ;;
  *) fail "WHAT is not one of those in this file's first lines" ;;
esac
