#!/usr/bin/env python3
"""Sources include what they use: a file that names what a header of the project, or one of the standard library's most used
headers, declares must include that header.

    scripts/check_includes.py [FILE ...]

FILEs are tracked sources; without any, all are checked. A header counts as included
  - by the file's own #include lines;
  - for foo.cpp, foo_cpu.cpp, foo.cu and the like by their own header foo.h, with all that it includes, directly or not;
  - by a header that the file includes: what that includes itself, and, however deep, core/, tests/support/, the standard library and
    the folders that it lies in (stationary/stationary.h gives conv/geometry.h; whatever takes a Tensor gives Shape);
  - by tandem/tandem.h, tandem/core.h and the like: all that they reach.
Names are those that exactly one header declares outside of classes and functions: types, aliases, concepts, functions whose name
has a "_", constants and macros. A name counts where it is not a member's, is not declared by the file itself, and the file's
library may use the header's.

It reads words, not C++. It does not see names that several headers declare (overloads, one name in two namespaces), functions of
one plain word (add, copy), members, literals, operators, what macros expand to, and headers that are included without need. A name that
the file also gives to a variable is taken for that. Exit code 1 if a file lacks an include, 2 for wrong arguments.
"""
import collections
import os
import pathlib
import re
import sys

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
CXX = (".h", ".cuh", ".cpp", ".cu")
# What stands in for NVIDIA's headers, or belongs to another project.
FOREIGN = re.compile(r"simulator/include/|tests/consumer/")
STANDARD = {
    "algorithm": "all_of any_of clamp copy_n count_if fill_n find_if lower_bound max_element min_element sort stable_sort transform",
    "array": "array",
    "atomic": "atomic",
    "chrono": "chrono",
    "cmath": "ceil exp floor isfinite isinf isnan lround pow sqrt",
    "condition_variable": "condition_variable",
    "cstring": "memcmp memcpy memset",
    "deque": "deque",
    "exception": "current_exception exception_ptr rethrow_exception uncaught_exceptions",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "lock_guard mutex scoped_lock unique_lock",
    "optional": "nullopt optional",
    "set": "set",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "string": "string to_string",
    "string_view": "string_view",
    "thread": "jthread thread",
    "tuple": "tie tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "exchange forward move pair swap",
    "variant": "holds_alternative variant visit",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in STANDARD.items() for name in names.split()}
TOKEN = re.compile(r'[A-Za-z_]\w*|::|->|[{}();=<>,.:&*~\[\]#]|\S')
# What each library may use besides itself.
BELOW = {"core": "", "kernels": "core", "autograd": "kernels core", "layers": "autograd kernels core", "optim": "autograd kernels core",
         "comm": "autograd kernels core", "data": "kernels core", "train": "layers optim comm data autograd kernels core", "simulator": ""}
KEYWORDS = set("""alignas auto bool break case char class concept const consteval constexpr constinit continue decltype default delete do double
else enum explicit extern false float for friend if inline int long mutable namespace new noexcept nullptr operator private protected
public requires return short signed sizeof static static_assert struct switch template this throw true try typename union unsigned
using virtual void volatile while""".split())


def tracked_sources():
    return [file for file in command_line.tracked_files(ROOT) if file.endswith(CXX) and not FOREIGN.search(file)]


def without_comments(text):
    """The text with comments, strings and characters blanked, lines kept."""
    def blank(match):
        word = match[0]
        if word.startswith(("/*", "//")):
            return "\n" * word.count("\n") or " "
        return '""' + "\n" * word.count("\n")
    return re.sub(r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


class Source:
    def __init__(self, file):
        self.file = file
        text = (ROOT / file).read_text(errors="replace")
        self.includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"]+)[>"]', text, flags=re.M)
        self.standard = {include[1:] for include in self.includes if include[0] == "<"}
        self.ours = {self.path_of(include[1:]) for include in self.includes if include.startswith(('"', "<tandem/"))}
        code = without_comments(text)
        self.namespaces = set(word for names in re.findall(r"^\s*(?:inline )?namespace ([\w:]+) \{", code, flags=re.M) for word in names.split("::"))
        self.aliases = set(re.findall(r"namespace (\w+) = tandem", code))
        self.macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(TANDEM_\w+)", code, flags=re.M))
        self.tokens = []  # (word, line)
        directive = re.compile(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", flags=re.M)
        code = directive.sub(lambda match: "\n" * match[0].count("\n"), code)
        for number, line in enumerate(code.split("\n"), 1):
            self.tokens += [(word, number) for word in TOKEN.findall(line)]
        self.declared = self.names_outside() | self.macros
        self.locals = self.names_inside()

    def path_of(self, include):
        beside = os.path.normpath(os.path.join(os.path.dirname(self.file), include))
        if include.startswith("tandem/"):  # tandem/core.h is a file of include/, tandem/core/ a link there
            return f"include/{include}" if include.count("/") == 1 else include[len("tandem/"):]
        # The program's own headers are found from its folder, by its tests too.
        return next((path for path in (include, beside, "apps/cifar_train/" + include) if (ROOT / path).is_file()), include)

    def names_outside(self):
        """What is declared at the top or in namespaces."""
        names, depth, words = set(), [], [word for word, _ in self.tokens]
        statement = []  # words of the statement so far
        for at, word in enumerate(words):
            inside = any(kind != "namespace" for kind in depth)
            if word == "{":
                kind = "namespace" if not inside and ("namespace" in statement or "extern" in statement[:1]) else "other"
                if not inside and kind == "other":
                    names |= self.declared_by(statement)
                depth.append(kind)
                if not inside:
                    statement = []
            elif word == "}":
                if depth:
                    depth.pop()
                if not any(kind != "namespace" for kind in depth):
                    statement = []
            elif not inside:
                if word == ";":
                    names |= self.declared_by(statement, forward=True)
                    statement = []
                else:
                    statement.append(word)
        return names

    def names_inside(self):
        """Names that stand where a type, a constant, a variable or a parameter is declared, at whatever depth."""
        words = [word for word, _ in self.tokens]
        types = {name for before, name in zip(words, words[1:])
                 if before in ("class", "struct", "enum", "union", "typename", "using", "concept") and re.fullmatch(r"[A-Za-z]\w*", name)}
        types |= {name for before, name, after in zip(words, words[1:], words[2:])
                  if re.fullmatch(r"[A-Z]\w*", name) and after in (">", ",") and re.fullmatch(r"[A-Z]\w*", before)}  # template <Concept T>
        constants = {name for before, name, after in zip(words, words[1:], words[2:])
                     if re.fullmatch(r"k[A-Z]\w*", name) and re.fullmatch(r"[a-z]\w*|>|,", before) and after in ("=", ",", ">", "{", "[")
                     and before not in ("return", "case")}
        before_names = KEYWORDS - {"auto", "bool", "char", "double", "float", "int", "long", "unsigned", "void"}
        variables = {name for before, name, after in zip(words, words[1:], words[2:])
                     if re.fullmatch(r"(?!k[A-Z])[a-z]\w*", name) and name not in KEYWORDS and before not in before_names
                     and (before == "," and after in (",", ";", "]")
                          or re.fullmatch(r"[A-Za-z_]\w*", before) and after in ("=", "{", "(", ",", ")", ":", ";", "[", "]")
                          or before in ("&", "*", ">", "[") and after in ("=", "{", ",", ")", ":", ";", "[", "]"))}
        functions = {name for before, name, after in zip(words, words[1:], words[2:]) if before == ")" and after == ";" and re.fullmatch(r"\w+", name)}
        return types | constants | variables | functions

    @staticmethod
    def declared_by(statement, forward=False):
        words = list(statement)
        if not words or "namespace" in words or words[0] in ("static_assert", "friend"):
            return set()
        while words and words[0] == "template":  # with its parameters and what it requires
            depth, at = 0, 1
            while at < len(words):
                depth += {"<": 1, ">": -1}.get(words[at], 0)
                at += 1
                if depth == 0:
                    break
            words = words[at:]
        if "=" in words and words[0] not in ("using", "concept"):
            words = words[:words.index("=")]
        if words and words[0] == "using":
            return {words[1]} if len(words) > 2 and words[2] == "=" else set()
        if words and words[0] == "concept":
            return {words[1]}
        for kind in ("class", "struct", "enum", "union"):
            if kind in words[:2]:
                rest = [word for word in words if word not in ("class", "struct", "enum", "union", "alignas")]
                if forward and kind != "enum" and "(" not in words:
                    return set()  # only announced
                if "(" not in words or words[0] in ("class", "struct", "enum", "union"):
                    name = next((word for word in rest if re.fullmatch(r"[A-Za-z_]\w*", word) and word not in KEYWORDS), None)
                    return {name} if name else set()
        if "(" in words:
            at = words.index("(")
            if at >= 2 and words[at - 2] in ("::", "~", "operator") or "operator" in words[:at]:
                return set()  # a member that is defined outside
            name = words[at - 1] if at else ""
            return {name} if at >= 2 and re.fullmatch(r"[A-Za-z_]\w*", name) and name not in KEYWORDS and name != "requires" else set()
        name = words[-1] if words else ""
        return {name} if len(words) >= 2 and re.fullmatch(r"k[A-Z]\w*", name) else set()

    def used(self, namespaces):
        """name -> line, of words that are not members; standard names as std::name."""
        found = {}
        words = self.tokens
        for at, (word, line) in enumerate(words):
            if not (word[0].isalpha() or word[0] == "_") or word in KEYWORDS:
                continue
            before = words[at - 1][0] if at else ""
            if before in (".", "->"):
                continue
            if before == "::" and at >= 2 and words[at - 2][0] == "std":
                word = "std::" + word
            elif before == "::" and at >= 2 and words[at - 2][0] not in namespaces | self.aliases:
                continue  # of a class, or another library's
            else:
                following = words[at + 1][0] if at + 1 < len(words) else ""
                if word[0].islower() and not re.match("k[A-Z]", word):
                    if "_" not in word or following not in ("(", "<"):
                        continue  # a variable, a member's name, or a word of every day
                    if re.fullmatch(r"[A-Za-z_]\w*", before) and before not in KEYWORDS - {"auto"}:
                        continue  # Type name(
            found.setdefault(word, line)
        return found


def may_use(file, header):
    """Whether a name of this header can be meant in this file."""
    top, folder = (file.split("/") + [""])[:2]
    of, inner = (header.split("/") + [""])[:2]
    if of == "tests":
        return top == "tests" and inner in (folder, "support")
    if of == "apps":
        return top == "apps" and inner in (folder, "arguments", "measure") or (top, folder) == ("tests", "apps")
    if of == "simulator":
        return top == "simulator" or top == "tests" and folder in ("simulator", "lint")
    return top not in BELOW or of == top or of in BELOW[top].split()


def own_header(file, known):
    """foo.h of foo.cpp, foo_cpu.cpp, foo_backward_cuda.cpp: the longest that there is."""
    stem = re.sub(r"\.\w+$", "", file)
    if file.endswith((".h", ".cuh")):
        return None
    while True:
        for suffix in (".h", ".cuh"):
            if stem + suffix in known:
                return stem + suffix
        cut = stem.rfind("_")
        if cut <= stem.rfind("/"):
            return None
        stem = stem[:cut]


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    sources = {file: Source(file) for file in tracked_sources()}
    for file in arguments.files:
        if file not in sources:
            command_line.complain(f"{file}: not a tracked source")
    declared = collections.defaultdict(set)
    for file, source in sources.items():
        if file.endswith((".h", ".cuh")):
            for name in source.declared:
                declared[name].add(file)

    namespaces = set().union(*(source.namespaces for source in sources.values()))

    def closure(file, seen=None):
        seen = set() if seen is None else seen
        if file in sources and file not in seen:
            seen.add(file)
            for include in sources[file].ours:
                closure(include, seen)
        return seen

    faults = 0
    for file in arguments.files or sorted(sources):
        source = sources[file]
        own = own_header(file, sources)
        given = set(source.ours) | {file}
        if own in given:
            given |= closure(own)
        standard = set().union(source.standard, *(sources[header].standard for header in (closure(own) if own in source.ours else ())))
        for header in list(source.ours):
            reached = closure(header)
            given |= {other for other in reached
                      if other.startswith(("core/", "tests/support/")) or os.path.dirname(header).startswith(os.path.dirname(other))}
            given |= sources[header].ours if header in sources else set()
            given |= reached if header.startswith("include/") else set()
            standard |= set().union(*(sources[other].standard for other in reached))
        known_names = set(source.declared | source.locals)
        for header in closure(own) if own in source.ours else ():
            known_names |= sources[header].declared | sources[header].locals
        for header in source.ours & sources.keys():  # which may only announce a class, or have members of that name
            known_names |= {name for name in sources[header].locals if name[0].isupper()}
        lacking = {}
        for name, line in source.used(namespaces).items():
            if name.startswith("std::"):
                header = HEADER_OF.get(name[5:])
                if header and header not in standard:
                    lacking.setdefault(f"<{header}>", (line, name))
            elif len(name) > 2 and name not in known_names:
                headers = {header for header in declared.get(name, ()) if may_use(file, header)}
                header = next(iter(headers), None)
                if len(headers) == 1 and header not in given:
                    lacking.setdefault(f'"{header if header.startswith(("apps/", "tests/")) else "tandem/" + header}"', (line, name))
        for header, (line, name) in sorted(lacking.items(), key=lambda item: item[1]):
            faults += 1
            print(f"{file}:{line}: {name} needs #include {header}", file=sys.stderr)
    print(f"check_includes: {len(arguments.files or sources)} files, {faults} includes lacking")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
