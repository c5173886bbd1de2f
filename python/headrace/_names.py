"""Reads api_names.txt and finds what its names stand for."""

import functools
import importlib
import os
import sys
from types import ModuleType

_HERE = os.path.dirname(__file__)
# The package that loads the engine when it is imported.
_ENGINE = "headrace.framework"


def load_engine():
    """Loads the engine, which every public name needs but those of tf.serving."""
    importlib.import_module(_ENGINE)


class Namespace(ModuleType):
    """A public namespace such as tf.math; its names are found on first use."""

    def __init__(self, name, rows):
        super().__init__(name, f"Public names of {name.replace('headrace', 'tf', 1)}.")
        self.__dict__["_rows"] = rows
        self.__dict__["__path__"] = []

    def __getattr__(self, name):
        return resolve(self, self.__dict__["_rows"], name)

    def __dir__(self):
        return _listed(self.__dict__["_rows"])

    # What `import *` and help() take, which would see names in use alone.
    __all__ = property(lambda self: without_private(dir(self)))


def without_private(names):
    """The names that do not begin with an underscore."""
    return [n for n in names if n[:1] != "_"]


def _listed(rows):
    """The names that rows have."""
    if "@" in rows:
        _share(rows, rows.pop("@"))
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


def text(path):
    """The rows of a file of the package's folder, without comments."""
    with open(os.path.join(_HERE, path), encoding="utf8") as f:
        return "".join(line for line in f if line[0] != "#")


def module(name):
    """The module that a table names, below the package: "keras.layer.core"."""
    if name.partition(".")[0] != "serving":
        load_engine()
    package = "headrace." + name.partition(".")[0]
    if package not in sys.modules:  # whole, also where a signal ended its import
        importlib.import_module(package)
    return importlib.import_module("headrace." + name)


def load(row):
    """The object of a row, "module:object"."""
    name, _, attribute = row.partition(":")
    return getattr(module(name), attribute)


def _share(rows, paths):
    """Adds to the rows of tf.compat.v1 the names in the files: those that are as they
    are in tf, and those that v1/table.py makes."""
    for path in paths.split(","):
        with open(os.path.join(_HERE, path), encoding="utf8") as f:
            for line in f:
                if line[0] in "#\n":
                    continue
                names, made, _ = line.strip().partition(" ")
                names = names.split(",")
                key = "v1.table:" + names[0].replace(".", "__")
                for name in names:
                    _add(rows, name, key if made else _target_of(name))


def _target_of(name):
    target = sys.modules["headrace"]._root
    for part in name.split("."):
        target = target.get(part, {}) if isinstance(target, dict) else {}
    return target


def _add(rows, name, target):
    *spaces, last = name.split(".")
    if isinstance(target, str):
        for space in spaces:
            rows = rows.setdefault(space, {})
        rows.setdefault(last, target)


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


def _rows_at(public):
    """The rows of a public namespace."""
    rows = sys.modules["headrace"]._root
    for space in public.split("."):
        rows = rows[space]
    return rows


def open_namespaces(prefix, rows):
    """Makes `from headrace.keras.layers import Dense` work."""
    for name, row in rows.items():
        full = f"{prefix}.{name}"
        if _is_itself(row):
            sys.modules[full] = _itself(row)
        elif isinstance(row, str) and row[0] == "=":
            _namespace(full, _rows_at(row[1:]))
        elif isinstance(row, dict):
            _namespace(full, row)
            open_namespaces(full, row)


def _is_itself(row):
    return row == "=" or isinstance(row, str) and row.startswith("==")


def _itself(row):
    """The namespace that a row "=" or "==compat.v1" says a name is."""
    name = row.lstrip("=")
    return sys.modules[f"headrace.{name}" if name else "headrace"]


def of_package(package):
    """The `__getattr__` of a package that is named like a public namespace."""

    def __getattr__(name):
        rows = sys.modules["headrace"]._root
        for space in package.split(".")[1:]:
            rows = rows[space]
        if name == "__all__":
            return without_private(_listed(rows))
        return resolve(sys.modules[package], rows, name)

    return __getattr__


# The rooms whose public functions make operations: they are handed out as functions
# that dispatchers may answer for.
DISPATCHED = (
    *(
        "ops.",
        "algorithms.",
        "ragged.",
        "imaging.",
        "v1.table:",
        "v1.files:",
        "io.parsing:",
    ),
    "framework.conversion:convert_to_tensor",
)
_dispatched = {}  # by row, so that aliases are one


_replaced = {}  # by row: what `replace` put in the place of an object


def _handed_out(row, value):
    if row in _replaced:
        return _replaced[row]
    if not row.startswith(DISPATCHED) or isinstance(value, type):
        return value
    native = sys.modules["headrace"]._load._headrace
    if not callable(value) or isinstance(value, native.DispatchedFunction):
        return value
    if row not in _dispatched:
        _dispatched[row] = native.dispatched(value, row)
    return _dispatched[row]


def replace(row, made):
    """From now on the public names of a row stand for `made`, other than for whom has
    what they stood for before."""
    old = _handed_out(row, load(row))
    _replaced[row] = made
    spaces = [sys.modules[name] for name in ("headrace", "headrace._api")]
    for space in spaces:  # grows by the namespaces that are found
        for name, value in list(vars(space).items()):
            if value is old:
                vars(space)[name] = made
            elif isinstance(value, Namespace) and value not in spaces:
                spaces.append(value)


def row_of(public):
    """What api_names.txt says of a name of a function ("math.add"), or None."""
    rows = sys.modules["headrace"]._root
    for part in public.split("."):
        rows = rows.get(part) if isinstance(rows, dict) else None
        if isinstance(rows, dict) and "@" in rows:
            _share(rows, rows.pop("@"))
    return rows if isinstance(rows, str) else None


def public(name):
    """The object of a public name: public("math.add") is tf.math.add."""
    found = sys.modules["headrace"]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def function_of_row(row):
    """The public function of a row, which pickles may have from older days."""
    row = sys.modules["headrace"]._moved.row_now(row)
    return _handed_out(row, load(row))


# Where the name that documentation gives first lies, of names in several places.
_FIRST = ("math", "", "nn", "linalg")
_FIRST_OF = {"softmax": "nn", "log_softmax": "nn", "matmul": "linalg"}


@functools.cache
def main_name(target):
    """Of the public names of what a row's target says the first: math.abs, not abs."""

    def rank(public):
        space, _, name = public.rpartition(".")
        if _FIRST_OF.get(name) == space:
            return -1
        if space in _FIRST:
            return _FIRST.index(space)
        return len(_FIRST) + space.startswith("compat.")

    return min(_names_of(target), key=rank, default=None)


def _names_of(target):
    def walk(rows, prefix):
        for name, row in rows.items():
            if isinstance(row, dict):
                yield from walk(row, f"{prefix}{name}.")
            elif row == target:
                yield prefix + name

    return walk(sys.modules["headrace"]._root, "")


@functools.cache
def _later_names():
    path = os.path.join(_HERE, "later_names.txt")
    with open(path, encoding="utf8") as f:
        rows = (line.strip().split(" ", 1) for line in f if line[0] not in "#\n")
        return dict(rows)


def later(full):
    """What is said of a name that is not there yet; None of other names."""
    public = full.partition(".")[2]
    for space in ("compat.v1.", "compat.v2."):
        public = public.removeprefix(space)
    rows = _later_names()
    name = public
    while name and name not in rows:
        name = name.rpartition(".")[0]
    if not name:
        begins = (row for row in rows if row[-1] == "*" and public.startswith(row[:-1]))
        name = next(begins, None)
    return f"tf.{public} is not supported: {rows[name]}" if name else None


class LaterNames:
    """Imports of such names fail with the same words: the last of the finders."""

    @staticmethod
    def find_spec(full, path=None, target=None):
        """None, or ImportError."""
        text = later(full) if full.startswith("headrace.") else None
        if text is None:
            return None
        # without its `name`, or `from ... import` would pass it over
        raise ModuleNotFoundError(text)


def resolve(holder, rows, name):
    """The object of `name`, kept in the holder from then on."""
    if "@" in rows:
        _share(rows, rows.pop("@"))
    target = rows.get(name)
    if target is None:
        fallback = rows.get("")
        known = later(f"{holder.__name__}.{name}") is None
        if fallback and known and not name.startswith("__"):
            return getattr(module(fallback), name)
        raise AttributeError(
            later(f"{holder.__name__}.{name}")
            or f"module '{holder.__name__}' has no attribute '{name}'",
            name=name,  # with these two Python tells names that are like it
            obj=holder,
        )
    if _is_itself(target):
        value = _itself(target)
    elif isinstance(target, str) and target[0] == "=":
        value = _namespace(f"{holder.__name__}.{name}", _rows_at(target[1:]))
    elif isinstance(target, dict):
        value = _namespace(f"{holder.__name__}.{name}", target)
    else:
        module_name, _, attribute = target.partition(":")
        value = module(module_name)
        for part in attribute.split(".") if attribute else ():
            value = getattr(value, part)
        value = _handed_out(target, value)
    holder.__dict__[name] = value
    return value
