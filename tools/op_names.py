"""Where C++ names a registered op by a literal, for check_layers.py.

The engine's rooms know ops by the roles, traits and hooks that the ops' own files set. A
name may stand where an op is emitted: in gradients, in front ends and in the ops' files.
What is registered is read from the sources: HR_OP rows, the macros that end in them,
tables of TextOp, and the names that families' functions get, whole or in parts.
"""

import os
import re

ROOMS = ("op", "graph", "eager", "autodiff", "vectorize", "runtime")
ROOMS += ("function", "bind")
# Where gradients, the tape and front ends emit ops by name: files, and whole rooms.
EMITTERS = ("autodiff/", "eager/", "vectorize/", "function/", "bind/")
EMITTERS += ("op/gradient.cc", "op/vectorize.cc", "op/emitter.cc", "op/spelled_out.cc")
EMITTERS += ("graph/builder.cc", "graph/flow_context.cc")
TABLES = (
    "bind/call/operators.cc",
    "bind/value/variable_object.cc",
)  # rows that begin with an op

FREE = ("_test.cc", "_fuzz.cc")  # and what tests share, test_*
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
NAME = re.compile(r'"(_?[A-Z]\w+)"')
ROW = re.compile(r"\bHR_OP\((\w+)\)")
TEXTS = re.compile(r"\bTextOp (\w+)\[\] = \{\n(.*?)\n\};", re.DOTALL)
TEXT_ROW = re.compile(r'^    \{"(\w+)"', re.MULTILINE)
SPEC = re.compile(r'"([A-Z]\w*): (?:type|list|int|func|\{)')  # an attribute's
BUILDER = re.compile(
    r"\b(?:OpBuilder (?=\w+\()|bool (?=RegisterLike\())(\w+)\(const char\*"
)
MACRO = re.compile(r"^#define (\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)\n", re.MULTILINE)
# What is called with a name that is no op's: of an attribute, an input, a value.
OTHER = re.compile(
    r"\b(?:attr\w*|attr<[^()]*>|Attrs?|Get<[^()]*>|Find\w*|Set\w*|Input|Output|Doc)$"
)
OWN_NAME = r"\b(?:def|op)(?:\(\))?(?:\.|->)name(?:\(\))?"
PART = re.compile(
    rf"(?:{OWN_NAME}\.(?:starts_with|ends_with|r?find)\("
    rf'|\b(?:StartsWith|EndsWith|StrContains)\([^;"]*{OWN_NAME},)\s*"(\w+)"'
)
EMITS = r"\b[bcgs]|\(\*this\)|\bAll|\bLookUpOp|\bEmitIn|\bCallerOf|\bUnary"
NAMED = "Named(?:Const)?|Ask(?:Const)?|FilledLike|below"
# The name that a node is given is no op's either; a proto's op is emitted.
EMITS = re.compile(rf"(?:{EMITS}|\bSetNextName|\bset_op)$")


def _code(path):
    """The file's text with blanks for comments."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)


def sources(src):
    for path, _, names in os.walk(src):
        for name in sorted(names):
            if name.endswith(FREE) or name.startswith("test_"):
                continue
            if not name.endswith((".h", ".cc", ".cu", ".inc")):
                continue
            full = os.path.join(path, name)
            yield os.path.relpath(full, src).replace(os.sep, "/"), _code(full)


def _arguments(text, at):
    """The arguments of the call whose bracket opens before `at`."""
    parts, depth, quoted = [""], 0, False
    for i in range(at, len(text)):
        c = text[i]
        quoted ^= c == '"' and text[i - 1] != "\\"
        depth += (c in "([{") - (c in ")]}") if not quoted else 0
        if depth < 0:
            break
        if c == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def _replaced(body, given):
    """The macro's body with the arguments in place of its parameters."""
    body = re.sub(r"(?<!#)#(\w+)", lambda m: f'"{given.get(m[1], m[1])}"', body)
    return re.sub(r"\w+", lambda m: given.get(m[0], m[0]), body)


def _expanded(text, macros, depth=0):
    """`text` without definitions of macros, and behind it what their uses stand for."""
    text = MACRO.sub("\n", text)
    made = [text]
    for use in re.finditer(r"\b(\w+)\(", text):
        if use[1] not in macros or depth > 4:
            continue
        params, body = macros[use[1]]
        given = dict(zip(params, _arguments(text, use.end())))
        body = _replaced(body, given)
        made.append(_expanded(re.sub(r"\s*##\s*", "", body), macros, depth + 1))
    return "\n".join(made)


def _macros(text):
    found = {}
    for name, params, body in MACRO.findall(text):
        if name != "HR_OP" and re.search(r"HR_|OpBuilder|Op\(#", body):
            params = [p.strip() for p in params.split(",")]
            found[name] = params, body.replace("\\\n", "\n")
    return found


class Registered:
    """The ops that the sources under `src` register; `name in registered`."""

    def __init__(self, sources):
        self.of_file = {}  # the whole names
        self._parts = {}  # what names are put together from, but for versions
        self._attrs = {a for text in sources.values() for a in SPEC.findall(text)}
        everywhere, builders = {}, set()
        for path, text in sources.items():
            if path.endswith(".h"):
                everywhere.update(_macros(text))
                builders.update(BUILDER.findall(text))
        for path, text in sources.items():
            if path.endswith(".h"):
                continue
            full = _expanded(text, {**everywhere, **_macros(text)})
            if ROW.search(full) or re.search(
                r"\b(OpBuilder|OpRegistrar|TextOp)\b", full
            ):
                self._read(path, full, builders)

    def _read(self, path, text, builders):
        makes = "|".join(sorted(builders.union(BUILDER.findall(text))))
        makes = re.compile(rf"\b(?:OpBuilder(?: \w+)?|(?:{makes})(?:<[^<>]*>)?)\($")
        names, parts = set(ROW.findall(text)), set()
        for table in TEXTS.finditer(text):
            names.update(TEXT_ROW.findall(table[2]))
        built = re.search(r"\bOpBuilder \w+\((?!\")", text)
        for m in NAME.finditer(text):
            before = text[max(m.start() - 200, 0) : m.start()].rstrip()
            if makes.search(before):
                names.add(m[1])
            elif built and not (before[-1] in "({" and OTHER.search(before[:-1])):
                parts.add(m[1])
        self.of_file[path] = names
        self._parts[path] = parts - self._attrs

    def _defines(self, path, name):
        if name in self.of_file.get(path, ()):
            return True
        parts = self._parts.get(path, ())
        ends = {0}  # where parts that follow each other may end
        for i in range(1, len(name) + 1):
            if any(name[j:i] in parts for j in ends):
                ends.add(i)
        return any(re.fullmatch(r"(?:V\d)?", name[i:]) for i in ends - {0})

    def __contains__(self, name):
        return any(self._defines(path, name) for path in self.of_file)


def _in_named_call(text, at):
    """Whether the literal at `at` is of Named() or its kin of op/spelled_out.cc: its
    op, or the name of a node."""
    depth, i = 0, at - 1
    while i >= 0 and (depth or text[i] != "("):
        depth += (text[i] == ")") - (text[i] == "(")
        i -= 1
    return re.search(rf"\b(?:{NAMED})$", text[:i]) is not None


def _is_emitted(path, text, at):
    """Whether the literal at `at` is the op that a call or a row of a table names."""
    depth, i = 0, at - 1
    while i >= 0 and (depth or text[i] not in "({"):
        depth += (text[i] in ")}") - (text[i] in "({")
        i -= 1
    between = re.sub(r"\([^()]*\)", "", text[i + 1 : at]).strip()
    if between and not re.fullmatch(r'[^,]*\?(?:\s*"\w+"\s*:)?', between):
        return False
    if path in TABLES and text[i] == "{":
        return True
    return text[i] == "(" and EMITS.search(text[:i].rstrip()) is not None


def check(src):
    """Returns (how many ops are emitted by name, a text for each other literal)."""
    texts = dict(sources(src))
    registered, known = Registered(texts), {}
    emitted, faults = 0, []
    for path, text in texts.items():
        if not path.startswith(tuple(f"{room}/" for room in ROOMS)):
            continue
        for m in NAME.finditer(text):
            if m[1] not in known:
                known[m[1]] = m[1] in registered
            if not known[m[1]] or m[1] in registered.of_file.get(path, ()):
                continue
            named = _in_named_call(text, m.start())
            if (
                named
                or path.startswith(EMITTERS)
                and _is_emitted(path, text, m.start())
            ):
                emitted += 1
            else:
                faults.append((path, m, f'names the op "{m[1]}"'))
        for m in PART.finditer(text):
            if not known.get(m[1]):
                faults.append((path, m, f'asks an op\'s name for "{m[1]}"'))
    said = []
    for path, m, what in faults:
        line = texts[path].count("\n", 0, m.end()) + 1
        said.append(f"src/{path}:{line}: {what}")
    return emitted, said
