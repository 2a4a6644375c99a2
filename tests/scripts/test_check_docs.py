#!/usr/bin/env python3
"""Tests of check_docs.py: the pages as they are, and names, calls and code planted in a page that nothing has.

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
`--global-batch-size`, `TANDEM_CUDA`, `my_op_forward()`, `y = x + 1`, `.cu`, [a heading](#what-a-b-is-2nd-part-1)
```
`in_a_block_nobody_looks()`, [nor](at-links.md), ![](image.svg)
# Nor is this a heading
```
## What `a_b` is: 2nd part
### What [a b](good.md) is, 2nd part
## What a b is: 2nd part
<!-- made by: a command -->
![](good.md)
"""
GONE = "for" + "gone"  # in pieces: a name that stands here would be one that a file holds
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
    f'<img src="{GONE}.svg">': f"no file {GONE}.svg",
    f"[here](#{GONE})": f"no heading for #{GONE} in this page",
    "[here](#nor-is-this-a-heading)": "no heading for #nor-is-this-a-heading in this page",
    f"[there](good.md#{GONE})": f"no heading for #{GONE} in good.md",
    "![](good.md)": "no comment <!-- made by: COMMAND --> above this image",
    "<!-- made by: a command -->\nand words between\n![](good.md)": "no comment <!-- made by: COMMAND --> above this image",
}
# What the page says of calls, and what of it is not so.
CALLS = """\
`Trainer::run_epochs()` (`train/trainer.cpp`) calls `Trainer::run_epoch()`, `max_over_ranks()` and
`fill_in_test()`. `Conv2d::forward()` calls `autograd::conv2d()`; `relu_forward()` is only named.
<!-- calls, at most 3 -->

| | function | file |
|--|--|--|
| | `Optimizer::update_group()` | `optim/optimizer.cpp` |
| 1 | `SGD::update()` | `optim/sgd.cpp` |
| 2, 3 | `kernels::sgd_step()`, `step_run()` | `kernels/optimizer/sgd.cpp` |

<!-- quoted -->
```cpp
    if ( options.momentum
         == 0.0)   return descend(factors, count, parameter, gradient);   // spaces and comments differ
```
"""
WRONG_CALLS = {  # what is changed -> what it is changed to, and the line and text of the error
    "calls `Trainer::run_epoch()`": ("calls `Trainer::run_step()`", 1, "no call of Trainer::run_step() in Trainer::run_epochs()"),
    "`fill_in_test()`": ("`steps_per_epoch()`", 1, "no call of steps_per_epoch() in Trainer::run_epochs()"),
    "`train/trainer.cpp`": ("`train/scoring.cpp`", 1, "no call of Trainer::run_epoch() in Trainer::run_epochs()"),
    "`autograd::conv2d()`": ("`autograd::relu()`", 2, "no call of autograd::relu() in Conv2d::forward()"),
    "`SGD::update()`": ("`SGD::SGD()`", 8, "no call of SGD::SGD() in Optimizer::update_group()"),
    "`optim/sgd.cpp`": ("`optim/adam.cpp`", 8, "no definition of SGD::update() in optim/adam.cpp"),
    "`step_run()`": ("`sgd()`", 9, "no definition of sgd() in kernels/optimizer/sgd.cpp"),
    "| 2, 3 |": ("| 2 |", 9, "2 functions behind number 1 are said to be 2"),
    "at most 3": ("at most 2", 9, "more than 2 calls"),
    "== 0.0": ("!= 0.0", 13, "no source has this code"),
    "```cpp\n": ("words\n", 11, "no code behind this comment"),
    "\n| | function": ("words\n\n| | function", 3, "no table of calls behind this comment"),
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
    def page(name, text):
        path = pathlib.Path(folder) / f"{name}.md"
        path.write_text(text)
        return path

    done = run(page("good", GOOD), page("calls", CALLS))
    check(done.returncode == 0, "names, calls and code that are there", done)
    # One run for all that is wrong: a page for each, and the line that it must get.
    pages, lines = [], {}
    for text, problem in BAD.items():
        pages.append(page(f"bad{len(pages)}", GOOD + text + "\n"))
        lines[f"{pages[-1]}:{(GOOD + text).count(chr(10)) + 1}: {problem}"] = text
    for right, (wrong, line, problem) in WRONG_CALLS.items():
        if CALLS.count(right) != 1:
            failures.append(f"'{right}' should be there once")
        pages.append(page(f"bad{len(pages)}", CALLS.replace(right, wrong)))
        lines[f"{pages[-1]}:{line}: {problem}"] = wrong
    done = run(*pages)
    for line, text in lines.items():
        check(done.returncode == 1 and line in done.stdout.splitlines(), f"'{text}' is found out by {line}", done)
    done = run(pathlib.Path(folder) / "missing.md")
    check(done.returncode == 2 and "missing.md" in done.stderr, "a page that is not there", done)
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
