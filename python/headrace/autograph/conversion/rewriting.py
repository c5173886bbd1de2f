"""Statements that can meet tensors, as calls of operators (`ag__`).

if c:                  def get_state():
    y = x                  return (y,)
                       def set_state(vars_):
                           nonlocal y
                           y, = vars_
                       def if_body():
                           nonlocal y
                           y = ag__.ld(x)
                       def else_body():
                           nonlocal y
                           pass
                       y = ag__.Undefined('y')
                       ag__.if_stmt(ag__.ld(c), if_body, else_body, get_state,
                                    set_state, ('y',), 1)
"""

import ast

from headrace.autograph.conversion import names
from headrace.autograph.conversion.errors import ConversionError
from headrace.autograph.conversion.expressions import (
    Expressions,
    of_operators,
    operator,
    thunk,
)
from headrace.autograph.conversion.list_calls import ListCalls
from headrace.autograph.conversion.liveness import CONTROL, Liveness, State
from headrace.autograph.conversion.lowering import Lowering, flag
from headrace.autograph.conversion.names import Names, local_to

_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


class Namer:
    """Makes names that the function does not use: break_, break__1, ...

    `assigned`: the names that it and the functions in it assign; None: any.
    """

    def __init__(self, taken, assigned=None):
        self._taken = set(taken)
        self.assigned = assigned

    def __call__(self, wanted):
        name, n = wanted, 0
        while name in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        self._taken.add(name)
        return name


def refusal(node):
    """Why a function or lambda is run as it is; None: it can be converted."""
    body = node.body if isinstance(node.body, list) else [node.body]
    if isinstance(node, ast.AsyncFunctionDef):
        return "async functions are not supported"
    if local_to(body, (ast.Yield, ast.YieldFrom)):
        return "generators are not supported"
    for loop in names.statements(body, (ast.For, ast.While)):
        if loop.orelse:
            return f"{type(loop).__name__.lower()}/else statement not yet supported"
    return None


def _assign(name, value):
    return ast.Assign([flag(name, ast.Store())], value)


def _undefined(name):
    return _assign(name, operator("Undefined", ast.Constant(name)))


def _function(name, body, parameter=None):
    arguments = _NO_ARGUMENTS
    if parameter is not None:
        arguments = ast.arguments([], [ast.arg(parameter)], None, [], [], None, [])
    made = ast.FunctionDef(name, arguments, body, [], None)
    made.type_params = []  # from Python 3.12 on
    return made


def at_start(new, node):
    """Places what was made for a statement where that begins, so that tracebacks and
    debuggers show its first line."""
    if hasattr(node, "lineno"):  # else it gets its parent's place
        new.lineno = new.end_lineno = node.lineno
        new.col_offset = new.end_col_offset = node.col_offset


class Statements:
    """Converts the body of one function.

    `directives(call)` says what a call that speaks to the converter means: a pair
    (kind, its keywords), or None for any other call.
    """

    def __init__(self, node, scope, namer, features, directives):
        self._scope, self._namer = scope, namer
        self._features, self._directives = features, directives
        first = names.first_parameter(node)
        self._expressions = Expressions(scope, features, first, namer.assigned)
        self._parameters = names.parameters(node)

    def body(self, statements):
        """The converted statements of the function."""
        lowering = Lowering(self._namer)
        statements = lowering.body(statements)
        if self._features.uses("LISTS"):
            statements = ListCalls(self._namer, self._directives).body(statements)
        whole = Names(statements)
        self._globals, self._declared = whole.globals, whole.declared
        self._rebound = whole.rebound
        Liveness(statements, lowering.returns or ())
        self._needed = self._states(statements)
        self._bound = self._parameters | whole.declared
        returns, begin, end = lowering.returns, [], []
        if returns is not None:
            self._bound |= set(returns)
            begin = [
                _assign(returns[0], ast.Constant(False)),
                _assign(returns[1], operator("UndefinedReturnValue")),
            ]
            ret = ast.Attribute(ast.Name(self._scope, ast.Load()), "ret", ast.Load())
            end = [ast.Return(ast.Call(ret, [flag(returns[1]), flag(returns[0])], []))]
            if statements:
                ast.copy_location(end[0], statements[-1])
        return begin + self._block(statements) + end

    def _states(self, statements):
        """Gives branches and loops an attribute `state`; the variables in these."""
        found = set()
        for node in names.statements(statements, CONTROL):
            node.state = State(node, self._declared, self._rebound)
            found |= set(node.state.plain)
        return found

    # --- statements ---

    def _block(self, statements):
        out = []
        for node in statements:
            out += self._statement(node)
        return out

    def _statement(self, node):
        visit = getattr(self, "_visit_" + type(node).__name__, self._visit_plain)
        made = visit(node)
        for new in made:
            if not hasattr(new, "lineno"):
                at_start(new, node)
        return made

    def _visit_plain(self, node):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                setattr(node, field, self._expressions.visit(value))
            elif isinstance(value, list):
                values = [
                    self._expressions.visit(v) if isinstance(v, ast.AST) else v
                    for v in value
                ]
                setattr(node, field, values)
        self._bound |= Names(node).writes
        return [node]

    def _visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            directive = self._directives(node.value)
            if directive is not None and directive[0] == "set_element_type":
                return [ast.Pass()]  # list_calls.py has it, with Feature.LISTS
            if directive is not None:
                raise ConversionError(
                    f'ValueError: "{directive[0]}" must be used inside a statement'
                )
        return self._visit_plain(node)

    def _visit_AugAssign(self, node):
        made = []
        if isinstance(node.target, ast.Name):
            name = node.target.id
            made = [_assign(name, operator("ld", flag(name)))]
        return made + self._visit_plain(node)

    def _visit_AnnAssign(self, node):
        if isinstance(node.target, ast.Name) and node.target.id in self._needed:
            # Python lets no name have an annotation that is another function's.
            if node.value is None:
                return [ast.Pass()]
            plain = ast.copy_location(ast.Assign([node.target], node.value), node)
            return self._visit_plain(plain)
        annotation = node.annotation
        made = self._visit_plain(node)
        node.annotation = annotation
        return made

    def _visit_Assert(self, node):
        if not self._features.uses("ASSERT_STATEMENTS"):
            return self._visit_plain(node)
        message = node.msg or ast.Constant("Assertion error")
        test, message = map(self._expressions.visit, (node.test, message))
        return [ast.Expr(operator("assert_stmt", test, thunk(message)))]

    def _visit_Delete(self, node):
        made = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                made.append(_undefined(target.id))
            else:
                made.append(ast.Delete([self._expressions.visit(target)]))
        return made

    def _visit_With(self, node):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call):  # what makes the manager runs as it is
                visit = self._expressions.visit
                keywords = [ast.keyword(k.arg, visit(k.value)) for k in call.keywords]
                args = [visit(a) for a in call.args]
                made = ast.Call(visit(call.func), args, keywords)
                item.context_expr = ast.copy_location(made, call)
            else:
                item.context_expr = self._expressions.visit(call)
            if item.optional_vars is not None:
                self._bound |= Names(item.optional_vars).writes
        node.body = self._block(node.body)
        return [node]

    def _visit_Try(self, node):
        if hasattr(node, "is_return"):  # the converter's own
            node.body[1].value = self._expressions.visit(node.body[1].value)
            return [node]
        # It may end anywhere: what branches ask for behind it has a value before.
        first = self._first_values(sorted(Names(node).writes & self._needed))
        node.body = self._block(node.body)
        before = set(self._bound)
        for handler in node.handlers:
            if handler.type is not None:
                handler.type = self._expressions.visit(handler.type)
            self._bound = set(before)
            handler.body = self._block(handler.body)
        self._bound = before
        node.orelse = self._block(node.orelse)
        node.finalbody = self._block(node.finalbody)
        return [*first, node]

    _visit_TryStar = _visit_Try

    def _visit_Match(self, node):
        node.subject = self._expressions.visit(node.subject)
        first = self._first_values(sorted(Names(node).writes & self._needed))
        for case in node.cases:
            if case.guard is not None:
                case.guard = self._expressions.visit(case.guard)
            case.body = self._block(case.body)
        return [*first, node]

    def _visit_Global(self, node):
        return [node]

    _visit_Nonlocal = _visit_Global

    def _visit_Import(self, node):
        self._bound |= Names(node).writes
        return [node]

    _visit_ImportFrom = _visit_Import

    def _visit_FunctionDef(self, node):
        self._bound.add(node.name)
        if refusal(node) is not None:
            return [node]
        node.args.defaults = [self._expressions.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [
            d and self._expressions.visit(d) for d in node.args.kw_defaults
        ]
        self._convert_inner(node)
        return [node]

    def _convert_inner(self, node):
        scope = self._namer("fscope")
        inner = Statements(node, scope, self._namer, self._features, self._directives)
        node.body = in_scope(node, scope, of_operators("STD"), inner)
        node.decorator_list.append(of_operators("autograph_artifact"))

    def _visit_ClassDef(self, node):
        """Its methods are converted, what runs while it is made is not."""
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and refusal(inner) is None:
                self._convert_inner(inner)
        self._bound.add(node.name)
        return [node]

    # --- branches and loops ---

    def _scopes(self, state):
        """The statements that make a nested function's variables those around it."""
        shared = [n for n in state.plain if n in self._globals]
        own = [n for n in state.plain if n not in self._globals]
        made = [ast.Global(shared)] if shared else []
        return made + ([ast.Nonlocal(own)] if own else [])

    def _inner_block(self, statements, state, given=frozenset()):
        """A block as the body of a nested function, which sets `given` first. What else
        it sets and shares with nobody is its own, and not bound before."""
        shared, own = set(state.plain), Names(statements).writes
        outer, self._bound = self._bound, (self._bound - own) | shared | given
        body = self._block(statements)
        self._bound = outer
        return self._scopes(state) + (body or [ast.Pass()])

    def _accessors(self, state):
        """([the functions that read and set the state], their names)."""
        get, put = self._namer("get_state"), self._namer("set_state")
        values = [self._value(n) for n in state.names]
        body = [ast.Return(ast.Tuple(values, ast.Load()))]
        if not state.names:
            put_body, parameter = [ast.Pass()], "block_vars"
        else:
            targets = [
                ast.parse(n, mode="eval").body if n not in state.plain else flag(n)
                for n in state.names
            ]
            for target in targets:
                target.ctx = ast.Store()
            put_body = self._scopes(state)
            parameter = "vars_"
            value = ast.Name(parameter, ast.Load())
            put_body.append(ast.Assign([ast.Tuple(targets, ast.Store())], value))
        made = [_function(get, body), _function(put, put_body, parameter)]
        return made, [flag(get), flag(put)]

    def _value(self, name):
        if names.root(name) == name and name not in self._globals:
            return flag(name)
        read = ast.parse(name, mode="eval").body
        return operator("ldu", thunk(read), ast.Constant(name))

    def _first_values(self, variables):
        """The statements that make variables Undefined which have no value yet."""
        missing = [n for n in variables if n not in self._bound]
        self._bound |= set(missing)
        return [_undefined(n) for n in missing]

    def _call(self, op, state, functions, first, accessors, last):
        """The functions of a branch or loop and the operator that is called with
        these; `last` is its last argument."""
        symbols = ast.Tuple([ast.Constant(n) for n in state.names], ast.Load())
        call = ast.Expr(operator(op, *first, *accessors, symbols, last))
        return functions + self._first_values(state.plain) + [call]

    def _visit_If(self, node):
        state = node.state
        test = self._expressions.visit(node.test)
        body = self._inner_block(node.body, state)
        orelse = self._inner_block(node.orelse, state)
        functions, accessors = self._accessors(state)
        name, else_name = self._namer("if_body"), self._namer("else_body")
        functions += [_function(name, body), _function(else_name, orelse)]
        parts = [test, flag(name), flag(else_name)]
        count = ast.Constant(len(state.outputs))
        return self._call("if_stmt", state, functions, parts, accessors, count)

    def _options(self, node):
        """What set_loop_options says in a loop's body; its calls are taken out."""
        options, rest = {}, []
        for inner in node.body:
            call = inner.value if isinstance(inner, ast.Expr) else None
            directive = self._directives(call) if isinstance(call, ast.Call) else None
            if directive is None or directive[0] != "set_loop_options":
                rest.append(inner)
            else:
                options.update(directive[1])
        node.body = rest
        return {k: self._expressions.visit(v) for k, v in options.items()}

    def _test(self, node, test):
        """The test with the flags that end the loop, first."""
        parts = [operator("not_", flag(f)) for f in getattr(node, "stops", ())]
        parts += [test] if test is not None else []
        made = parts.pop()
        while parts:
            made = operator("and_", thunk(parts.pop()), thunk(made))
        return made

    def _visit_While(self, node):
        options = self._options(node)
        state = node.state
        test = self._test(node, self._expressions.visit(node.test))
        body = self._inner_block(node.body, state)
        functions, accessors = self._accessors(state)
        name, test_name = self._namer("loop_body"), self._namer("loop_test")
        bound = local_to([node.test], ast.NamedExpr)
        test_body = (self._scopes(state) if bound else []) + [ast.Return(test)]
        functions += [_function(name, body), _function(test_name, test_body)]
        parts, options = [flag(test_name), flag(name)], _dict(options)
        return self._call("while_stmt", state, functions, parts, accessors, options)

    def _visit_For(self, node):
        options = self._options(node)
        state = node.state
        options["iterate_names"] = ast.Constant(ast.unparse(node.target))
        iterated = self._expressions.visit(node.iter)
        target = node.target
        body = self._inner_block(node.body, state, Names(target).writes)
        functions, accessors = self._accessors(state)
        name, item = self._namer("loop_body"), self._namer("itr")
        take = ast.Assign([self._expressions.visit(target)], flag(item))
        ast.copy_location(take, node)
        scopes = len(self._scopes(state))
        body.insert(scopes, take)
        functions.append(_function(name, body, item))
        extra = ast.Constant(None)
        if getattr(node, "stops", ()):
            extra_name = self._namer("extra_test")
            extra_body = self._scopes(state) + [ast.Return(self._test(node, None))]
            functions.append(_function(extra_name, extra_body))
            extra = flag(extra_name)
        parts, options = [iterated, extra, flag(name)], _dict(options)
        return self._call("for_stmt", state, functions, parts, accessors, options)


def _dict(items):
    return ast.Dict([ast.Constant(k) for k in items], list(items.values()))


def in_scope(node, scope, options, statements):
    """The body of a function: its docstring, and the rest converted, in a scope."""
    body = node.body
    text = []
    if ast.get_docstring(node, clean=False) is not None:
        text, body = body[:1], body[1:]
    made = statements.body(body)
    entry = operator(
        "FunctionScope", ast.Constant(node.name), ast.Constant(scope), options
    )
    item = ast.withitem(entry, ast.Name(scope, ast.Store()))
    return text + [ast.With([item], made or [ast.Pass()])]
