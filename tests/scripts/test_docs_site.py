#!/usr/bin/env python3
"""Tests of what scripts/build_docs.sh is made of: links of pages, headers as Doxygen reads them, and faults of a site.

    test_docs_site.py SCRIPTS
"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SCRIPTS))
import doxygen_filter  # noqa: E402
import site_pages  # noqa: E402

failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(f"{what}: expected\n{wanted}\ngot\n{got}")


# --- Links -------------------------------------------------------------------------------------------------------------------

site = site_pages.Site(pathlib.Path("/nowhere"), pathlib.Path("/nowhere"))
for link, wanted in {
        "[a](launching.md#gpus)": "[a](launching.md#gpus)",
        "[a](../core/tensor.h)": "[a](../core/tensor.h.md)",
        "[a](../core/tensor.h#L3)": "[a](../core/tensor.h.md#L3)",
        "[`a`](../LICENSE)": "[`a`](../LICENSE.md)",
        "[a](../core/)": "[a](../core/README.md)",
        "[a](https://example.org/x.h)": "[a](https://example.org/x.h)",
        "[a](none.md)": "[a](none.md)",
        "[a](#here)": "[a](#here)",
        "`[a](../core/tensor.h)`": "`[a](../core/tensor.h)`",
        "```\n[a](../core/tensor.h)\n```\n": "```\n[a](../core/tensor.h)\n```\n",
        '<a href="data.md#images">': '<a href="data.html#images">',
        '<a href="README.md">': '<a href="index.html">',
        '<a href="../core/tensor.h">': '<a href="../core/tensor.h.html">'}.items():
    expect(f"links of {link}", site.with_links(link, "docs/training.md"), wanted)
expect("files that are led to", sorted(site.copies), ["LICENSE", "core", "core/tensor.h"])
sections = site_pages.navigation(["README.md", "docs/results/1.md", "docs/results/2.md", "docs/new.md", "CONTRIBUTING.md"])
expect("sections", sections, [{"Home": ["README.md"]}, {"How-to": ["docs/new.md"]}, {"Results": ["docs/results/2.md", "docs/results/1.md"]},
                              {"Developing": ["CONTRIBUTING.md"]}])

# --- Headers -----------------------------------------------------------------------------------------------------------------

HEADER = """// A box, which `std::cout << box` prints.
#pragma once

/// Holds things. Example:
///     const Box box(1);
///     std::move(box);
/// More of it is in `tandem::Chest`.
class Box {
  Box(const Box&) = delete;
  ~Box() = default;  // nothing to do
  int size = 0;
};

template <>
struct fmt::formatter<Box> : fmt::formatter<int> {
  int f();
};
int last();
"""
READ = r"""/// @fileof{core/box.h} A box, which <code>std\::cout &lt;&lt; box</code> prints.
#pragma once

/// Holds things. Example: @code{.cpp}
///     const Box box(1);
///     std::move(box); @endcode
/// More of it is in <code>tandem\::Chest</code>.
class Box {


  int size = 0;
};





int last();
"""
expect("a header as Doxygen reads it", doxygen_filter.filtered(HEADER, "core/box.h"), READ)
expect("another file as Doxygen reads it", doxygen_filter.filtered("// x\n", "api.dox"), "// x\n")

# --- Faults of a site --------------------------------------------------------------------------------------------------------

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    def check(code, *wanted):
        done = subprocess.run([sys.executable, SCRIPTS / "check_site.py", folder], capture_output=True, text=True, env={"PATH": "/nowhere"})
        for text in wanted:
            if text not in done.stdout + done.stderr:
                failures.append(f"no '{text}' in {done.stdout}{done.stderr}")
        expect("exit code", done.returncode, code)

    check(2, "has no index.html: scripts/build_docs.sh builds the site")
    (folder / "other.html").write_text('<h1 id="top">Other</h1>')
    (folder / "index.html").write_text('<a href="other.html#top">x</a><a href="https://example.org">x</a><img src="data:image/png;base64,">')
    check(0, "2 pages, 0 faults in links and structure", "not looked at: there is no Chromium here")
    (folder / "index.html").write_text('<a href="other.html#bottom">x</a><a href="none.html">x</a><a href="/etc/hosts">x</a>'
                                       '<script src="https://example.org/x.js"></script><link rel="stylesheet" href="//example.org/x.css">')
    (folder / "style.css").write_text("@import 'https://example.org/font.css'; a { background: url(//example.org/b.png) }")
    check(1, "index.html: other.html#bottom: there is no such anchor", "index.html: none.html: there is no such file",
          "index.html: /etc/hosts: leads out of the site", "index.html: https://example.org/x.js: is asked of another host",
          "index.html: //example.org/x.css: is asked of another host", "style.css: https://example.org/font.css: is asked of another host",
          "style.css: //example.org/b.png: is asked of another host")

if failures:
    sys.exit("\n".join(failures))
print("all cases passed")
