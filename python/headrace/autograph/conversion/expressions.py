"""Expressions that can meet tensors, as calls of operators (`ag__`)."""

import ast

from headrace.autograph.conversion.names import local_to

_PLAIN_CALLS = ("print", "breakpoint")  # called as they stand
_LAZY = {ast.And: "and_", ast.Or: "or_"}
_EQUALITY = {ast.Eq: "eq", ast.NotEq: "not_eq"}


def of_operators(name):
    """The node of ag__.name."""
    return ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())


def operator(name, *args):
    """The node of ag__.name(*args)."""
    return ast.Call(of_operators(name), [*args], [])


def _is_operator(func):
    is_attribute = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
    return is_attribute and func.value.id == "ag__"


def thunk(body):
    """lambda: body"""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def _binds(*nodes):
    """True where a walrus binds a name: a thunk would keep that name to itself."""
    return bool(local_to(nodes, ast.NamedExpr))


class Expressions(ast.NodeTransformer):
    """Converts the expressions of one function.

    `scope` is the name of the function's scope object, `features` the optional parts
    that are on (they have `uses(name)`), `first_parameter` what `super()` is about.
    Reads of names in `assigned` are checked; None: all reads.
    """

    def __init__(self, scope, features, first_parameter, assigned=None):
        self._scope = scope
        self._features = features
        self._first = first_parameter
        self._assigned = assigned

    def visit(self, node):
        new = super().visit(node)
        if new is not node and isinstance(new, ast.AST):
            ast.copy_location(new, node)
        return new

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load) or hasattr(node, "is_flag"):
            return node
        if self._assigned is not None and node.id not in self._assigned:
            return node
        return operator("ld", node)

    def visit_BoolOp(self, node):
        parts = [self.visit(v) for v in node.values]
        if _binds(*node.values):
            return ast.BoolOp(node.op, parts)
        made = parts.pop()
        while parts:
            made = operator(_LAZY[type(node.op)], thunk(parts.pop()), thunk(made))
        return made

    def visit_UnaryOp(self, node):
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return operator("not_", operand)
        return ast.UnaryOp(node.op, operand)

    def visit_Compare(self, node):
        values = [node.left, *node.comparators]
        if len(node.ops) == 1 or _binds(*values):
            made = [self.visit(v) for v in values]
            if len(node.ops) == 1:
                return self._compared(made[0], node.ops[0], made[1])
            return ast.Compare(made[0], node.ops, made[1:])
        return self._chain(node.ops, values)

    def _compared(self, left, op, right):
        if type(op) in _EQUALITY and self._features.uses("EQUALITY_OPERATORS"):
            return operator(_EQUALITY[type(op)], left, right)
        return ast.Compare(left, [op], [right])

    def _chain(self, ops, values):
        """a < f() < c: what stands in the middle is computed once."""
        left, right, *rest = values
        kept = right
        if not isinstance(right, (ast.Name, ast.Constant)):
            kept = ast.Name("middle_", ast.Load())
            kept.is_flag = True
        first = self._compared(self.visit(left), ops[0], self.visit(kept))
        if len(ops) == 2:
            other = self._compared(self.visit(kept), ops[1], self.visit(rest[0]))
        else:
            other = self._chain(ops[1:], [kept, *rest])
        made = operator("and_", thunk(first), thunk(other))
        if kept is right:
            return made
        # Python computes the left side before the middle.
        parameters = ast.arguments([], [ast.arg("middle_")], None, [], [], None, [])
        if isinstance(left, (ast.Name, ast.Constant)):
            return ast.Call(ast.Lambda(parameters, made), [self.visit(right)], [])
        parameters.args.insert(0, ast.arg("left_"))
        left_ = ast.Name("left_", ast.Load())
        made.args[0] = thunk(self._compared(left_, ops[0], kept))
        both = [self.visit(left), self.visit(right)]
        return ast.Call(ast.Lambda(parameters, made), both, [])

    def visit_IfExp(self, node):
        text = ast.unparse(node.test)
        test, body, orelse = map(self.visit, (node.test, node.body, node.orelse))
        if _binds(node.body, node.orelse):
            return ast.IfExp(test, body, orelse)
        return operator("if_exp", test, thunk(body), thunk(orelse), ast.Constant(text))

    def visit_Lambda(self, node):
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        made = ast.Lambda(node.args, self.visit(node.body))
        return operator("autograph_artifact", made)

    def visit_Call(self, node):
        if _is_operator(node.func):  # made by list_calls.py
            node.args = [self.visit(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
            return node
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name == "super" and not node.args and self._first:
            # Python finds both by the frame of the call; there is another one now.
            both = [
                ast.Name("__class__", ast.Load()),
                ast.Name(self._first, ast.Load()),
            ]
            return ast.Call(node.func, both, [])
        plain = name in _PLAIN_CALLS and not (
            name == "print" and self._features.uses("BUILTIN_FUNCTIONS")
        )
        func = self.visit(node.func)
        args = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        if plain or self._is_debugger(node.func):
            return ast.Call(func, args, keywords)
        named = ast.Constant(None)
        if keywords:
            named = ast.Call(ast.Name("dict", ast.Load()), [], keywords)
        scope = ast.Name(self._scope, ast.Load())
        return operator("converted_call", func, _as_tuple(args), named, scope)

    @staticmethod
    def _is_debugger(func):
        """pdb.set_trace() stops in the frame that calls it."""
        if not isinstance(func, ast.Attribute) or func.attr != "set_trace":
            return False
        return ast.unparse(func.value) in ("pdb", "ipdb", "pdb.Pdb()")


def _as_tuple(args):
    """The expression of a call's arguments as one tuple."""
    parts, run = [], []
    for a in args:
        if isinstance(a, ast.Starred):
            if run:
                parts.append(ast.Tuple(run, ast.Load()))
                run = []
            parts.append(ast.Call(ast.Name("tuple", ast.Load()), [a.value], []))
        else:
            run.append(a)
    if run or not parts:
        parts.append(ast.Tuple(run, ast.Load()))
    made = parts[0]
    for part in parts[1:]:
        made = ast.BinOp(made, ast.Add(), part)
    return made
