"""Which names code reads and writes."""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def composite(node):
    """ "a.b", "a.b[0]" or "a[k]" for attributes of names, and for elements at constants,
    names and their attributes; else None."""
    base = node
    while isinstance(base, (ast.Attribute, ast.Subscript)):
        if isinstance(base, ast.Subscript) and not (
            isinstance(base.slice, (ast.Constant, ast.Name)) or composite(base.slice)
        ):
            return None
        base = base.value
    if not isinstance(base, ast.Name) or base is node:
        return None
    return ast.unparse(node)


def last_name(node):
    """ "c" of the expressions c and a.b.c, "" of others."""
    return getattr(node, "attr", None) or getattr(node, "id", "")


def root(name):
    """The name that a composite one begins with: "a" of "a.b[0]"."""
    return name.partition(".")[0].partition("[")[0]


def roots(name):
    """The names that a composite one stands on: {"a", "k"} of "a.b[k]"."""
    return {n.id for n in ast.walk(ast.parse(name)) if isinstance(n, ast.Name)}


class Names(ast.NodeVisitor):
    """The names in statements or expressions of one function.

    Attributes:
      reads, writes: names that are read and bound, those of nested functions left out.
      composites: attributes and elements that are assigned, "a.b" or "a[0]".
      captured: names that nested functions read or write whenever they are called.
      rebound: {nested function's name: names of this one that it binds (nonlocal)}.
      declared: names in statements `global` and `nonlocal`.
    """

    def __init__(self, *nodes):
        self.reads, self.writes, self.composites = set(), set(), set()
        self.captured, self.globals, self.nonlocals = set(), set(), set()
        self.rebound = {}
        for node in nodes:
            for n in node if isinstance(node, list) else [node]:
                self.visit(n)

    declared = property(lambda self: self.globals | self.nonlocals)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.reads.add(node.id)
        else:
            self.writes.add(node.id)

    def _visit_place(self, node):
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            name = composite(node)
            if name is not None:
                self.composites.add(name)

    visit_Attribute = visit_Subscript = _visit_place

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)

    def visit_AnnAssign(self, node):
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Global(self, node):
        self.globals |= set(node.names)

    def visit_Nonlocal(self, node):
        self.nonlocals |= set(node.names)

    def _visit_import(self, node):
        for alias in node.names:
            self.writes.add(alias.asname or alias.name.partition(".")[0])

    visit_Import = visit_ImportFrom = _visit_import

    def visit_ExceptHandler(self, node):
        # `as e` is unbound again behind the handler.
        for part in (*([node.type] if node.type else ()), *node.body):
            self.visit(part)

    def _visit_pattern(self, node):
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self.writes.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _visit_pattern

    def _visit_inner(self, inner, own):
        free = (inner.reads | inner.captured) - own - inner.globals
        self.reads |= free
        self.captured |= free | inner.nonlocals

    def visit_FunctionDef(self, node):
        for part in (*node.decorator_list, *_defaults(node)):
            self.visit(part)
        inner = Names(node.body)
        own = (inner.writes | parameters(node)) - inner.nonlocals
        self._visit_inner(inner, own)
        self.writes.add(node.name)
        if inner.nonlocals:
            self.rebound[node.name] = set(inner.nonlocals)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for part in _defaults(node):
            self.visit(part)
        self._visit_inner(Names(node.body), parameters(node))

    def visit_ClassDef(self, node):
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        inner = Names(node.body)
        self.reads |= inner.reads
        self.captured |= inner.captured
        self.writes.add(node.name)

    def _visit_comprehension(self, node):
        inner = Names()
        inner.generic_visit(node)
        own = Names(*(g.target for g in node.generators)).writes
        self.reads |= inner.reads - own
        self.captured |= inner.captured - own
        self.writes |= inner.writes - own  # a walrus binds in the function

    visit_ListComp = visit_SetComp = visit_DictComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension


def parameters(node):
    """The names of a function's parameters."""
    a = node.args
    found = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
    return {x.arg for x in found if x is not None}


def first_parameter(node):
    """The name of a function's first parameter by position, or None."""
    found = [*node.args.posonlyargs, *node.args.args]
    return found[0].arg if found else None


def _defaults(node):
    return [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]


def local_to(nodes, types):
    """All nodes of these types, those in nested functions and classes left out."""
    found = []
    for node in nodes:
        if isinstance(node, types):
            found.append(node)
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            found += local_to(ast.iter_child_nodes(node), types)
    return found


_BLOCKS = {
    ast.If: ("body", "orelse"),
    ast.For: ("body", "orelse"),
    ast.While: ("body", "orelse"),
    ast.With: ("body",),
    ast.Try: ("body", "orelse", "finalbody"),
    ast.TryStar: ("body", "orelse", "finalbody"),
}


def blocks(node):
    """(holder, name of its field) of each list of statements in a statement, those of
    nested functions and classes left out."""
    for field in _BLOCKS.get(type(node), ()):
        yield node, field
    for part in getattr(node, "handlers", None) or getattr(node, "cases", ()):
        yield part, "body"


def statements(body, types):
    """All statements of these types in a block and in the blocks of its statements."""
    found = []
    for node in body:
        if isinstance(node, types):
            found.append(node)
        for holder, field in blocks(node):
            found += statements(getattr(holder, field), types)
    return found


def carried(body):
    """{variable: names that the functions in its value use when they are called}.

    What a call gives is not taken for a function, unless it is functools.partial's.
    """
    rows = []  # (variables, names that their value reads, names that it captures)
    for node in statements(body, ast.stmt):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            rows.append(({node.name}, set(), Names(node).captured))
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            rows.append((Names(node).writes, *_handed_on(node)))
        elif isinstance(node, ast.For):
            rows.append((Names(node.target).writes, *_handed_on(node.iter)))
    found = {}
    grows = True
    while grows:
        grows = False
        for variables, reads, captured in rows:
            names = captured.union(*(found.get(r, ()) for r in reads))
            for v in variables:
                if not names <= found.setdefault(v, set()):
                    found[v] |= names
                    grows = True
    return found


def _handed_on(node):
    """(names that are read, names that lambdas capture) where a value may be a function
    that holds on to them."""
    if isinstance(node, ast.Name):
        return {node.id}, set()
    if isinstance(node, ast.Lambda):
        return set(), Names(node).captured
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        is_partial = last_name(node.func).endswith("partial")
        parts = [p for p in parts if is_partial and p is not node.func]
    reads, captured = set(), set()
    for part in parts:
        more = _handed_on(part)
        reads |= more[0]
        captured |= more[1]
    return reads, captured
