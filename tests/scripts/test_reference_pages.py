#!/usr/bin/env python3
"""Tests of reference_pages.py: help pages as tables, variables found in sources, and pages that differ.

    test_reference_pages.py SCRIPTS
"""
import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import reference_pages  # noqa: E402

HELP = """Does a thing, and
another by --fast

Usage: program [options] [RUN...]
       mpirun -np N program [options]

Data
  --data DIR                folder of the data, made
                            by get_data.sh
  --model NAME              network: small_cnn, b [b]
  --early-stopping A[,B]    end it [0]

General
  [RUN...]                  runs, report [NAME...]
  --lr N                    rate (1 to 9) [3]
  -h, --help                print this page and stop

A flag is switched off.

Examples
  program --data x          # a comment
"""
failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(f"{what}: expected\n{wanted}\ngot\n{got}")


expect("help", "\n".join(reference_pages.section("program", "thing", HELP)), """
## program

Does a thing, and another by `--fast`.

```text
program [options] [RUN...]
mpirun -np N program [options]
```

The same: `tandem thing`.

### program: data

| option | takes | default | meaning |
|---|---|---|---|
| `--data` | `DIR` |  | folder of the data, made by `get_data.sh` |
| `--model` | `small_cnn`, `b` | `b` | network |
| `--early-stopping` | `A[,B]` | `0` | end it |

### program: general

| option | takes | default | meaning |
|---|---|---|---|
| `[RUN...]` |  |  | runs, report [NAME...] |
| `--lr` | `N`, 1 to 9 | `3` | rate |""")

READER = """const char* const a = std::getenv("COLOUR");
constexpr const char* kName = "MY_SETTING";
const auto size = number(lookup, "WORLD");
for (const char* const name : {"LC_ALL", "LANG"}) use(name);
const char* const other = "PNG";
"""
for path, text, wanted in (
        ("core/x.cpp", READER, {"COLOUR", "MY_SETTING", "WORLD", "LC_ALL", "LANG"}),
        ("core/x.cpp", 'const char* const name = "MY_SETTING";', set()),
        ("tests/x.cpp", 'getenv("TANDEM_TEST_X"); getenv("TMPDIR")', {"TANDEM_TEST_X"}),
        ("scripts/x.sh", 'echo "${OUT:-build} ${KEEP+x} $HOME ${SECONDS:-0}"', {"OUT", "KEEP"}),
        ("scripts/x.py", 'os.environ.get("CXX", "g++") or os.environ["CI"] or "TMPDIR" in os.environ', {"CXX", "CI", "TMPDIR"})):
    expect(f"variables of {path}", reference_pages.variables_of(path, text), wanted)
expect("a pattern", [reference_pages.stands_for("PMI_*", name) for name in ("PMI_SIZE", "PMIX_RANK")], [True, False])

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    reference_pages.ROOT, reference_pages.PAGES, reference_pages.TABLE = folder, folder / "docs/reference", folder / "table.toml"
    (folder / "cmake").mkdir()
    (folder / "scripts").mkdir()
    (folder / "apps").mkdir()
    (folder / "cmake/TandemOptions.cmake").write_text(
        'set(TANDEM_CUDA OFF CACHE STRING "a GPU")\nset_property(CACHE TANDEM_CUDA PROPERTY STRINGS OFF ON SIMULATED)\n'
        'foreach(feature MPI PNG)\n  set(TANDEM_${feature} AUTO CACHE STRING "Use ${feature}")\nendforeach()\noption(TANDEM_BIG "Large" ON)\n')
    expect("options of the build", list(reference_pages.cmake_options()), [
        ("TANDEM_CUDA", "`OFF`, `ON`, `SIMULATED`", "`OFF`", "a GPU"), ("TANDEM_MPI", "`ON`, `OFF`", "`AUTO`", "Use MPI"),
        ("TANDEM_PNG", "`ON`, `OFF`", "`AUTO`", "Use PNG"), ("TANDEM_BIG", "`ON`, `OFF`", "`ON`", "Large")])
    reference_pages.check_docs.source_files = lambda: ["scripts/a.sh"]
    (folder / "scripts/a.sh").write_text("echo ${OUT:-build}\n")
    entry = 'values = "a folder"\ndefault = "build"\nmeaning = "output"\n'
    (folder / "table.toml").write_text(f'[[group]]\ntitle = "All"\n[group.variables.OUT]\n{entry}')
    for program in reference_pages.PROGRAMS:
        (folder / "apps" / program).write_text(f"#!/bin/sh\ncat <<'TEXT'\n{HELP}TEXT\n")
        (folder / "apps" / program).chmod(0o755)

    def run(*arguments):
        sys.argv = ["reference_pages.py", str(folder), *arguments]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = reference_pages.main()
        return code, printed.getvalue()

    # (CLANG_FORMAT and CLANG_TIDY are read in every tree.)
    (folder / "table.toml").write_text((folder / "table.toml").read_text() + f'[group.variables."CLANG_*"]\n{entry}')
    expect("pages that lack", run()[0], 1)
    expect("written", run("--fix")[0], 0)
    expect("up to date", run()[0], 0)
    page = folder / "docs/reference/flags.md"
    page.write_text(page.read_text().replace("rate", "speed", 1))
    code, printed = run()
    expect("a page that differs", (code, "-| `--lr` | `N`, 1 to 9 | `3` | speed |" in printed), (1, True))
    run("--fix")
    (folder / "scripts/a.sh").write_text("echo ${IN:-build}\n")
    code, printed = run("--fix")
    expect("variables that differ", (code, "table.toml: OUT: no source reads it" in printed, "scripts/a.sh: reads IN, which table.toml lacks" in printed),
           (1, True, True))

if failures:
    sys.exit("\n".join(failures))
print("all cases passed")
