"""What uses lists, as calls of operators that give the lists back (Feature.LISTS).

l = [x]                l = ag__.new_list([x])
l.append(y)            l = ag__.list_append(l, y)
z = l.pop()            l, l_1 = ag__.list_pop(l, None, opts=ag__.ListPopOpts(...))
                       z = l_1
tf.stack(l)            ag__.list_stack(l, opts=ag__.ListStackOpts(...))
l[i]                   ag__.get_item(l, i, opts=ag__.GetItemOpts(...))
l[i] = y               l = ag__.set_item(l, i, y)
set_element_type(l, d) l = ag__.set_list_type(l, d)
"""

import ast

from headrace.autograph.conversion.errors import ConversionError
from headrace.autograph.conversion.expressions import operator


def _options(kind, **fields):
    """opts=ag__.kind(field=..., ...)"""
    made = operator(kind)
    made.keywords = [ast.keyword(name, value) for name, value in fields.items()]
    return ast.keyword("opts", made)


def _none():
    return ast.Constant(None)


def _copied(name):
    return ast.Name(name.id, ast.Load())


class ListCalls(ast.NodeTransformer):
    """Rewrites the statements of one function, not those of functions in it.

    `directives(call)` says what a call means that speaks to the converter.
    """

    def __init__(self, namer, directives):
        self._namer, self._directives = namer, directives

    def body(self, statements):
        """The rewritten statements."""
        out = []
        for node in statements:
            made = self.visit(node)
            out += made if isinstance(made, list) else [made]
        return out

    def visit_FunctionDef(self, node):
        return node  # has its own turn

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def visit(self, node):
        new = super().visit(node)
        for made in new if isinstance(new, list) else [new]:
            if made is not node and isinstance(made, ast.AST):
                ast.copy_location(made, node)
        return new

    # --- statements ---

    def visit_Expr(self, node):
        call = node.value
        meant = self._directives(call) if isinstance(call, ast.Call) else None
        if meant is not None:
            return _typed(meant[1]) if meant[0] == "set_element_type" else node
        name = self._list_of(call, "append")
        if name is not None and len(call.args) == 1 and not call.keywords:
            value = self.visit(call.args[0])
            return _rebound(name, operator("list_append", _copied(name), value))
        return self.generic_visit(node)

    def visit_Assign(self, node):
        call = node.value
        name = self._list_of(call, "pop")
        if name is not None and len(call.args) < 2 and not call.keywords:
            return self._popped(node, name, call.args)
        target = node.targets[0]
        if (
            len(node.targets) == 1
            and isinstance(target, ast.Subscript)
            and isinstance(target.value, ast.Name)
            and not _has_slice(target)
        ):
            name = target.value
            index, value = self.visit(target.slice), self.visit(node.value)
            return _rebound(name, operator("set_item", _copied(name), index, value))
        return self.generic_visit(node)

    def _popped(self, node, name, args):
        element = self._namer(name.id)
        at = self.visit(args[0]) if args else _none()
        call = operator("list_pop", _copied(name), at)
        call.keywords = [
            _options("ListPopOpts", element_dtype=_none(), element_shape=_none())
        ]
        both = [ast.Name(name.id, ast.Store()), ast.Name(element, ast.Store())]
        node.value = ast.Name(element, ast.Load())
        return [ast.Assign([ast.Tuple(both, ast.Store())], call), node]

    @staticmethod
    def _list_of(call, method):
        """The variable whose method is called, or None."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        if call.func.attr != method or not isinstance(call.func.value, ast.Name):
            return None
        return call.func.value

    # --- expressions ---

    def visit_List(self, node):
        self.generic_visit(node)
        return operator("new_list", node) if isinstance(node.ctx, ast.Load) else node

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or _has_slice(node):
            return node
        call = operator("get_item", node.value, node.slice)
        call.keywords = [_options("GetItemOpts", element_dtype=_none())]
        return call

    def visit_Call(self, node):
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "stack"
            and len(node.args) == 1
            and not node.keywords
        ):
            call = operator("list_stack", node.args[0])
            fields = {"element_dtype": _none(), "original_call": node.func}
            call.keywords = [_options("ListStackOpts", **fields)]
            return call
        return node


def _typed(given):
    """set_element_type(l, dtype, shape) makes l a list that knows these."""
    name = given["entity"]
    if not isinstance(name, ast.Name):
        raise ConversionError("set_element_type is about a variable of the function")
    args = [given[k] for k in ("dtype", "shape") if k in given]
    return _rebound(name, operator("set_list_type", _copied(name), *args))


def _rebound(name, value):
    return ast.Assign([ast.Name(name.id, ast.Store())], value)


def _has_slice(node):
    """True for indices that are no single element."""
    return isinstance(node.slice, (ast.Slice, ast.Tuple))
