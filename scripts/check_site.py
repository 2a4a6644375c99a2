#!/usr/bin/env python3
"""Checks the site that scripts/build_docs.sh builds: check_site.py SITE [--pages PAGES]

Each link, picture, script and style must lead to a file of the site, and each anchor to an element; nothing may be asked of another
host. With --pages, the folder of the pages that mkdocs read, each page must have as many headings, items of lists, rows of tables,
blocks of code and pictures as GitHub's Markdown makes of it. Where Chromium is installed, it opens pages from file://, wide and
narrow, light and dark, without a network where `unshare` may take it away, and searches. Exit code 1 if something is wrong.
"""
import collections
import functools
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import browser
import command_line

LOADED = {("script", "src"), ("img", "src"), ("source", "srcset"), ("iframe", "src"), ("link", "href"), ("object", "data"), ("video", "src")}
NOT_LOADED = {"canonical", "prev", "next", "alternate"}  # kinds of <link> that a browser does not follow by itself
COUNTED = ("h1", "h2", "h3", "h4", "li", "tr", "pre", "img", "blockquote")
LOOKED_AT = ("index.html", "docs/index.html", "docs/training.html", "docs/reference/api.html", "docs/results/index.html", "api/index.html",
             "api/classtandem_1_1Tensor.html")
SEARCH = "gradient"

FIND_RESULTS = "document.querySelectorAll('.md-search-result__item').length"
FIND_FIELD = """(() => {
  const place = document.querySelector('.md-search__input').getBoundingClientRect();
  return [place.x + 20, place.y + place.height / 2];
})()"""
WAIT_FOR_RESULTS = f"""new Promise((done) => {{
  let tries = 0;
  const ask = () => {{
    const count = {FIND_RESULTS};
    if (count > 0 || ++tries > 100) done(count); else setTimeout(ask, 100);
  }};
  ask();
}})"""


class Page(html.parser.HTMLParser):
    """What a page of the site leads to, and what is in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.counts, self.article = collections.Counter(), 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        self.article += tag == "article"
        if self.article == 1 and tag in COUNTED:
            self.counts[tag] += 1
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for name, value in values.items():
            if (tag, name) in LOADED and not NOT_LOADED & set(values.get("rel", "").split()):
                self.loaded.append(value.split()[0] if name == "srcset" else value)

    def handle_endtag(self, tag):
        self.article -= tag == "article"


class Site:
    def __init__(self, folder):
        self.folder = folder

    @functools.lru_cache(maxsize=None)
    def page(self, path):
        return Page(path.read_text(encoding="utf-8"))

    def pages(self):
        return sorted(path for path in self.folder.rglob("*.html") if "/search/" not in path.as_posix())

    def fault(self, page, link):
        """What is wrong with a link of that page, or None."""
        parts = urllib.parse.urlsplit(link)
        if parts.scheme in ("http", "https", "mailto", "javascript", "data"):
            return None
        if parts.scheme or parts.netloc or parts.path.startswith("/"):
            return "leads out of the site"
        target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
        if target.is_dir() or not target.is_file():
            return "there is no such file"
        anchor = urllib.parse.unquote(parts.fragment)
        if anchor == "nested-classes" and target == page:
            return None  # Doxygen links to it where the classes in a class are private, too
        if anchor and target.suffix == ".html" and anchor not in self.page(target).anchors and not anchor.startswith("__"):
            return "there is no such anchor"
        return None

    def link_faults(self):
        for path in self.pages():
            page, name = self.page(path), path.relative_to(self.folder)
            for link in dict.fromkeys(page.links + page.loaded):
                fault = self.fault(path, link)
                if fault and name.name != "404.html":  # which a server shows, from its root
                    yield f"{name}: {link}: {fault}"
            for link in page.loaded:
                if re.match("(https?:)?//", link):
                    yield f"{name}: {link}: is asked of another host"
        for style in self.folder.rglob("*.css"):
            for link in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", style.read_text(encoding="utf-8", errors="replace")):
                yield f"{style.relative_to(self.folder)}: {link}: is asked of another host"


def structure_faults(site, sources):
    """Pages in which mkdocs reads something else than GitHub does."""
    import markdown_it  # in the environment of build_docs.sh only
    parse = markdown_it.MarkdownIt("gfm-like", {"linkify": False})
    for source in sorted(sources.rglob("*.md")):
        name = source.relative_to(sources)
        made = site.folder / name.with_name("index.html" if name.name == "README.md" else name.stem + ".html")
        text = re.sub(r"\A---\n.*?\n---\n", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)
        wanted, found = Page("<article>" + parse.render(text) + "</article>").counts, site.page(made).counts
        for tag in COUNTED:
            if wanted[tag] != found[tag]:
                yield f"{name}: has {found[tag]} <{tag}> in the site, {wanted[tag]} on GitHub"


def look(folder):
    """Faults that a browser sees."""
    faults = []
    with browser.Browser(browser.find_browser(), timeout=300) as window:
        for name in LOOKED_AT:
            for width in (1280, 400):
                for dark in (False, True):
                    window.show(width, dark)
                    window.open((folder / name).as_uri())
                    where = f"{name} at {width} px, {'dark' if dark else 'light'}"
                    faults += [f"{where}: {fault}" for fault in window.faults() if not fault.startswith("request: file:")]
                    if window.evaluate("document.documentElement.scrollWidth") > width:
                        faults.append(f"{where}: is wider than the window")
        window.show(1280)
        window.open((folder / "index.html").as_uri())
        x, y = window.evaluate(FIND_FIELD)
        for event in ("mousePressed", "mouseReleased"):
            window.call("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", clickCount=1)
        window.call("Input.insertText", text=SEARCH)
        results = window.call("Runtime.evaluate", expression=WAIT_FOR_RESULTS, awaitPromise=True, returnByValue=True)["result"].get("value")
        if not results:
            faults.append(f"index.html: a search for '{SEARCH}' finds nothing")
        faults += [f"search: {fault}" for fault in window.faults() if not fault.startswith("request: file:")]
    print(f"Chromium opened {len(LOOKED_AT)} pages; a search for '{SEARCH}' finds {results} pages")
    return faults


def looked_at(folder):
    """look() in a process without a network, where this system lets us take it away."""
    if browser.find_browser() is None:
        print("not looked at: there is no Chromium here (apt-get install chromium)")
        return []
    apart = ["unshare", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("the network stays: `unshare` may not take it away here")
        apart = []
    done = subprocess.run([*apart, sys.executable, __file__, str(folder), "--look"], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    return [] if done.returncode == 0 else ["the browser found faults"]


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("site", metavar="SITE", type=pathlib.Path)
    parser.add_argument("--pages", type=pathlib.Path, help="what mkdocs made the site of")
    parser.add_argument("--look", action="store_true", help="only look at the pages in Chromium")
    arguments = parser.parse_args()
    folder = arguments.site.resolve()
    if not (folder / "index.html").is_file():
        command_line.complain(f"{arguments.site}: has no index.html: scripts/build_docs.sh builds the site")
    if arguments.look:
        faults = look(folder)
    else:
        site = Site(folder)
        faults = list(site.link_faults())
        faults += structure_faults(site, arguments.pages.resolve()) if arguments.pages else []
        print(f"{len(site.pages())} pages, {len(faults)} faults in links and structure")
        faults += looked_at(folder)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    command_line.run(main)
