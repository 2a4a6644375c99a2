#!/usr/bin/env python3
"""Lays out the pages of the site for mkdocs (scripts/build_docs.sh calls this):

    site_pages.py FOLDER --api API --site SITE

FOLDER gets mkdocs.yml and pages/: README.md, CHANGELOG.md, CONTRIBUTING.md, all of docs/, and Doxygen's pages out of API (api/ with
api.tag beside it). SITE is where mkdocs will write. A link to any other file of the repository leads to a copy of it with colours,
a link to a folder to its README.md, or to a list of its files.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import xml.etree.ElementTree

import command_line
import header_examples

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = ROOT / "scripts/docs_site"
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
API_PAGE = "docs/reference/api.md"

# Which section of the navigation a page is in: the first with a pattern for it. Pages of one pattern are in order of their names.
SECTIONS = {
    "Home": ["README.md", "docs/README.md"],
    "Tutorial": ["docs/tutorial/README.md", "docs/tutorial/*.md", "examples/README.md", "docs/synchronous-sgd.md"],
    "Concepts": ["docs/concepts/README.md", "docs/concepts/*.md", "docs/kernels/*.md", "docs/canonical.md", "docs/mixed-precision.md",
                 "docs/regularization.md"],
    "Results": ["docs/results/README.md", "docs/results/*.md"],
    "Developing": ["CONTRIBUTING.md", "docs/reading-the-code.md", "docs/adding-an-op.md", "docs/extending.md", "docs/gpu-check.md",
                   "docs/golden-outputs.md"],
    "Reference": ["docs/reference/README.md", "docs/reference/flags.md", "docs/reference/environment.md", API_PAGE, "docs/reference/*.md",
                  "docs/like-pytorch.md", "docs/limits.md", "docs/libraries.md", "docs/run-directory.md", "docs/comm/backends.md",
                  "CHANGELOG.md"],
    "How-to": ["docs/how-to/README.md", "docs/how-to/*.md", "docs/*.md", "docs/comm/*.md"],
}
ORDER = ("Home", "Tutorial", "Concepts", "How-to", "Reference", "Results", "Developing")
NEWEST_FIRST = "Results"

LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".py": "python", ".sh": "bash", ".cmake": "cmake", ".toml": "toml",
             ".json": "json", ".cff": "yaml", ".yml": "yaml", ".js": "js", ".css": "css"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
HTML_LINK = re.compile(r"(\shref=\")([^\"]+)(\")")
FENCE = re.compile(r"^( *(`{3,}|~{3,})).*?^ *\2[`~]*\s*?$", re.MULTILINE | re.DOTALL)


def relative(path, page):
    """From the folder of a page, as links have it."""
    return pathlib.PurePath(os.path.relpath(path, pathlib.PurePath(page).parent)).as_posix()


def outside_code(text, change):
    """The text of a page with `change` made to all but its blocks and spans of code."""
    at, parts = 0, []
    for block in FENCE.finditer(text):
        parts += [change_lines(text[at:block.start()], change), block[0]]
        at = block.end()
    return "".join(parts) + change_lines(text[at:], change)


def change_lines(text, change):
    spans = re.split(r"(`+[^`]+`+)", text)  # a link around a span of code is cut in two: [`a`](b) ends behind it
    return "".join(change(part) if i % 2 == 0 else part for i, part in enumerate(spans))


class Site:
    def __init__(self, pages, api):
        self.pages, self.api = pages, api
        self.copies = {}  # of files and folders that a page leads to: path of the page that shows them
        self.waiting = []

    def write(self, path, text):
        target = self.pages / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    @functools.cached_property
    def api_pages(self):
        """Of each header: its page below api/."""
        tags = xml.etree.ElementTree.parse(self.api / "api.tag").getroot()
        pages = {}
        for file in tags.findall("compound[@kind='file']"):
            path = pathlib.Path(file.findtext("path")) / file.findtext("name")
            name = file.findtext("filename")
            pages[path.as_posix().split("/headers/tandem/")[-1]] = name if name.endswith(".html") else name + ".html"
        return pages

    def shown(self, path):
        """The page for a file or folder of the repository, and makes it where there is none."""
        if (ROOT / path).is_dir():
            page = f"{path}/README.md"
            if not (ROOT / page).is_file() and path not in self.copies:
                self.copies[path] = page
                self.waiting.append(path)
            elif (ROOT / page).is_file() and not path.startswith("docs"):
                self.copies.setdefault(page, page)
                self.waiting.append(page)
            return page
        if path in TOP_PAGES or path.startswith("docs/"):
            return path
        page = path if path.endswith(".md") else path + ".md"
        if path not in self.copies:
            self.copies[path] = page
            self.waiting.append(path)
        return page

    def with_links(self, text, page):
        """The text of a page, its links leading to what the site has."""
        def target_of(link):
            path, _, anchor = link.partition("#")
            if not path or re.match(r"[a-z]+:", path):
                return link
            found = pathlib.PurePath(os.path.normpath(pathlib.PurePath(page).parent / path)).as_posix()
            if found.startswith("../") or not (ROOT / found).exists():
                return link  # mkdocs will complain
            return relative(self.shown(found), page) + ("#" + anchor if anchor else "")

        def as_html(link):
            path, _, anchor = target_of(link).partition("#")
            path = re.sub(r"(^|/)README\.md$", r"\1index.html", path)
            return re.sub(r"\.md$", ".html", path) + ("#" + anchor if anchor else "")

        def change(part):
            part = LINK.sub(lambda found: found[1] + target_of(found[2]) + found[3], part)
            return HTML_LINK.sub(lambda found: found[1] + as_html(found[2]) + found[3], part)
        return outside_code(text, change)

    def copy(self, path):
        """Makes the page that shows a file or folder."""
        page, source = self.copies[path], ROOT / path
        head = "---\nsearch: {exclude: true}\n---\n\n"
        if source.is_dir():
            self.write(page, head + self.listing(path))
        elif path.endswith(".md"):
            self.write(page, self.with_links(source.read_text(encoding="utf-8"), page))
        else:
            text = source.read_text(encoding="utf-8")
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            lines = [f"# {path}", ""]
            if path in self.api_pages:
                lines += [f"[Its page in the API]({relative('api/' + self.api_pages[path], page)})", ""]
            lines += [fence + LANGUAGES.get(source.suffix, "text"), text.rstrip("\n"), fence]
            self.write(page, head + "\n".join(lines) + "\n")

    def listing(self, path):
        """Of a folder that has no README.md: its files, and what each is by its first comment, or its heading."""
        rows = [f"# {path}/", "", "| file | what it is |", "|---|---|"]
        for file in sorted((ROOT / path).iterdir()):
            name = file.relative_to(ROOT).as_posix()
            if file.is_file() and not file.name.startswith("."):
                rows.append(f"| [{file.name}]({relative(self.shown(name), self.copies[path])}) | {first_line(file)} |")
        return "\n".join(rows) + "\n"

    def api_page(self):
        rows = ["# API", "", "The headers that a program may include, library by library. [All classes](../../api/annotated.html) and",
                "[all namespaces](../../api/namespaces.html) have lists of their own."]
        for library in header_examples.LIBRARIES:
            rows += ["", f"## {library}", "", "| header | what it has |", "|---|---|"]
            for header in public_headers():
                if header.startswith(library + "/"):
                    target = relative("api/" + self.api_pages[header], API_PAGE)
                    rows.append(f"| [`{header}`]({target}) | {first_line(ROOT / header)} |")
        return "\n".join(rows) + "\n"


def first_line(file):
    """What a file says of itself: the first sentence of its first comment, or its heading."""
    if file.suffix in (".png", ".svg"):
        return "a picture"
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    words = []
    for line in lines[1:] if lines and lines[0].startswith("#!") else lines:
        found = re.match(r"(?://+|#+|\"\"\"|--)\s*(\S.*)$", line)
        if not found:
            break
        words.append(found[1])
        if line.startswith("# ") and file.suffix == ".md" or re.search(r"[.:]$", line):
            break
    sentence = re.split(r"(?<=[^.]\.) | *Example:", " ".join(words))[0]
    return sentence.replace("|", r"\|").replace("<", "&lt;").rstrip(".:")


def public_headers():
    """Paths of the headers that have a page in the API."""
    return [header for header in header_examples.headers() if "/" in header and header_examples.needs_example(header)]


def navigation(pages):
    """The sections, each with its pages; every page is in one."""
    sections = {name: [] for name in ORDER}
    left = sorted(pages)
    for name, patterns in SECTIONS.items():
        for pattern in patterns:
            found = [page for page in left if pathlib.PurePath(page).match(pattern) and page.count("/") == pattern.count("/")]
            left = [page for page in left if page not in found]
            sections[name] += sorted(found, reverse=name == NEWEST_FIRST)
    if left:
        command_line.complain(f"{left[0]}: is in no section of the site: add it to SECTIONS in scripts/site_pages.py")
    return [{name: listed} for name, listed in sections.items() if listed]


def own_pages():
    pages = [*TOP_PAGES, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if (ROOT / page).is_file()]


def lay_out(folder, api, site_folder):
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages / "docs", ignore=shutil.ignore_patterns("*.md"))
    shutil.copytree(api / "api", pages / "api")
    shutil.copytree(CONFIG, pages / "site", ignore=shutil.ignore_patterns("[!is]*"))  # iframe-worker.js, site.css
    site = Site(pages, api)
    in_navigation = own_pages()
    for page in in_navigation:
        head = "---\nsearch: {boost: 0.3}\n---\n\n" if page.startswith("docs/results/") else ""  # what teaches is found first
        site.write(page, head + site.with_links((ROOT / page).read_text(encoding="utf-8"), page))
    site.write(API_PAGE, site.api_page())
    in_navigation.append(API_PAGE)
    for folder_of_programs in ("examples", "docs/results"):  # in the navigation, with a list of files where they have no page
        page = site.shown(folder_of_programs)
        if page not in in_navigation:
            in_navigation.append(page)
    while site.waiting:
        site.copy(site.waiting.pop())
    hidden = [page for page in site.copies.values() if page not in in_navigation]
    settings = {"INHERIT": str(CONFIG / "mkdocs.yml"), "docs_dir": str(pages), "site_dir": str(site_folder), "nav": navigation(in_navigation),
                "not_in_nav": "\n".join("/" + page for page in hidden)}
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    print(f"{len(in_navigation)} pages, {len(hidden)} copies of files and folders")


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=pathlib.Path)
    parser.add_argument("--api", type=pathlib.Path, help="Doxygen's output")
    parser.add_argument("--site", type=pathlib.Path, help="where mkdocs writes the site")
    parser.add_argument("--headers", action="store_true", help="print the headers that are in the API, and stop")
    arguments = parser.parse_args()
    if arguments.headers:
        print("\n".join(public_headers()))
        return
    if None in (arguments.folder, arguments.api, arguments.site):
        parser.error("FOLDER, --api and --site are needed")
    lay_out(arguments.folder.resolve(), arguments.api.resolve(), arguments.site.resolve())


if __name__ == "__main__":
    command_line.run(main)
