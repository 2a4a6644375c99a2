#!/usr/bin/env python3
"""Tests of check_tutorial.py: what it takes for equal, and wrong pages, each of which it must refuse. Builds nothing."""
import pathlib
import sys
import tempfile

import check_tutorial

PROGRAM = """\
int main() {
  int x = 1;
  {
    print(x);
  }
  print(2);
}
"""
PAGE = """\
<!-- program: program.cpp -->
<!-- quoted -->
```cpp
int main() {
  int x = 1;
  {
    print(x);
```
<!-- quoted -->
```cpp
  print(2);
```
<!-- numbers vary -->
```text
$ build/program
1
...
```
## Exercises
<!-- answer -->
```cpp
print(3);
```
```text
$ build/program | tail -n 1
3
```
"""


def check(condition, what):
    if not condition:
        sys.exit(f"test_check_tutorial: {what}")


def refuses(function, *arguments):
    try:
        function(*arguments)
    except check_tutorial.WrongPage:
        return True
    return False


def check_lines():
    agrees = check_tutorial.agrees
    check(agrees("loss 0.5", "loss 0.5", ""), "the same line is another")
    check(not agrees("loss 0.5", "loss 0.51", ""), "another number is the same")
    check(agrees("loss 0.50, 1,024 steps", "loss 0.51, 1,030 steps", "prints, numbers within 2 %"), "numbers within 2 % are others")
    check(not agrees("loss 0.50", "loss 0.52", "prints, numbers within 2 %"), "a number that is 4 % away is within 2 %")
    check(not agrees("x -0.5", "x 0.5", "prints, numbers within 50 %"), "a sign does not count")
    check(not agrees("loss 0.5", "cost 0.5", "prints, numbers vary"), "another word is the same")
    check(agrees("epoch 1  918 img/s", "epoch 1  1.02k img/s", "numbers vary"), "a speed that varies is another line")


def check_blocks():
    compare = check_tutorial.compare
    check(compare(["a", "..."], ["a", "b"], "") == ["b"], "lines that are not shown are not left")
    check(compare(["...", "b"], ["a", "a", "b", "c"], "") == ["c"], "lines before the shown one are not passed over")
    check(refuses(compare, ["b"], ["a", "b"], ""), "a line that is left out is not noticed")
    check(refuses(compare, ["a", "b"], ["a"], ""), "a line that is never printed is not noticed")
    check(refuses(compare, ["...", "z"], ["a", "b"], ""), "a line behind dots that is never printed is not noticed")


def check_pages(folder):
    (folder / "program.cpp").write_text(PROGRAM)

    def page(text):
        (folder / "page.md").write_text(text)
        return check_tutorial.Page(folder / "page.md", folder)

    sources = page(PAGE).sources()
    check(sources["program"] == PROGRAM, "the program is another")
    check(sources["program_answers"] == PROGRAM.replace("  print(2);\n", "  print(2);\nprint(3);\n"), "the answer is not at the end of main()")
    check([command for command, _, _ in page(PAGE).commands] == ["build/program", "build/program_answers | tail -n 1"],
          "commands of answers use the program without them")
    for old, new in ("int x = 1", "int x = 2"), ("  print(2);\n", ""), ("  int x = 1;\n", ""), ("<!-- program: program.cpp -->\n", ""):
        check(refuses(page, PAGE.replace(old, new)), f"a page without '{old.strip()}' is taken")
    check(check_tutorial.with_answers("run([] {\n    a();\n  });\n}\n", ["b();\n"]) == "run([] {\n    a();\nb();\n  });\n}\n",
          "an answer is not within the last function")
    check(check_tutorial.output_of("echo a", folder) == ["a"] and refuses(check_tutorial.output_of, "exit 1", folder), "a command that fails is taken")
    check(refuses(check_tutorial.output_of, "true", folder, True), "a command that must fail and does not is taken")


with tempfile.TemporaryDirectory() as temporary:
    check_lines()
    check_blocks()
    check_pages(pathlib.Path(temporary))
