"""Finds definitions of functions in C++ sources, by their text, and what their bodies call.

It reads no types: a call is a name in front of a bracket, of whatever object. Definitions are those of functions, of members (in their
class or outside it) and of lambdas that have a name.
"""
import re

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-zA-Z])\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
# What may stand between the parameters of a function and its body.
QUALIFIERS = re.compile(r"\s*(?:(?:const|noexcept|override|final|mutable|&&?)\s*)*(?:->\s*[\w:<>,&*\s]+?)?")
NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignof", "requires"}


def without_comments(text):
    """The same without comments and what strings hold; a line break stays one."""
    return COMMENT_OR_STRING.sub(lambda found: '""' if found.group()[0] in "\"R'" else "\n" * found.group().count("\n"), text)


def after_brackets(text, at):
    """The place behind the bracket that closes the one at `at`; -1 if none does."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opening, closing, depth = text[at], pairs[text[at]], 0
    for found in re.compile("[" + re.escape(opening + closing) + "]").finditer(text, at):
        depth += 1 if found.group() == opening else -1
        if depth == 0:
            return found.end()
    return -1


def body_behind(text, at):
    """The {body} of a function whose parameters begin at `at`; None where it is no definition."""
    at = after_brackets(text, at)
    if at < 0:
        return None
    at = QUALIFIERS.match(text, at).end()
    if text[at:at + 1] == ":" and text[at:at + 2] != "::":  # the members that a constructor sets
        while True:
            member = re.compile(r"[:,]\s*[\w:<>]+\s*(?=[({])").match(text, at)
            if not member:
                return None
            at = after_brackets(text, member.end())
            if at < 0:
                return None
            at += len(text[at:]) - len(text[at:].lstrip())
            if text[at:at + 1] != ",":
                break
    if text[at:at + 1] != "{":
        return None
    end = after_brackets(text, at)
    return text[at:end] if end > 0 else None


class Sources:
    """Texts of sources, and the functions in them."""

    def __init__(self, texts):
        """texts: path -> content"""
        self.texts = texts
        self.plain = {}

    def text_of(self, path):
        """The text without comments and strings, made when it is first asked for."""
        if path not in self.plain:
            self.plain[path] = without_comments(self.texts[path])
        return self.plain[path]

    def with_words(self, words, paths=None):
        """The paths, of these or of all, whose texts have all the words."""
        return [path for path in (self.texts if paths is None else paths) if all(word in self.texts[path] for word in words)]

    def definitions(self, name, paths=None):
        """The bodies of all functions called `name` (with what it says of its class or namespace), in `paths` or anywhere."""
        *scopes, last = name.split("::")
        written_name = r"operator\(\)" if last == "operator" else re.escape(last)  # a page has the brackets behind the name
        head = re.compile(rf"(?<![\w.>])((?:\w+(?:<[^<>()]*>)?::)*){written_name}\s*(?=\()"
                          rf"|\b{re.escape(last)}\s*=\s*\[[^\]]*\]\s*(?:<[^<>]*>\s*)?(?=\()")
        for path in self.with_words([last, *scopes], paths):
            text = self.text_of(path)
            for found in head.finditer(text):
                written = (found.group(1) or "").split("::")[:-1]
                # Scopes that stand in front must be those of the name, or the name's be some that the file opens around it.
                if written and scopes and written[-1] != scopes[-1]:
                    continue
                body = body_behind(text, found.end())
                if body is not None and last not in NOT_FUNCTIONS:
                    yield body

    def quotes(self, block):
        """Whether one file holds this code; spaces and comments do not count."""
        code = without_comments(block)
        wanted = re.sub(r"\s+", "", code)
        return any(wanted in re.sub(r"\s+", "", self.text_of(path)) for path in self.with_words(re.findall(r"\w+", code)))


def calls(body, name):
    """Whether a body calls something of this name, or takes it from a template: `name(`, `name{`, `name<`."""
    return re.search(rf"(?<!\w){re.escape(name.split('::')[-1])}\s*[({{<]", body) is not None
