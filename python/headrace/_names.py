"""Reads api_names.txt and finds what its names stand for."""

import importlib
import os
import sys
from types import ModuleType

_HERE = os.path.dirname(__file__)


class Namespace(ModuleType):
    """A public namespace such as tf.math; its names are found on first use."""

    def __init__(self, name, rows):
        super().__init__(name)
        self.__dict__["_rows"] = rows
        self.__dict__["__path__"] = []

    def __getattr__(self, name):
        return resolve(self, self.__dict__["_rows"], name)

    def __dir__(self):
        rows = self.__dict__["_rows"]
        names = {n for n in rows if n}
        if "" in rows:
            names |= set(dir(importlib.import_module("headrace." + rows[""])))
        return sorted(names)


def read(path):
    """{name: 'module:object' or {...}} of all rows."""
    root = {}
    with open(path, encoding="utf8") as f:
        for line in f:
            if line[0] in "#\n":
                continue
            public, target = line.split()
            at = root
            *spaces, name = public.split(".")
            for space in spaces:
                at = at.setdefault(space, {})
            if name == "*":
                at[""] = target  # a module that answers for the rest
            else:
                at[name] = target
    return root


def _is_module(full):
    """True where Python has a module or package of its own under that name."""
    path = os.path.join(_HERE, *full.split(".")[1:])
    return os.path.isdir(path) or os.path.exists(path + ".py")


def _namespace(full, rows):
    """The namespace, which imports find too where Python has no such module."""
    if _is_module(full):
        return Namespace(full, rows)
    if full not in sys.modules:
        sys.modules[full] = Namespace(full, rows)
    return sys.modules[full]


def open_namespaces(prefix, rows):
    """Makes `from headrace.keras.layers import Dense` work."""
    for name, row in rows.items():
        if isinstance(row, dict):
            full = f"{prefix}.{name}"
            _namespace(full, row)
            open_namespaces(full, row)


def of_package(package):
    """The `__getattr__` of a package that is named like a public namespace."""

    def __getattr__(name):
        rows = sys.modules["headrace"]._root
        for space in package.split(".")[1:]:
            rows = rows[space]
        return resolve(sys.modules[package], rows, name)

    return __getattr__


def resolve(holder, rows, name):
    """The object of `name`, kept in the holder from then on."""
    target = rows.get(name)
    if target is None:
        fallback = rows.get("")
        if fallback and not name.startswith("__"):
            module = importlib.import_module("headrace." + fallback)
            return getattr(module, name)
        raise AttributeError(f"module '{holder.__name__}' has no attribute '{name}'")
    if isinstance(target, dict):
        value = _namespace(f"{holder.__name__}.{name}", target)
    else:
        module_name, _, attribute = target.partition(":")
        value = importlib.import_module("headrace." + module_name)
        for part in attribute.split(".") if attribute else ():
            value = getattr(value, part)
    holder.__dict__[name] = value
    return value
