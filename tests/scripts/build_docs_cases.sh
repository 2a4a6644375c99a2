#!/usr/bin/env bash
# scripts/build_docs.sh: what it refuses before it builds, with what advice, and that it leaves folders of others alone.
# usage: build_docs_cases.sh REPOSITORY
set -uo pipefail
repository=$1
. "$(dirname "$0")/stand_ins.sh"

# A copy, so that nothing is built in the repository. Its tools are those that a system has without Doxygen and Chromium.
mkdir tree && cp -r "$repository/scripts" tree/scripts
real_tools bash cat cmp cp dirname ls mkdir python3 realpath rm sort tail
script=$work/tree/scripts/build_docs.sh

# expect CODE TEXT ARGUMENT...: exit code, and one line on standard error with that text
expect() {
  local code=$1 text=$2 got
  shift 2
  PATH=$work/bin bash "$script" "$@" >out.txt 2>errors.txt
  got=$?
  if [ $got != "$code" ] || ! grep -qF -- "$text" errors.txt || [ "$(wc -l <errors.txt)" != 1 ]; then
    echo "FAILED: build_docs.sh $*: exit $got (expected $code), errors for '$text':"
    sed 's/^/    /' errors.txt
    failures=$((failures + 1))
  fi
}

expect 2 "usage: scripts/build_docs.sh [OUTDIR]" --foo
expect 2 "usage: scripts/build_docs.sh [OUTDIR]" one two
expect 2 "needs Doxygen for the pages of the API: apt-get install doxygen"
stand_in doxygen <<<'exit 0'
mkdir papers && echo words >papers/letter
expect 2 "$work/papers holds something else than a site; name another folder" papers
expect 2 "$work/papers/letter holds something else than a site" "$work/papers/letter"
[ "$(cat papers/letter)" = words ] || { echo "FAILED: papers/letter is changed"; failures=$((failures + 1)); }
mv bin/python3 taken
expect 2 "needs python3: apt-get install python3"
stand_in python3 <<<'exit 1'
expect 2 "python3 makes no virtual environment: apt-get install python3-venv"
# An environment whose pip finds no network.
stand_in python3 <<'PYTHON'
mkdir -p "$4/bin"
printf '#!/bin/sh\necho "no route to the host"\nexit 1\n' >"$4/bin/pip"
chmod +x "$4/bin/pip"
PYTHON
ln -s "$(command -v chmod)" bin/chmod
expect 2 "pip could not install what scripts/docs_site/requirements.txt names, from PyPI: is there a network? (no route to the host)"
[ ! -e tree/build/docs/venv/requirements.txt ] || { echo "FAILED: half an environment passes for a whole one"; failures=$((failures + 1)); }
[ $failures = 0 ] && echo "all cases passed"
