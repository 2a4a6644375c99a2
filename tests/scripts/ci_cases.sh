#!/usr/bin/env bash
# Which stages .ci/run has and in which order, that one that fails ends it, and which are left out when an hour is over.
# usage: ci_cases.sh SOURCE_DIR
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/.ci" "$folder/scripts" "$folder/build"
cp "$1/.ci/run" "$folder/.ci/run"
for script in setup check_builds test; do
  cat >"$folder/scripts/$script.sh" <<'SCRIPT'
#!/usr/bin/env bash
name=$(basename "$0" .sh)
echo "$name $*" >>ran
[ "$name $*" != "${FAILS:-}" ] || exit 8
SCRIPT
done
cat >"$folder/scripts/run.sh" <<'SCRIPT'
#!/usr/bin/env bash
echo run >>ran
echo "picture" >curves.png
echo "test accuracy 91.2% of 512 images"
printf '  curves   %s\n' "${PICTURE-curves.png}"
SCRIPT
chmod +x "$folder"/scripts/*

# expect CODE STAGES BEGIN: exit code, the stages that ran, after so many seconds
expect() {
  local code=0 wanted=$1 stages=$2
  rm -f "$folder/ran"
  (SECONDS=$3 && export SECONDS && "$folder/.ci/run") >"$folder/out" 2>&1 || code=$?
  if [ "$code" -ne "$wanted" ] || [ "$(tr '\n' ';' <"$folder/ran")" != "$stages" ]; then
    printf 'expected exit code %s and\n%s\ngot %s and\n%s\n' "$wanted" "$stages" "$code" "$(tr '\n' ';' <"$folder/ran")"
    cat "$folder/out"
    exit 1
  fi
}
tells() { grep -Eq -- "$1" "$folder/out" || { echo "not told: $1"; cat "$folder/out"; exit 1; }; }
lacks() { ! grep -Eq -- "$1" "$folder/out" || { echo "should not be told: $1"; cat "$folder/out"; exit 1; }; }

always="setup --tests;check_builds minimal;run;test ;check_builds sources;"
expect 0 "${always}check_builds simulated;check_builds cuda;check_builds tidy;check_builds shared;check_builds asan;" 0
tells '^ +[0-9]+ s  scripts/check_builds.sh asan$'
lacks 'no time'
expect 0 "$always" 3600
for stage in simulated cuda tidy shared asan; do tells "^ +no time  scripts/check_builds.sh $stage\$"; done
tells '^ +[0-9]+ s  scripts/check_builds.sh sources$'
FAILS="check_builds minimal" expect 8 "setup --tests;check_builds minimal;" 0
FAILS="test " expect 8 "setup --tests;check_builds minimal;run;test ;" 0
FAILS="check_builds cuda" expect 8 "${always}check_builds simulated;check_builds cuda;" 0
PICTURE=elsewhere.png expect 1 "setup --tests;check_builds minimal;run;" 0
tells 'run.sh does not end with the path of a picture'
