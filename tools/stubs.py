"""Writes type stubs of all public names, so that editors complete and check calls.

Usage: PYTHONPATH=python python tools/stubs.py FOLDER

FOLDER, usually python/headrace-stubs, becomes a stub package (PEP 561): one __init__.pyi
a public namespace. Public names are found when they are first used, by tables, so type
checkers could not see them. An object is written where its name is shortest, its other
names import it from there. Parameters are those that calls are checked against, defaults
are literals or an ellipsis; results are typed where an op or an annotation says them.
"""

import inspect
import keyword
import math
import os
import shutil
import sys
import textwrap
from types import FunctionType, ModuleType

HEAD = '''"""{about} Made by tools/stubs.py."""

import builtins as _py
from typing import Any as _Any

import headrace as _tf

'''
# Methods that the language calls and that users see by operators.
_OPERATORS = {
    "__init__", "__call__", "__getitem__", "__setitem__", "__delitem__", "__len__",
    "__iter__", "__next__", "__contains__", "__enter__", "__exit__", "__bool__",
    "__int__", "__float__", "__index__", "__array__", "__eq__", "__ne__", "__hash__",
    *(f"__{r}{name}__" for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or",
        "xor") for r in ("", "r")),
    "__neg__", "__abs__", "__invert__", "__lt__", "__le__", "__gt__", "__ge__",
}  # fmt: skip
# What operators and such methods give, whatever the class.
_RESULTS = {
    "__init__": "None", "__len__": "_py.int", "__bool__": "_py.bool", "__int__": "_py.int",
    "__float__": "_py.float", "__index__": "_py.int", "__hash__": "_py.int", "__contains__": "_py.bool",
    "__setitem__": "None", "__delitem__": "None",
}  # fmt: skip


def is_namespace(value):
    return isinstance(value, ModuleType) or type(value).__name__ == "_Package"


def namespaces(tf):
    """{dotted path below tf: namespace}, "" for tf itself."""
    from headrace import _names

    found = {}

    def walk(space, path):
        found[path] = space
        for name in names_of(space):
            value = get(space, name)
            if isinstance(value, _names.Namespace):
                below = f"{path}.{name}" if path else name
                # Second names of a namespace import it.
                if value.__name__ == f"headrace.{below}":
                    walk(value, below)

    walk(tf, "")
    return found


def names_of(space):
    names = [n for n in dir(space) if n.isidentifier() and not n.startswith("_")]
    return [n for n in names if not keyword.iskeyword(n)]


def get(space, name):
    try:
        return getattr(space, name)
    except (AttributeError, ImportError):
        return None  # of an optional package that is not installed


def homes(spaces):
    """{id of an object: (path, name)}, the shortest there is and no old one if it can be
    helped, and the objects, which keep the ids their own."""
    home, kept = {}, []
    order = sorted(
        spaces, key=lambda p: ("compat" in p, "experimental" in p, len(p), p)
    )
    for path in order:
        for name in names_of(spaces[path]):
            value = get(spaces[path], name)
            if value is None or is_namespace(value):
                continue
            if isinstance(value, (bool, int, float, str, tuple, list)):
                continue
            if id(value) not in home:
                home[id(value)] = path, name
                kept.append(value)
    return home, kept


class Writer:
    """The stubs of one tree of namespaces."""

    def __init__(self, tf):
        self.tf = tf
        self.spaces = namespaces(tf)
        self.home, self._kept = homes(self.spaces)

    def write(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for path in self.spaces:
            at = os.path.join(folder, *filter(None, path.split(".")))
            os.makedirs(at, exist_ok=True)
            with open(os.path.join(at, "__init__.pyi"), "w", encoding="utf-8") as file:
                file.write(self.stub(path))

    def stub(self, path):
        full = ("tf." + path).rstrip(".")
        lines = [HEAD.format(about=f"Stubs of {full}.")]
        for name in names_of(self.spaces[path]):
            value = get(self.spaces[path], name)
            if value is not None:
                lines.append(self.member(path, name, value))
        return "".join(lines)

    def member(self, path, name, value):
        if is_namespace(value):
            below = f"{path}.{name}" if path else name
            known = self.space_at(path, name, value)
            if known == below:
                return f"from headrace{'.' + path if path else ''} import {name} as {name}\n"
            if known is not None:
                if not known:
                    return f"import headrace as {name}\n"
                parent, _, last = known.rpartition(".")
                source = f"headrace.{parent}" if parent else "headrace"
                return f"from {source} import {last} as {name}\n"
            return f"{name}: _Any\n"
        at = self.home.get(id(value))
        if at and at != (path, name):
            source = f"headrace.{at[0]}" if at[0] else "headrace"
            return f"from {source} import {at[1]} as {name}\n"
        if inspect.isclass(value):
            return self.class_stub(name, value)
        if callable(value):
            return self.function(name, value, "")
        return f"{name}: {self.type_of(value)}\n"

    def space_at(self, path, name, value):
        """The path of the namespace that a name is, its own or another's; or None."""
        below = f"{path}.{name}" if path else name
        known = value.__name__.removeprefix("headrace").lstrip(".")
        return next((p for p in (below, known) if p in self.spaces), None)

    def type_of(self, value):
        """An annotation for a constant or an object."""
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return "None" if value is None else f"_py.{type(value).__name__}"
        return self.named(type(value)) or "_Any"

    def named(self, cls):
        """The public name of a class, or None."""
        at = self.home.get(id(cls))
        return ".".join(filter(None, ("_tf", *at))) if at else None

    # --- Functions.

    def function(self, name, value, indent, kind="", result=None):
        parameters, annotated = signature(value, kind)
        result = result or annotated or self.result_of(value) or "_Any"
        decorator = (
            f"{indent}@{kind}\n" if kind in ("staticmethod", "classmethod") else ""
        )
        head = f"{decorator}{indent}def {name}({parameters}) -> {result}:"
        return head + documented(value, indent + "    ")

    def result_of(self, value):
        """What the outputs of a function's one op say."""
        from headrace._load import _headrace
        from headrace.framework.support import protos

        op = getattr(inspect.unwrap(value), "op_name", None)
        if op is None:
            return None
        outputs = protos.OpDef.FromString(_headrace.export_op_named(op)).output_arg
        if len(outputs) != 1 or outputs[0].type_list_attr:
            return None
        return "list[_tf.Tensor]" if outputs[0].number_attr else "_tf.Tensor"

    # --- Classes.

    def parts_of(self, cls):
        """(public names of the bases, [(name, member)]): what a class has beyond them."""
        bases, hidden = [], []
        for base in cls.__mro__[1:]:
            public = self.named(base)
            if public and not any(issubclass(b, base) for b, _ in bases):
                bases.append((base, public))
            elif not bases and base is not object:
                hidden.append(base)
        own = {}
        for source in (*reversed(hidden), cls):
            own.update(vars(source))
        # (A __hash__ of None says that there is none.)
        kept = [
            (n, v) for n, v in own.items() if shown(n) and (v, n[:2]) != (None, "__")
        ]
        return [public for _, public in bases], kept

    def class_stub(self, name, cls):
        names, kept = self.parts_of(cls)
        if not names and issubclass(cls, BaseException):
            names = ["_py.Exception"]
        head = f"class {name}({', '.join(names)}):" if names else f"class {name}:"
        body = [self.attribute(cls, n, v) for n, v in kept]
        about = summary(cls)
        if about:
            body.insert(0, f'    """{about}"""\n')
        return head + ("\n" + "".join(body) if body else " ...\n")

    def attribute(self, cls, name, value):
        indent = "    "
        if isinstance(value, staticmethod):
            return self.function(name, value.__func__, indent, "staticmethod")
        if isinstance(value, classmethod):
            return self.function(name, value.__func__, indent, "classmethod")
        if isinstance(value, property) or inspect.isdatadescriptor(value):
            text = f"{indent}@property\n{indent}def {name}(self) -> _Any:"
            return text + documented(value, indent * 2)
        if inspect.isclass(value):
            return f"{indent}{name}: _Any\n"
        if callable(value):
            return self.function(name, value, indent, "method", _RESULTS.get(name))
        kind = self.named(cls) if isinstance(value, cls) else self.type_of(value)
        return f"{indent}{name}: {kind or '_Any'}\n"


def shown(name):
    return name in _OPERATORS or not (name.startswith("_") or keyword.iskeyword(name))


def summary(value):
    """The first paragraph of what a name says of itself."""
    text = inspect.getdoc(value) if value is not None else None
    if not text or value.__doc__ is None:
        return ""
    text = text.split("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return text + " " if text.endswith('"') else text


def documented(value, indent):
    about = summary(value)
    if not about:
        return " ...\n"
    return f"\n{textwrap.indent(chr(34) * 3 + about + chr(34) * 3, indent)}\n"


def signature(value, kind):
    """(parameters, annotation of the result or None)."""
    own = "self, " if kind == "method" else "cls, " if kind == "classmethod" else ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{own}*args: _Any, **kwargs: _Any", None
    parts, star, slash = [], False, False
    items = list(found.parameters.values())
    if kind == "method" and items and items[0].kind < 2:
        parts.append("self")
        items = items[1:]
    elif kind == "classmethod" and items:
        parts.append("cls")
        items = items[1:]
    elif kind == "method" and not isinstance(value, FunctionType):
        parts.append("self")
    optional = False
    for p in items:
        if keyword.iskeyword(p.name):
            return f"{own}*args: _Any, **kwargs: _Any", None
        if slash and p.kind != p.POSITIONAL_ONLY:
            parts.append("/")
            slash = False
        if p.kind == p.POSITIONAL_ONLY:
            slash = True
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star |= p.kind == p.VAR_POSITIONAL
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        text += f": {annotation(p)}"
        if p.default is not p.empty:
            text += f" = {literal(p.default)}"
            optional = True
        elif optional and p.kind < 2:
            text += " = ..."
        parts.append(text)
    if slash:
        parts.append("/")
    given = found.return_annotation
    plain = given in (bool, int, float, str, bytes, None)
    result = (f"_py.{given.__name__}" if given else "None") if plain else None
    return ", ".join(parts), result


def annotation(parameter):
    if parameter.name == "name" and parameter.default is None:
        return "_py.str | None"
    if isinstance(parameter.default, bool):
        return "_Any" if parameter.kind == parameter.VAR_KEYWORD else "_py.bool | _Any"
    return "_Any"


def literal(value):
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return "..."


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    import headrace as tf

    Writer(tf).write(sys.argv[1])


if __name__ == "__main__":
    main()
