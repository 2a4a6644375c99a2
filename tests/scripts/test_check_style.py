#!/usr/bin/env python3
"""Tests of check_style.py: faults planted in a small repository, each found at its line; formatting only where there is
a clang-format of the version that it asks for.

    test_check_style.py SCRIPTS
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(sys.argv[1])
if not shutil.which("git"):
    print("there is no git here, which tells the files of a repository")
    sys.exit(77)
GOOD = '#include "tandem/core/tensor.h"\n\n#define TANDEM_NOTHING\n\nint main() { return 0; }\n'
# What is wrong, as the whole of a second file, and what must be said of it.
BAD = {
    '#include "core/tensor.h"\n': 'bad.cpp:1: includes of the project begin with "tandem/"',
    '#include "../core/tensor.h"\n': 'bad.cpp:1: includes of the project begin with "tandem/"',
    "#include <tandem/core/tensor.h>\n": 'bad.cpp:1: includes of the project begin with "tandem/"',
    "\n#define NOTHING 1\n": "bad.cpp:2: macro NOTHING needs the prefix TANDEM_",
    "// A parcel.\n": "bad.cpp:1: 'parcel' is no word of the field",
    "int a;\nint b;\r\n": "bad.cpp:2: a carriage return",
    "\ufeffint a;\n": "bad.cpp:1: a carriage return or a byte order mark",
    "int a;\nint b;": "bad.cpp:2: the last line has no end",
    "// caf\udce9\n#define NOTHING 1\n": "bad.cpp:1: not UTF-8\nbad.cpp:2: macro NOTHING",
}
failures = []


def check(condition, what, done):
    if not condition:
        failures.append(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    (root / "scripts").mkdir()
    for name in ("check_style.py", "command_line.py", "extract_example.py", "llvm_tools.py"):
        shutil.copy(SCRIPTS / name, root / "scripts")
    shutil.copy(SCRIPTS.parent / ".clang-format", root)

    def run(*arguments):
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        return subprocess.run([sys.executable, root / "scripts/check_style.py", *arguments], capture_output=True, text=True)

    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / "good.cpp").write_text(GOOD)
    done = run()
    check(done.returncode in (0, 77) and "0 faults" in done.stdout, "nothing to find fault with", done)
    has_formatter = done.returncode == 0
    for text, fault in BAD.items():
        (root / "bad.cpp").write_bytes(text.encode(errors="surrogateescape"))
        done = run()
        check(done.returncode == 1 and fault in done.stderr, fault, done)
    if has_formatter:
        (root / "bad.cpp").write_text("int  f( ) { return 1; }\n")
        done = run()
        check(done.returncode == 1 and "bad.cpp:1: not formatted" in done.stderr, "a file that is not formatted", done)
        done = run("--fix")
        check(done.returncode == 0 and (root / "bad.cpp").read_text() == "int f() { return 1; }\n", "--fix", done)
    (root / "bad.cpp").unlink()
    if has_formatter:
        page = "# A page\n\n**`a/b.cpp`**\n\n```cpp\n{}\n```\n"
        (root / "page.md").write_text(page.format("int  f( ) { return 1; }"))
        done = run()
        check(done.returncode == 1 and "page.md: a/b.cpp is not formatted" in done.stderr, "an example that is not formatted", done)
        done = run("--fix")
        check(done.returncode == 0 and (root / "page.md").read_text() == page.format("int f() { return 1; }"), "--fix of a page", done)
    done = run("missing.cpp")
    check(done.returncode == 2 and "missing.cpp" in done.stderr, "a file that is not there", done)
    shutil.rmtree(root / ".git")
    done = subprocess.run([sys.executable, root / "scripts/check_style.py"], capture_output=True, text=True)
    check(done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, "no repository", done)
for failure in failures:
    print(f"FAILED: {failure}")
if not failures and not has_formatter:
    print("the format was not tried: no clang-format 19 here")
sys.exit(1 if failures else 0)
