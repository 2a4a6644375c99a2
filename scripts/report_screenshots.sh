#!/usr/bin/env bash
# Pictures of a report as a browser shows it, wide (1200 px) and narrow (390 px), light and dark, and as it prints:
# scripts/report_screenshots.sh RUN|PAGE.html FOLDER
# Writes wide-light.png, wide-dark.png, narrow-light.png, narrow-dark.png and print.pdf to FOLDER, and says what is wider than the
# window. Needs Chromium and python3.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: scripts/report_screenshots.sh RUN|PAGE.html FOLDER" >&2; exit 2; }
page=$1
[ ! -d "$page" ] || page=$page/report.html
[ -f "$page" ] || { echo "report_screenshots: $page: no such file; tandem report RUN makes RUN/report.html" >&2; exit 2; }
exec python3 "$(dirname "$0")/browser.py" "$page" "$2"
