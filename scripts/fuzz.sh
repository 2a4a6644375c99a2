#!/usr/bin/env bash
# Fuzzes what reads files: 60 seconds each, all of tests/fuzz/fuzz_TARGET.cpp, unless others are given.
# Clang's libFuzzer finds its way by the branches of the readers, which are compiled with it, AddressSanitizer and
# UndefinedBehaviorSanitizer here; all else is of preset cpu's libraries, which are built first. It begins with the inputs in
# tests/fuzz/corpus, which are kept (every build runs them as tests), and those of make_corpora.py. Inputs that reached more, and
# those that failed, are in build/fuzz. With --keep, the smallest ones that reach as much replace those in tests/fuzz/corpus
# of these targets, some KB of each; inputs that failed once (failed-*) stay there.
# usage: scripts/fuzz.sh [--keep] [SECONDS [TARGET ...]]
# Exit code 1 where one failed, 77 where there is no clang++.
set -euo pipefail
cd "$(dirname "$0")/.."
keep=0
if [ "${1:-}" = --keep ]; then keep=1; shift; fi
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh [--keep] [SECONDS [TARGET ...]]" >&2; exit 2; }
shift || true
command -v clang++ >/dev/null || { echo "there is no clang++: apt-get install clang"; exit 77; }

# Its readers are what a target's coverage is of.
declare -A readers=(
  [safetensors]="layers/safetensors/header.cpp layers/safetensors/header_parser.cpp layers/safetensors/reader.cpp layers/file.cpp"
  [training_state]="train/trainer_state.cpp layers/state_dict.cpp optim/optimizer.cpp optim/grad_scaler.cpp"
  [cifar]="data/cifar.cpp data/byte_reader.cpp"
  [idx]="data/idx.cpp data/byte_reader.cpp data/gzip_reader.cpp"
  [config]="apps/cifar_train/config_file.cpp"
  [tuning]="train/tuning_file.cpp train/measured_file.cpp"
  [message_costs]="train/message_costs_file.cpp train/measured_file.cpp comm/cost/message_costs.cpp"
  [image]="data/read_image.cpp data/decode_png.cpp data/decode_jpeg.cpp data/byte_reader.cpp"
  [report]="train/report/read_run.cpp train/report/read_evaluation.cpp train/report/report.cpp train/report/verdict.cpp
    train/report/summary_sections.cpp train/report/evaluation_sections.cpp train/report/performance_sections.cpp
    train/report/html_writer.cpp train/report/curves.cpp train/curves_file.cpp train/environment_file.cpp
    train/plot/line_chart.cpp train/plot/ticks.cpp train/plot/thin.cpp train/plot/heat_map.cpp train/plot/bars.cpp"
)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(safetensors training_state cifar idx config tuning message_costs image report)
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

most_inputs=40 most_bytes=1024  # of a target that are kept, and of each of them

# keep_inputs TARGET: files in order, and of those that reach as much as all inputs do, some of each size.
keep_inputs() {
  local target=$1 kept=$root/tests/fuzz/corpus/$1 merged=$out/merged/$1 count
  rm -rf "$merged" && mkdir -p "$merged"
  "$out/fuzz_$target" -merge=1 -max_len=12288 "$merged" "$out/corpora/$target" >"$out/$target-merge.log" 2>&1
  find "$kept" -type f ! -name 'failed-*' -delete
  cp "$out/corpora/$target"/good* "$kept/"
  find "$merged" -type f -size -"$((most_bytes + 1))c" -printf '%s %p\n' | sort -n | cut -d' ' -f2 >"$out/$target.kept"
  [ -s "$out/$target.kept" ] || return 0
  count=$(wc -l <"$out/$target.kept")
  awk -v step="$(((count + most_inputs - 1) / most_inputs))" 'NR % step == 0' "$out/$target.kept" | xargs cp -t "$kept"
}

failed=0
for target in "${targets[@]}"; do
  # shellcheck disable=SC2086  # lists of words
  (cd "$build" && clang++ -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined,float-cast-overflow \
    -fno-sanitize-recover=all -DTANDEM_LIBFUZZER -DFMT_SHARED -I"$root" -I"$root/include" -Iinclude \
    -I"$root/apps/cifar_train" "$root/tests/fuzz/fuzz_$target.cpp" $(printf "$root/%s " ${readers[$target]}) \
    $libraries -lgomp -lpthread -o "$out/fuzz_$target")
  log=$out/$target.log
  mkdir -p "$root/tests/fuzz/corpus/$target"
  if "$out/fuzz_$target" "$out/corpora/$target" "$root/tests/fuzz/corpus/$target" -artifact_prefix="$out/$target-" -max_total_time="$seconds" -max_len=12288 \
    -rss_limit_mb=1024 -timeout=10 >"$log" 2>&1; then
    echo "$target: $(tail -n 1 "$log"), $(grep -E '^#[0-9]+' "$log" | tail -n 1 | grep -oE 'cov: [0-9]+ ft: [0-9]+')"
    [ "$keep" -eq 0 ] || keep_inputs "$target"
  else
    echo "$target: FAILED, see $log"
    failed=1
  fi
done
exit "$failed"
