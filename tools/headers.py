"""Reads public headers as clang-format leaves them: what they declare, with comments."""

import re
from typing import NamedTuple


class Entry(NamedTuple):
    """A class, enum, function, alias, constant or macro of a header."""

    names: list  # of overloads and short names that one comment is for all
    title: str  # "class GradientTape"
    comment: str
    code: str  # its declaration; of classes the public and protected members


class Member(NamedTuple):
    """A declaration of a namespace or class, as it stands there."""

    comment: list | None  # None: no declaration, but "public:"
    code: str
    body: str | list | None = None  # of a function "", of an enum its text
    apart: bool = True  # a blank line is before it
    behind: str = ""  # the comment at the end of its line


# A comment, a preprocessor's line, a literal, a blank line, or a sign that ends something.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<line>^[ \t]*#(?:[^\n\\]|\\.)*)"
    r'|(?P<literal>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\')'
    r"|(?P<blank>\n[ \t]*(?=\n))|(?P<sign>[{}();])",
    re.DOTALL | re.MULTILINE,
)
_KIND = re.compile(
    r"\b(?:(class|struct|union)|(enum(?: class)?|namespace|extern \"C\"))(?:\s|$)"
)
_MARKS = re.compile(r"\b(?:HR_API|TF_CAPI_EXPORT|extern)\s+")


class _Reader:
    """One walk through a header's text."""

    def __init__(self, text):
        self.text, self.at = text, 0
        self.entries = []

    def pieces(self):
        """(kind, text) of tokens and of what stands between them."""
        while True:
            found = _TOKEN.search(self.text, self.at)
            end = found.start() if found else len(self.text)
            if end > self.at:
                between, self.at = self.text[self.at : end], end
                yield "code", between
            if not found:
                return
            self.at = found.end()
            yield found.lastgroup, found.group()

    def ends_a_line(self, comment):
        """Whether the comment that was just read stands behind code."""
        begin = self.at - len(comment)
        return bool(self.text[self.text.rfind("\n", 0, begin) + 1 : begin].strip())

    def skip_braces(self):
        """Behind the brace that ends what the last one began; its text."""
        begin, depth = self.at, 1
        for kind, text in self.pieces():
            if kind == "sign":
                depth += (text == "{") - (text == "}")
            if not depth:
                break
        return self.text[begin : self.at]

    def scope(self, name):
        """The Members up to the brace that ends a namespace or class."""
        found, comment, code, parens, apart = [], [], "", 0, True
        for kind, text in self.pieces():
            if kind == "comment" and self.ends_a_line(text):
                if found and not code.strip() and "NOLINT" not in text:
                    found[-1] = found[-1]._replace(behind=f"  {text}")
            elif kind == "comment" and re.fullmatch(
                r"\s*(template <.*>\s*)?", code, re.S
            ):
                comment.append(text)
            elif kind == "blank" and not code.strip():
                if comment:  # of no declaration: a heading of those that follow
                    comment = []
                apart = True
            elif kind == "line":
                macro = re.match(r"\s*#define (\w+)(?!_H_) \S", text)
                if macro and not code.strip():
                    found.append(Member(comment, text.strip(), None, apart))
                    comment, apart = [], False
            elif kind == "sign" and text == "}" and not parens:
                return found
            elif kind == "sign" and text == "{" and not parens and _is_body(code):
                body = self.body(code, name)
                if body is not None:
                    found.append(Member(comment, code.strip(), body, apart))
                    comment, code, apart = [], "", False
                else:
                    comment, code = [], ""
            elif kind == "sign" and text == "{":
                code += "{" + self.skip_braces()
            elif kind == "sign" and text == ";" and not parens:
                if code.strip():
                    found.append(Member(comment, code.strip() + ";", None, apart))
                    comment, apart = [], False
                code = ""
            elif kind != "comment":
                parens += (text == "(") - (text == ")") if kind == "sign" else 0
                code += text
                code = re.sub(
                    r"^\s*(?:public|protected|private):", _access(found), code
                )
        return found

    def body(self, code, name):
        """What stands in the braces behind `code`; None where all is told by it."""
        kind = _KIND.search(re.sub(r"^template <.*?>\n", "", code, flags=re.DOTALL))
        if kind and kind.group(2) and not kind.group(2).startswith("enum"):
            inner = code.split()[-1]
            hidden = "internal" in inner
            members = self.scope(inner)
            if not hidden:
                self.entries += _entries(members)
            return None
        if kind and kind.group(1) and "(" not in code:
            return self.scope(name)
        text = self.skip_braces()
        return "{" + text if kind and "(" not in code else ""


def _is_body(code):
    """Whether a brace behind `code` begins a body, and no value: formatted sources have
    a space before those of bodies alone, but behind an equals sign."""
    return code[-1:].isspace() and not re.search(r"[=,(]\s*$|\breturn\s*$", code)


def _access(found):
    def note(match):
        found.append(Member(None, match.group().strip()))
        return ""

    return note


def _entries(members):
    """The entries of a namespace's declarations; overloads that one comment is for are
    one entry."""
    made = []
    for member in members:
        comment, apart, code = member.comment, member.apart, shown_code(member)
        if (
            re.match(r"(?:class|struct) \w+;|friend |namespace ", code)
            or comment is None
        ):
            continue
        name = name_of(code)
        if not comment and not apart and made and " " not in made[-1].title:
            last = made[-1]
            made[-1] = last._replace(
                names=[*last.names, name], code=f"{last.code}\n{code}"
            )
            continue
        title = re.match(
            r"(?:template <.*?>\s)?(class|struct|union|enum)\b", code, re.DOTALL
        )
        kind = f"{title.group(1)} " if title else ""
        made.append(Entry([name], kind + name, words(comment), code))
    return made


def shown_code(declared):
    """A declaration without what only compilers want."""
    body = declared.body
    macro = declared.code.startswith("#")
    code = declared.code if macro else _MARKS.sub("", declared.code)
    code = re.sub(r"\s*\n", "\n", code)
    if body is None:
        return code + declared.behind
    if isinstance(body, str):  # a function's is not shown, an enum's is
        code = f"{code} {body};" if body else _without_initializers(code) + ";"
        return code + declared.behind
    lines = [code + " {"]
    public = not re.match(r"(?:template <.*?>\s)?class\b", code, re.DOTALL)
    for member in body:
        if member.comment is None:
            public = not member.code.startswith("private")
            lines += [f" {member.code}"] if public else []
        elif public and not member.code.startswith("friend "):
            text, told = shown_code(member), words(member.comment).splitlines()
            told = "".join(f"// {x}".rstrip() + "\n" for x in told)
            lines += [""] if member.apart and not lines[-1].endswith((":", "{")) else []
            lines.append(re.sub(r"^(?=.)", "  ", told + _at_margin(text), flags=re.M))
    return "\n".join([*lines, "};"])


def _at_margin(code):
    """Members stand two columns in, those of classes in classes four."""
    first, *rest = code.split("\n")
    return "\n".join([first, *(line.removeprefix("  ") for line in rest)])


def _without_initializers(code):
    """A constructor's head: "Tensor(float x)" of "Tensor(float x) : x_(x)"."""
    depth = 0
    for at, sign in enumerate(code):
        depth += (sign in "(<[{") - (sign in ")>]}") * (code[at - 1] != "-")
        if (
            sign == ":"
            and not depth
            and ":" not in (code[at - 1], code[at + 1 : at + 2])
        ):
            return code[:at].strip()
    return code.strip()


def name_of(code):
    """The name that a declaration declares."""
    code = re.sub(r"^template <(?:[^<>]|<[^<>]*>)*>\s", "", code)
    for pattern in (
        r"#define (\w+)",
        r"\s*requires .*\s(\w+)\(",
        r"(?:class|struct|union|enum(?: class)?) (\w+)",
        r"using (\w+) =",
        r"typedef .*?(\w+);$",
        r"using (?:\w+::)*(\w+);",
        r"[^(=]*?(operator ?[^\s\w(]+|operator\(\))\s*\(",
        r"[^(={]*?(\w+)\(",
        r"[^={;\[]*?(\w+)\s*(?:\[[^\]]*\])?\s*(?:[={].*)?;",
    ):
        found = re.match(pattern, code, re.DOTALL)
        if found:
            return found.group(1)
    return code.split("\n")[0]


def words(comments):
    """The text of comments."""
    lines = []
    for text in comments or ():
        if text.startswith("/*"):
            rows = text[2:-2].strip().splitlines()
            lines += [rows[0], *(re.sub(r"^   ", "", row) for row in rows[1:])]
        else:
            lines.append(re.sub(r"^// ?", "", text))
    return "\n".join(lines).strip()


def read(text):
    """(the comment at the head, [Entry])."""
    head = re.match(r"(?:\s*//[^\n]*\n)+|\s*/\*.*?\*/", text, re.DOTALL)
    comments = _TOKEN.findall(head.group()) if head else []
    reader = _Reader(text[head.end() :] if head else text)
    found = reader.scope("")
    return words([c[0] for c in comments]), _entries(found) + reader.entries
