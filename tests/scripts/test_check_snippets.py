#!/usr/bin/env python3
"""Tests of check_snippets.py: pages whose blocks are right, and pages with a fault each.

    test_check_snippets.py SCRIPTS BUILD
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPT, BUILD = pathlib.Path(sys.argv[1]) / "check_snippets.py", sys.argv[2]
sys.path.insert(0, sys.argv[1])
import check_snippets  # noqa: E402
import snippet_rules  # noqa: E402

GOOD = {
    "sh": """\
<!-- prepare: echo "learnt in 1.25 s, 12 times" > log -->
```sh
# a comment alone is no command
for part in log; do
  cat $part   # the whole log
done
export WORD=kept
```
and its output, figures aside, in part, and by another command:
```text
learnt in 3 s, 7 times
learnt ... times
```
<!-- fails -->
```sh
true
exit 3
```
<!-- output of: echo "9 lives" -->
<!-- exact -->
```text
9 lives
```
```text
$ echo "$WORD, 25 of 30"
kept, 5 of 30
```
""",
    "cpp": """\
<!-- given:
#include <numeric>
const int one = 1;
-->
```cpp
#include <vector>
const std::vector<int> ones(3, one);
require(std::accumulate(ones.begin(), ones.end(), 0) == 3 && group.size() == 1, "wrong");
optimizer.zero_grad();
```
<!-- given:
namespace mine {
...
int three() { return two() + 1; }
}
-->
```cpp
int two() { return 2; }
```
""",
    "data": """\
<!-- file: set.toml -->
```toml
epochs = 3
```
```sh
grep -q 'epochs = 3' set.toml
```
```json
{"epochs": 3}
```
```python
print("3 epochs")
```
<!-- drawing -->
```
  o
 /|\\
```
<!-- checked by: scripts: names in the documentation -->
```text
epoch 1
```
<!-- not run: it takes a submarine -->
```sh
dive | surface
```
1. In a list:

   ```json
   [1]
   ```
""",
}
# Pages with a fault each: text, and the line of the report. Those of the first table are found without running anything.
WRONG = {
    "```rust\nfn main() {}\n```\n": "{}:2: there is no rule for a block of 'rust'",
    "```text\nepoch 1\n```\n": "{}:2: no command of the page prints this text: a comment above it must say what does",
    "<!-- drawing -->\nwords\n```text\no\n```\n": "{}:2: no block behind the comment 'drawing'",
    "<!-- not run: -->\n```sh\ntrue\n```\n": "{}:1: the comment 'not run' says nothing",
    "<!-- exact: yes -->\n```sh\ntrue\n```\n": "{}:1: the comment 'exact' takes no words",
    "<!-- checked by: scripts: nothing -->\n```sh\ntrue\n```\n": "{}:3: there is no test 'scripts: nothing'",
    "```sh\ntrue\nfor i in 1; do\n```\n": "{}:3: the shell cannot read this command",
    "So:\n\n    mpirun -np 2 tandem train\n": "{}:3: commands and code stand between lines of ```",
    "```sh\ntrue\n": "{}:1: a block without an end",
    "```json\n{3}\n```\n": "{}:2: ",
    "```dockerfile\nFROM scratch\n```\n": "{}:2: Dockerfile has other lines",
    "```toml\nepochs\n```\n": "{}:2: ",
    "```python\nprint(\n```\n": "{}:2: ",
    "\n```cpp\nconst int count = unheard;\n```\n": "{}:3:19: error: ",
    "<!-- given:\nnamespace mine {\n...\n}\n-->\n```cpp\nint f() { return unheard; }\n```\n": "{}:7:18: error: ",
    "```cpp\nint main() { return unheard; }\n```\n": "{}:2:21: error: ",
}
WRONG_IN_RUNS = {
    "```sh\ntrue\necho gone >&2; exit 3\n```\n": "{}:3: exit code 3 of: echo gone >&2; exit 3",
    "<!-- fails -->\n```sh\ntrue\n```\n": "{}:3: exit code 0 of: true",
    "```sh\nfalse | true\n```\n": "{}:2: exit code 1 of: false | true",
    "<!-- prepare: false -->\n```sh\ntrue\n```\n": "{}:3: prepare: exit code 1 of: false",
    "```sh\necho 3 lives\n```\n```text\n3 lives\n4 deaths\n```\n": "{}:6: not printed: 4 deaths",
    "```sh\necho 3 lives\n```\n<!-- exact -->\n```text\n9 lives\n```\n": "{}:6: not printed: 9 lives",
    "```console\n$ echo 3 lives\n3 lives\n$ echo 4\n4 deaths\n```\n": "{}:5: not printed: 4 deaths",
    "<!-- output of: echo 3 -->\n```text\n3 lives\n```\n": "{}:3: not printed: 3 lives",
}
failures = []


def check(condition, what, output=""):
    if not condition:
        failures.append(f"{what}\n{output}")


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, "--build", BUILD, *map(str, arguments)], capture_output=True, text=True)


def check_pages(folder):
    def page(name, text):
        path = pathlib.Path(folder) / f"{name}.md"
        path.write_text(text)
        return path

    good = [page(name, text) for name, text in GOOD.items()]
    for options in ((), ("--quick",)):
        done = run(*options, *(good if options else good[:1] + good[2:]))  # the fragments run in the whole check of the pages alone
        check(done.returncode == 0, f"pages that are right {options}", done.stdout + done.stderr)
        check("   1 not run: it takes a submarine\n" in done.stdout, "what is not run is said", done.stdout)
    for options, table in ((("--quick",), WRONG), ((), WRONG_IN_RUNS)):
        pages = [page(f"wrong{len(options)}_{number}", text) for number, text in enumerate(table)]
        done = run(*options, *pages)
        for path, line in zip(pages, table.values()):
            check(done.returncode == 1 and line.format(path) in done.stdout, f"{path.read_text()}is found out by {line}", done.stdout + done.stderr)
    done = run(pathlib.Path(folder) / "missing.md")
    check(done.returncode == 2 and "missing.md: no such page" in done.stderr, "a page that is not there", done.stderr)


def check_rules():
    """Every line of the tables must be needed, and every test that they name be there."""
    snippet_rules.TESTED = [("docs/*.md", "titled", "t"), ("x.md", "all", "gone"), ("y.md", "all but sh", "t")]
    snippet_rules.ELSEWHERE = [("^sudo ", "as the test 'gone' does"), ("^never", "never")]
    snippet_rules.SHORTER = [(r"--epochs \d+", "--epochs 1"), ("^idle", "")]
    rules = snippet_rules.Rules({"t"})
    block = check_snippets.page_blocks.Block("docs/a.md", 3, "cpp", "", "a.cpp", {})
    check(rules.tested(block) == "t", "a titled block is that of its page's test")
    block.title = ""
    check(rules.tested(block) is None, "a block without a title is not")
    block.page = "x.md"
    check(rules.tested(block) == "gone" and rules.problems == ["x.md:3: there is no test 'gone'"], f"a test that is not there: {rules.problems}")
    block.page = "y.md"
    check(rules.tested(block) == "t", "every block but those of sh")
    block.kind = "sh"
    check(rules.tested(block) is None, "those of sh are run")
    check(rules.elsewhere("sudo reboot") and rules.elsewhere("echo") is None, "commands that are not run")
    check(rules.problems[1:] == ["scripts/snippet_rules.py: there is no test 'gone'"], f"a reason's test: {rules.problems}")
    check(rules.shortened("train --epochs 30") == "train --epochs 1", "commands are shortened")
    idle = list(rules.idle())
    check(len(idle) == 2 and "'^never'" in idle[0] and "'^idle'" in idle[1], f"lines that nothing needs: {idle}")


if not shutil.which("git") or subprocess.run(["git", "-C", sys.argv[1], "ls-files"], capture_output=True).returncode != 0:
    print("commands of pages run in a copy of a checkout, and git knows none here")
    sys.exit(77)
def check_examples(root):
    """A program of examples/ that no test names."""
    (root / "examples/deep").mkdir(parents=True)
    (root / "tests/consumer").mkdir(parents=True)
    for name in ("known.cpp", "train.cpp", "deep/kernel.cu"):
        (root / "examples" / name).touch()
    (root / "tests/consumer/check.sh").write_text("run examples/known.cpp; build deep/; run_train\n")
    check_snippets.ROOT = root
    found = list(check_snippets.untested_examples())
    check(found == ["examples/train.cpp: no file of tests/consumer/ names it"], f"an example without a test: {found}")


check_rules()
with tempfile.TemporaryDirectory() as folder:
    check_examples(pathlib.Path(folder))
with tempfile.TemporaryDirectory() as folder:
    check_pages(folder)
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
