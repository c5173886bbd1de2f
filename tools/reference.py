"""Writes the reference of the public names of Python and of the C++ headers, in Markdown.

Usage: PYTHONPATH=python python tools/reference.py FOLDER

FOLDER/index.md leads to a page a public namespace (FOLDER/python) and a page a header of
include/headrace (FOLDER/cc). What they say is what docstrings and comments say. A name
has its entry where it is shortest, as in the type stubs; its other names link there.
"""

import inspect
import os
import re
import shutil
import sys

import headers
import stubs
import surface

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include", "headrace")
MADE = "\n---\nMade by tools/reference.py.\n"


def escaped(line):
    """A line of text whose signs Markdown would take for its own; `code` stays."""
    parts = re.split(r"(`[^`]*`)", line)
    parts[::2] = [re.sub(r"([*<>\[\]_|\\])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def prose(text):
    """A docstring or comment: what is indented is code, the rest text."""
    lines, code = [], False
    rows = text.splitlines()
    for at, line in enumerate(rows):
        behind = next((r for r in rows[at:] if r.strip()), "")
        indented = re.match(r"  |>>> ", behind) is not None
        if indented and not code and line.strip():
            lines += ["", "```"]
        elif code and not indented:
            lines += ["```"] + ([""] if line.strip() else [])
        code = indented and (code or bool(line.strip()))
        lines.append(line if code else escaped(line).lstrip())
    return "\n".join(lines + ["```"] * code).strip() + "\n"


def fenced(code, language):
    return f"```{language}\n{code.strip()}\n```\n"


def anchor(name):
    return f'<a id="{name}"></a>'


def page_of(path):
    return f"tf.{path}.md" if path else "tf.md"


class Python(stubs.Writer):
    """The pages of the public namespaces."""

    def __init__(self, tf):
        super().__init__(tf)
        self.others = {}  # {id of an object: its names that are not its home}
        for path, space in self.spaces.items():
            for name in stubs.names_of(space):
                at = self.home.get(id(stubs.get(space, name)))
                if at and at != (path, name):
                    value = stubs.get(space, name)
                    full = ".".join(filter(None, ("tf", path, name)))
                    self.others.setdefault(id(value), []).append(full)

    def page(self, path):
        """The page of a namespace: its namespaces, classes, functions, values, aliases."""
        full = ("tf." + path).rstrip(".")
        sections = {"Namespaces": [], "Classes": [], "Functions": [], "Values": []}
        aliases = []
        for name in stubs.names_of(self.spaces[path]):
            value = stubs.get(self.spaces[path], name)
            at = self.home.get(id(value))
            if value is None:
                continue
            if stubs.is_namespace(value):
                known = self.space_at(path, name, value)
                sections["Namespaces"].append(self.link_line(name, known, ""))
            elif at and at != (path, name):
                aliases.append(self.link_line(name, *at))
            elif inspect.isclass(value):
                sections["Classes"].append(self.class_entry(full, name, value))
            elif callable(value):
                sections["Functions"].append(self.function_entry(full, name, value))
            else:
                sections["Values"].append(value_line(name, value))
        sections["Names of what has its entry elsewhere"] = aliases
        texts = [f"# {full}\n"]
        for title, entries in sections.items():
            if entries:
                texts += [f"\n## {title}\n", "\n".join(entries)]
        return "\n".join(texts) + MADE

    def link_line(self, name, path, last):
        full = ".".join(filter(None, ("tf", path, last)))
        target = f"{page_of(path)}#{last}" if last else page_of(path)
        return f"- {anchor(name)}`{name}`: [{full}]({target})"

    def function_entry(self, full, name, value):
        code = f"{full}.{name}{surface.parameters(value)}"
        about = prose(inspect.getdoc(value) or "")
        return "\n".join(
            (f"### {anchor(name)}{name}\n", fenced(code, "python"), about)
        ) + self.also(value)

    def also(self, value):
        names = self.others.get(id(value), [])
        return f"\nAlso {', '.join(f'`{n}`' for n in names)}.\n" if names else ""

    def class_entry(self, full, name, cls):
        bases, members = self.parts_of(cls)
        code = f"class {full}.{name}{surface.parameters(cls)}"
        texts = [f"### {anchor(name)}{name}\n", fenced(code, "python")]
        if bases:
            texts.append(f"A {' and a '.join(map(self.base_link, bases))}.\n")
        texts.append(prose(cls.__doc__ and inspect.getdoc(cls) or "") + self.also(cls))
        for member, held in members:
            # Operators need no entry; what makes an object is in `code`, mostly.
            unsaid = member == "__init__" and "(*args" in code
            if member[:2] != "__" or getattr(held, "__doc__", None) or unsaid:
                texts.append(member_entry(cls, name, member, held))
        return "\n".join(texts)

    def base_link(self, public):
        *path, name = public.split(".")[1:]
        return f"[tf.{'.'.join((*path, name))}]({page_of('.'.join(path))}#{name})"


def member_entry(cls, name, member, held):
    """A method or an attribute of a class."""
    function = getattr(held, "__func__", held)
    shown = f"{name}.{member}"
    if inspect.isroutine(function):
        shown += surface.parameters(function)
    about = inspect.getdoc(getattr(cls, member, held)) if documented(held) else ""
    if member[:2] == "__" and not function.__doc__:
        about = ""  # not what object says of all
    return f"#### {anchor(f'{name}.{member}')}`{shown}`\n\n{prose(about or '')}"


def documented(held):
    """Whether a member has words of its own: the attributes that are plain values have
    those of their types."""
    return inspect.isroutine(
        getattr(held, "__func__", held)
    ) or inspect.isdatadescriptor(held)


def value_line(name, value):
    text = " ".join(repr(value).split())
    told = f" = `{text}`" if len(text) < 80 and " at 0x" not in text else ""
    return f"- {anchor(name)}`{name}`{told}, a {type(value).__name__}"


# --- C++.


def header_page(path, include):
    """The page of a header: its head comment, then its classes and functions."""
    with open(os.path.join(INCLUDE, path), encoding="utf-8") as file:
        head, entries = headers.read(file.read())
    texts = [f"# headrace/{path}\n", prose(head), fenced(include, "cpp")]
    seen = set()
    for entry in entries:
        names = [n for n in dict.fromkeys(entry.names) if n not in seen]
        seen.update(names)
        texts += [
            f"## {''.join(map(anchor, names))}{escaped(entry.title)}\n",
            prose(entry.comment),
            fenced(entry.code, "cpp"),
        ]
    return "\n".join(texts) + MADE


def header_paths():
    found = []
    for at, _, files in os.walk(INCLUDE):
        found += [os.path.relpath(os.path.join(at, f), INCLUDE) for f in files]
    return sorted(path for path in found if path.endswith(".h"))


# --- All of it.


def index(python, paths):
    lines = ["# Reference\n", "## Python\n"]
    for path in sorted(python.spaces):
        names = len(stubs.names_of(python.spaces[path]))
        full = ("tf." + path).rstrip(".")
        lines.append(f"- [{full}](python/{page_of(path)}): {names} names")
    lines += ["\n## C++\n"]
    for path in paths:
        with open(os.path.join(INCLUDE, path), encoding="utf-8") as file:
            head, _ = headers.read(file.read())
        first = escaped(" ".join(head.split("\n\n")[0].split()))
        lines.append(f"- [headrace/{path}](cc/{path}.md): {first}")
    return "\n".join(lines) + "\n" + MADE


def write(tf, folder):
    """All pages, in a folder that holds nothing else afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    python, paths = Python(tf), header_paths()
    pages = {"index.md": index(python, paths)}
    for path in python.spaces:
        pages[f"python/{page_of(path)}"] = python.page(path)
    for path in paths:
        pages[f"cc/{path}.md"] = header_page(path, f"#include <headrace/{path}>")
    for name, text in pages.items():
        at = os.path.join(folder, name)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        with open(at, "w", encoding="utf-8") as file:
            file.write(re.sub(r"\n{3,}", "\n\n", text))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    import headrace as tf

    write(tf, sys.argv[1])


if __name__ == "__main__":
    main()
