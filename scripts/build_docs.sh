#!/usr/bin/env bash
# Builds one static site of README.md, docs/, CHANGELOG.md, CONTRIBUTING.md and the API of all public headers. It is read from
# file:// and searched without a network. Warnings are errors: a name of the API without a comment, a broken link or anchor.
# usage: scripts/build_docs.sh [OUTDIR]      default build/docs/site
# Needs Doxygen and python3 with venv; the first time also a network, for mkdocs-material (scripts/docs_site/requirements.txt) in
# build/docs/venv. Chromium, where it is installed, looks at the pages and searches. Exit code 2 where something is not there.
set -euo pipefail

fail() { echo "build_docs: $*" >&2; exit 2; }
case "$#:${1:-}" in 0:* | 1:[!-]*) ;; *) echo "usage: scripts/build_docs.sh [OUTDIR]" >&2; exit 2 ;; esac
[ -z "${1:-}" ] || set -- "$(realpath -m -- "$1")"
cd "$(dirname "$0")/.."
root=$PWD work=$PWD/build/docs
site=${1:-$work/site}
marker=.made-by-build_docs  # a site, and no other folder, is replaced
if [ -e "$site" ] && [ ! -e "$site/$marker" ] && { [ ! -d "$site" ] || [ -n "$(ls -A "$site")" ]; }; then
  fail "$site holds something else than a site; name another folder"
fi
command -v python3 >/dev/null || fail "needs python3: apt-get install python3"
command -v doxygen >/dev/null || fail "needs Doxygen for the pages of the API: apt-get install doxygen"

# --- The generator, in an environment of its own ------------------------------------------------------------------------------

requirements=scripts/docs_site/requirements.txt venv=$work/venv
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
  echo "build_docs: installing mkdocs-material in ${venv#"$root/"}"
  mkdir -p "$work"
  python3 -m venv --clear "$venv" >"$work/venv.log" 2>&1 || fail "python3 makes no virtual environment: apt-get install python3-venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >"$work/venv.log" 2>&1 ||
    fail "pip could not install what $requirements names, from PyPI: is there a network? ($(tail -n 1 "$work/venv.log"))"
  cp "$requirements" "$venv/requirements.txt"
fi

# --- The API: Doxygen takes headers by the path of their #include --------------------------------------------------------------

rm -rf "$work/headers" "$work/doxygen"
mkdir -p "$work/headers/tandem" "$work/doxygen"
export TANDEM_API_HEADERS="" TANDEM_API_ROOT=$work/headers TANDEM_API_OUTPUT=$work/doxygen TANDEM_SITE_CONFIG=$root/scripts/docs_site
export TANDEM_API_FILTER="'$root/scripts/doxygen_filter.py'"
while IFS= read -r header; do
  mkdir -p "$work/headers/tandem/$(dirname "$header")"
  ln -s "$root/$header" "$work/headers/tandem/$header"
  TANDEM_API_HEADERS+="\"$work/headers/tandem/$header\" "
done < <(scripts/site_pages.py --headers)
(
  cd "$work/doxygen"
  doxygen -w html header.html footer.html style.css
  # shellcheck disable=SC2016  # names that Doxygen replaces
  sed -i 's|<div id="projectname">$projectname|<div id="projectname"><a href="$relpath^../index.html">$projectname</a>|' header.html
  # shellcheck disable=SC2016
  printf '%s\n' '<hr class="footer"/><address class="footer"><a href="$relpath^../index.html">All pages</a></address>' '</body>' '</html>' >footer.html
)
if ! doxygen scripts/docs_site/Doxyfile 2>"$work/doxygen.log"; then
  sed "s|$work/headers/tandem/||" "$work/doxygen.log" | sort -u | head -n 40 >&2
  echo "build_docs: Doxygen found $(sort -u "$work/doxygen.log" | wc -l) faults in the comments of headers (build/docs/doxygen.log)" >&2
  exit 1
fi

# --- The site -----------------------------------------------------------------------------------------------------------------

rm -rf "$work/new"
scripts/site_pages.py "$work" --api "$work/doxygen" --site "$work/new"
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict --config-file "$work/mkdocs.yml"
"$venv/bin/python" scripts/check_site.py "$work/new" --pages "$work/pages"
touch "$work/new/$marker"
rm -rf "$site"
mkdir -p "$(dirname "$site")"
mv "$work/new" "$site"
echo "build_docs: $site/index.html"
