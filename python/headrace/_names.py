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
        full = f"{holder.__name__}.{name}"
        value = Namespace(full, target)
        if not os.path.exists(os.path.join(_HERE, *full.split(".")[1:])):
            sys.modules.setdefault(full, value)
    else:
        module_name, _, attribute = target.partition(":")
        value = importlib.import_module("headrace." + module_name)
        for part in attribute.split(".") if attribute else ():
            value = getattr(value, part)
    holder.__dict__[name] = value
    return value
