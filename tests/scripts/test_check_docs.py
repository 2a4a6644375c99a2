#!/usr/bin/env python3
"""Tests of check_docs.py: the pages as they are, and names planted in a page that nothing has.

    test_check_docs.py SCRIPTS
"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(sys.argv[1]) / "check_docs.py"
GOOD = """\
<!-- names of the example: my_op -->
`core/tensor.h`, `kernels/activation/relu*.cpp`, `tests/CMakeLists.txt`, `scripts/`, `Tensor::as_strided`, `relu_forward()`,
`--global-batch-size`, `TANDEM_CUDA`, `my_op_forward()`, `y = x + 1`, `.cu`, [above](#above)
```
`in_a_block_nobody_looks()`
```
"""
GONE = "go" + "ne"  # in pieces: a name that stands here would be one that a file holds
END, WORD = "nso" + "r.h", "prag" + "ma"  # the end of a name that is there, and a word that is none of a function
BAD = {
    f"`core/no_{GONE}.h`": f"no file or folder core/no_{GONE}.h",
    f"`no_{GONE}/`": f"no file or folder no_{GONE}/",
    f"`{END}`": f"no file or folder {END}",
    f"`{WORD}()`": f"no function {WORD}()",
    f"`relu_{GONE}()`": f"no function relu_{GONE}()",
    f"`Tensor::is_{GONE}`": f"no name Tensor::is_{GONE}",
    f"`TANDEM_{GONE}`": f"no name TANDEM_{GONE}",
    f"`cifar_train --no-{GONE}`": f"no option --no-{GONE}",
    f"[a page]({GONE}.md)": f"no file {GONE}.md",
}
failures = []


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def check(condition, what, done):
    if not condition:
        failures.append(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


done = run()
check(done.returncode == 0, "every name in the documentation is there", done)
with tempfile.TemporaryDirectory() as folder:
    page = pathlib.Path(folder) / "page.md"
    page.write_text(GOOD)
    done = run(page)
    check(done.returncode == 0, "names that are there", done)
    for text, problem in BAD.items():
        page.write_text(GOOD + text + "\n")
        done = run(page)
        check(done.returncode == 1 and f":7: {problem}\n" in done.stdout, f"{text} is found out", done)
    done = run(pathlib.Path(folder) / "missing.md")
    check(done.returncode == 2 and "missing.md" in done.stderr, "a page that is not there", done)
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
