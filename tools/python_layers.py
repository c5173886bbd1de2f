"""What the Python package's modules import, for check_layers.py.

An arrow leads from a module to one that it imports, also by a public name (`tf.math.add`
of `from headrace import _api as tf` leads to the module that api_names.txt names).
"""

import ast
import collections
import os

PACKAGE = "headrace"
Arrow = collections.namedtuple("Arrow", "module line target inside")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def modules_of(root):
    """{dotted name below the package: path} of all modules; "" is the package itself."""
    found = {}
    for path, _, names in os.walk(root):
        for name in sorted(names):
            if name.endswith(".py"):
                full = os.path.join(path, name)
                parts = os.path.relpath(full, root)[:-3].split(os.sep)
                found[".".join(p for p in parts if p != "__init__")] = full
    return found


class PublicNames:
    """What the rows of api_names.txt say of names, for arrows by public names."""

    def __init__(self, root):
        self._rows, self._of_v1 = {}, set()
        for words in _lines(os.path.join(root, "api_names.txt")):
            name, target = words
            if name.endswith(".@"):
                for file in target.split(","):
                    self._read_v1(os.path.join(root, file))
            else:
                self._rows[name] = target.partition(":")[0]
        names = [*self._rows, *(f"compat.v1.{name}" for name in self._of_v1)]
        self._spaces = {n[:i] for n in names for i, c in enumerate(n) if c == "."}

    def _read_v1(self, path):
        for names, *made in _lines(path):
            for name in names.split(","):
                if made:
                    self._rows.setdefault(f"compat.v1.{name}", "v1.table")
                else:
                    self._of_v1.add(name)

    def module(self, parts):
        """The module behind the attributes `parts` of tf; None where no row says it."""
        name = ""
        for part in parts:
            name = f"{name}.{part}".lstrip(".")
            found = self._row(name)
            if found is not None:
                return found if found[:1] != "=" else self._aliased(found, parts, name)
            if name not in self._spaces:
                return self._rows.get(f"{name.rpartition('.')[0]}.*")
        return None

    def _row(self, name):
        if name.startswith("compat.v1.") and name not in self._rows:
            rest = name.removeprefix("compat.v1.")
            return self._rows.get(rest) if rest in self._of_v1 else None
        return self._rows.get(name)

    def _aliased(self, row, parts, name):
        behind = parts[name.count(".") + 1 :]
        return self.module([*row[1:].split("."), *behind] if row[1:] else behind)


def _lines(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and line[0] != "#":
                yield line.split()


class Imports(ast.NodeVisitor):
    """The arrows of one module, and the other modules that its functions import."""

    def __init__(self, module, path, modules, public):
        self.arrows, self.foreign_inside, self.faults = [], [], []
        self._module, self._modules, self._public = module, modules, public
        is_package = path.endswith("__init__.py")
        self.folder = module if is_package else module.rpartition(".")[0]
        self._depth = 0
        self._apis = set()
        with open(path, encoding="utf-8") as file:
            self.visit(ast.parse(file.read()))

    def generic_visit(self, node):
        self._depth += isinstance(node, FUNCTIONS)
        super().generic_visit(node)
        self._depth -= isinstance(node, FUNCTIONS)

    def visit_Import(self, node):
        for name in node.names:
            self._add(node, name.name)

    def visit_ImportFrom(self, node):
        base = node.module or ""
        if node.level:
            above = f"{PACKAGE}.{self.folder}".split(".")
            above = above[: len(above) - node.level + 1]
            base = ".".join([*above, base]).rstrip(".")
        for name in node.names:
            below = f"{base}.{name.name}"
            if below == f"{PACKAGE}._api":
                self._apis.add(name.asname or name.name)
            is_module = below.removeprefix(PACKAGE + ".") in self._modules
            self._add(node, below if is_module else base)

    def _add(self, node, full):
        first, _, below = full.partition(".")
        if first == PACKAGE:
            arrow = Arrow(self._module, node.lineno, below, self._depth > 0)
            self.arrows.append(arrow)
        elif self._depth:
            self.foreign_inside.append((node.lineno, full))

    def visit_Attribute(self, node):
        parts, at = [], node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self._apis:
            self._by_public_name(node, parts[::-1])
        else:
            self.generic_visit(node)

    def visit_Name(self, node):
        if node.id in self._apis:
            self._fault(node, f"which names of {node.id} are used cannot be told")

    def _by_public_name(self, node, parts):
        target = self._public.module(parts)
        if target is None:
            self._fault(node, f"tf.{'.'.join(parts)} is no name with a row")
        else:
            arrow = Arrow(self._module, node.lineno, target, False)
            self.arrows.append(arrow)

    def visit_Call(self, node):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("import_module", "__import__"):
            self._by_text(node)
        elif name == "public" and isinstance(node.args[0], ast.Constant):
            self._by_public_name(node, node.args[0].value.split("."))
        self.generic_visit(node)

    def _by_text(self, node):
        """import_module: its text has to begin with the folder that it looks in."""
        text = node.args[0]
        while isinstance(text, (ast.BinOp, ast.JoinedStr)):
            text = text.left if isinstance(text, ast.BinOp) else text.values[0]
        begin = text.value if isinstance(text, ast.Constant) else ""
        first, _, below = begin.partition(".")
        if first == PACKAGE and "." in below + ".":
            below = below.rstrip(".")
            if below:
                self._add(node, f"{PACKAGE}.{below}")
                return
        self._fault(node, "import_module of a name that cannot be told")

    def _fault(self, node, text):
        self.faults.append((node.lineno, text))


def walk(root):
    """[Imports] of all modules, by name."""
    modules, public = modules_of(root), PublicNames(root)
    known = {*modules, "_headrace"}  # with the extension module
    return {m: Imports(m, path, known, public) for m, path in modules.items()}


def room(module):
    """The package or top-level module that a module is part of; "" is the facade."""
    return module.split(".")[0]


def folder_cycles(walked):
    """Sorted tuples of folders whose modules import each other, roundabout or not."""
    packages = {imports.folder for imports in walked.values()}
    below = collections.defaultdict(set)
    for module, imports in walked.items():
        here = imports.folder
        for arrow in imports.arrows:
            below[here].add(_folder(arrow.target, packages))
    return cycles(below)


def cycles(below):
    """Sorted tuples of folders that reach each other; `below`: {folder: folders}."""
    reached = {folder: _reached(folder, below) for folder in list(below)}
    found = set()
    for folder, others in reached.items():
        ring = {o for o in others if folder in reached.get(o, ())} | {folder}
        if folder and len(ring) > 1:
            found.add(tuple(sorted(ring - {""})))
    return sorted(found)


def _folder(module, packages):
    return module if module in packages else module.rpartition(".")[0]


def _reached(folder, below):
    found, todo = set(), [folder]
    while todo:
        for other in below.get(todo.pop(), ()):
            if other and other not in found:
                found.add(other)
                todo.append(other)
    return found - {folder}
