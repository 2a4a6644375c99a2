#!/usr/bin/env bash
# Fuzzes what reads files: scripts/fuzz.sh [SECONDS [TARGET ...]]    60 seconds each, all of tests/fuzz/fuzz_TARGET.cpp
# Clang's libFuzzer finds its way by the branches of the readers, which are compiled with it and with AddressSanitizer here;
# all else is of preset cpu's libraries, which are built first. Inputs that go on counting, and those that failed, are in
# build/fuzz. Exit code 1 where one failed, 77 where there is no clang++.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS [TARGET ...]]" >&2; exit 2; }
shift || true
command -v clang++ >/dev/null || { echo "there is no clang++: apt-get install clang"; exit 77; }

# Its readers are what a target's coverage is of.
declare -A readers=(
  [safetensors]="layers/safetensors/header.cpp layers/safetensors/header_parser.cpp layers/safetensors/reader.cpp layers/file.cpp"
  [training_state]="train/trainer_state.cpp layers/state_dict.cpp optim/optimizer.cpp optim/grad_scaler.cpp"
  [cifar]="data/cifar.cpp data/byte_reader.cpp"
  [idx]="data/idx.cpp data/byte_reader.cpp data/gzip_reader.cpp"
  [config]="apps/cifar_train/config_file.cpp"
  [tuning]="train/tuning_file.cpp"
)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(safetensors training_state cifar idx config tuning)
for target in "${targets[@]}"; do
  [ -n "${readers[$target]:-}" ] || { echo "fuzz: there is no target '$target'; choose from: ${!readers[*]}" >&2; exit 2; }
done

build=$(scripts/build.sh cpu cifar_train)
root=$PWD out=$PWD/build/fuzz
mkdir -p "$out"
python3 tests/fuzz/make_corpora.py "$out/corpora"
# What cifar_train is linked with, as Ninja knows it.
libraries=$(sed -n '/^build apps\/cifar_train:/,/LINK_LIBRARIES/s/^ *LINK_LIBRARIES = //p' "$build/build.ninja")
[ -n "$libraries" ] || { echo "fuzz: $build/build.ninja does not say what cifar_train is linked with" >&2; exit 1; }

libraries="-Wl,--start-group $libraries -Wl,--end-group"  # in any order

failed=0
for target in "${targets[@]}"; do
  # shellcheck disable=SC2086  # lists of words
  (cd "$build" && clang++ -std=c++20 -O1 -g1 -fsanitize=fuzzer,address -DFMT_SHARED -I"$root" -I"$root/include" -Iinclude \
    -I"$root/apps/cifar_train" "$root/tests/fuzz/fuzz_$target.cpp" $(printf "$root/%s " ${readers[$target]}) \
    $libraries -lgomp -lpthread -o "$out/fuzz_$target")
  log=$out/$target.log
  if "$out/fuzz_$target" "$out/corpora/$target" -artifact_prefix="$out/$target-" -max_total_time="$seconds" -max_len=12288 \
    -rss_limit_mb=1024 -timeout=10 >"$log" 2>&1; then
    echo "$target: $(tail -n 1 "$log")"
  else
    echo "$target: FAILED, see $log"
    failed=1
  fi
done
exit "$failed"
