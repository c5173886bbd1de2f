"""What TensorFlow answers to statements, kept in tests/golden/sessions.

A file there reads like a session of Python's: statements behind ">>>" and "...", below each
what TensorFlow gave, an error as its class and text. A line "## title" begins anew, with the
statements above the first title as its first ones. `python sessions.py NAME`, run by a Python
with TensorFlow (and TF_USE_LEGACY_KERAS=1), writes the answers; `check` compares them
with headrace's.
"""

import ast
import pathlib
import re
import sys

import numpy as np
import printed

FOLDER = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "sessions"


def _sections(name):
    """{title: statements}; the title of those for all is ""."""
    found, title = {"": []}, ""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        if line.startswith("## "):
            title = line[3:]
            found[title] = []
        elif line.startswith(">>> "):
            found[title].append(line[4:])
        elif line.startswith("..."):
            found[title][-1] += "\n" + line[4:]
    return found


def titles(name):
    return [title for title in _sections(name) if title]


def _plain(text):
    """The text without what differs from run to run and from package to package."""
    text = re.sub(r"0x[0-9a-fA-F]{6,}", "0x1", text)
    return re.sub(r"\b(headrace|tensorflow)(\.\w+)*\.(?=\w)", "tf.", text)


def _answer(statement, names):
    lines = []

    def show(*values):
        lines.extend(map(str, values))

    names["print"] = show
    try:
        (node,) = ast.parse(statement).body
        if isinstance(node, ast.Expr):
            value = eval(compile(statement, "<session>", "eval"), names)
            if value is not None:
                lines.append(repr(value))
        else:
            exec(compile(statement, "<session>", "exec"), names)
    except Exception as error:
        lines.append(f"{type(error).__name__}: {error}")
    return _plain("\n".join(lines))


def _run(statements, tf, begin=()):
    """The session as text."""
    names = {"tf": tf, "np": np, "__name__": "__main__"}
    for statement in begin:
        _answer(statement, names)
    out = []
    for statement in statements:
        out.append(">>> " + statement.replace("\n", "\n... "))
        answer = _answer(statement, names)
        # No line of an answer looks like one of the file's own.
        out += [" " + line for line in answer.splitlines()]
    return "\n".join(out) + "\n"


def write(name, tf):
    sections = _sections(name)
    begin = sections.pop("")
    text = _run(begin, tf)
    for title, statements in sections.items():
        text += f"\n## {title}\n" + _run(statements, tf, begin)
    (FOLDER / f"{name}.txt").write_text(text)


_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


def _alike(line, wanted):
    """Equal but for the last place of numbers, which is the processor's matter.

    (Loops for AVX2 and for AVX-512 round some functions' results otherwise.)
    """
    if line == wanted:
        return True
    pairs = printed.differing(line, wanted, _NUMBER)
    return pairs is not None and all(abs(a - b) <= 2e-7 * abs(b) for a, b in pairs)


def check(name, title, tf):
    """Compares the answers of one section."""
    sections = _sections(name)
    text = (FOLDER / f"{name}.txt").read_text()
    wanted = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found = _run(sections[title], tf, sections[""])
    lines = found.rstrip("\n").splitlines(), wanted.rstrip("\n").splitlines()
    assert len(lines[0]) == len(lines[1]), found
    for line, other in zip(*lines):
        assert _alike(line, other), f"{line}\nis not\n{other}"


if __name__ == "__main__":
    import tensorflow

    write(sys.argv[1], tensorflow)
