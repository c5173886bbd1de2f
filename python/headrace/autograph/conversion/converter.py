"""Converted functions: made once a code object, kept as long as it lives."""

import __future__

import ast
import builtins
import types
import weakref

from headrace.autograph.conversion import directives, names, rewriting, source, stored
from headrace.autograph.conversion.errors import (
    ConversionError,
    UnsupportedLanguageElementError,
)
from headrace.autograph.conversion.expressions import Expressions, operator, thunk
from headrace.context.call_stacks import PART
from headrace.context.locks import ForkLock

_lock = ForkLock()
_made = {}  # {(id of a code object, options): (weak reference to it, converted code)}


def _identifiers(node):
    """(all names in the code, those that it assigns), of nested functions too."""
    found, assigned = set(), set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            found.add(n.id)
            if not isinstance(n.ctx, ast.Load):
                assigned.add(n.id)
        elif isinstance(n, ast.arg):
            found.add(n.arg)
        elif isinstance(n, (*names.FUNCTIONS, ast.ClassDef)):
            found.add(n.name)
    return found, assigned


def _namespace(function):
    """What names mean in the function: its closure's, globals and builtins."""

    def look_up(name):
        code = function.__code__
        if name in code.co_freevars:
            cell = function.__closure__[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                return None
        found = function.__globals__.get(name)
        return getattr(builtins, name, None) if found is None else found

    return look_up


def converted_node(function, options, find, shows_all=False):
    """(the converted definition of a function or lambda, its file).

    `find` says which calls are directives. Only variables of the function can be Undefined: other names are read as they are,
    unless the code `shows_all` reads alike.
    """
    node, filename = source.node_of(function)
    reason = rewriting.refusal(node)
    if reason is not None:
        raise UnsupportedLanguageElementError(reason)
    identifiers, assigned = _identifiers(node)
    namer = rewriting.Namer(identifiers, None if shows_all else assigned)
    told = ast.parse(options.source(), mode="eval").body
    if isinstance(node, ast.Lambda):
        made = _lambda(node, namer, options, told)
    else:
        made = _function(node, namer, options, told, find)
    return made if made is node else ast.copy_location(made, node), filename


def _lambda(node, namer, options, told):
    scope = namer("lscope")
    first = names.first_parameter(node)
    expressions = Expressions(scope, options, first, namer.assigned)
    inner = thunk(expressions.visit(node.body))
    inner.args.args.append(ast.arg(scope))
    call = operator("with_function_scope", inner, ast.Constant(scope), told)
    lam = ast.Lambda(_without_defaults(node.args), ast.copy_location(call, node))
    name = ast.Name(namer("tf__lam"), ast.Store())
    return ast.Assign([name], ast.copy_location(lam, node))


def _function(node, namer, options, told, find):
    scope = namer("fscope")
    statements = rewriting.Statements(node, scope, namer, options, find)
    node.body = rewriting.in_scope(node, scope, told, statements)
    node.name = "tf__" + node.name
    node.decorator_list = []
    node.args = _without_defaults(node.args)
    return node


def _without_defaults(arguments):
    """The converted function gets the values of the defaults, not their code."""
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]
    return arguments


def text(function, options):
    """The converted function as source code."""
    find = directives.Finder(_namespace(function))
    node, _ = converted_node(function, options, find, shows_all=True)
    return ast.unparse(ast.fix_missing_locations(node)) + "\n"


def _code_of(function, options):
    code = function.__code__
    key = id(code), options
    made = _kept(key, code)
    if made is None:
        with _lock:
            made = _kept(key, code)  # another thread may have made it
            if made is None:
                made = _stored(function, options)
                _made[key] = weakref.ref(code, lambda _: _made.pop(key, None)), made
    return made


def _kept(key, code):
    kept = _made.get(key)
    return kept[1] if kept is not None and kept[0]() is code else None


def _stored(function, options):
    """The converted code of a function, from disk where it is kept there."""
    find = directives.Finder(_namespace(function))

    def make():
        return _compiled(function, options, find), find.meant

    return stored.code_of(function, options, make, find.still)


def _compiled(function, options, find):
    node, filename = converted_node(function, options, find)
    free = [*function.__code__.co_freevars, "ag__"]
    arguments = ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, [])
    outer = ast.FunctionDef("outer", arguments, [node], [], None)
    outer.type_params = []
    module = ast.Module([outer], [])
    ast.copy_location(outer, node)
    ast.fix_missing_locations(module)
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    try:
        code = compile(module, filename, "exec", dont_inherit=True, flags=flags)
    except (SyntaxError, RecursionError) as e:
        raise ConversionError(f"converting {function}: {type(e).__name__}: {e}") from e
    outer_code = _inner_code(code, "outer")
    wanted = "<lambda>" if isinstance(node, ast.Assign) else node.name
    made = _inner_code(outer_code, wanted)
    return _renamed(made, made.co_name)


def _inner_code(code, name):
    for const in code.co_consts:
        if isinstance(const, types.CodeType) and const.co_name == name:
            return const
    raise AssertionError(name)


# Functions that the converter makes of parts of a function.
_PARTS = ("if_body", "else_body", "loop_body", "loop_test", "extra_test")


def _renamed(code, name):
    """The code with the parts of the function called like the function: debuggers and
    tracebacks show the function that the user wrote."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            own = const.co_name
            is_thunk = own == "<lambda>" and (
                not const.co_argcount or const.co_varnames[0].startswith("lscope")
            )
            if own.rstrip("_0123456789") in _PARTS or is_thunk:
                const = _renamed(const, name)
                const = const.replace(co_name=name, co_qualname=name + PART)
            else:
                const = _renamed(const, own)
        consts.append(const)
    return code.replace(co_consts=tuple(consts))


def converted(function, options, operators):
    """The function whose control flow calls `operators`.

    It shares the globals, closure and defaults of `function`, a plain Python function.
    Raises ConversionError where it cannot be converted.
    """
    code = _code_of(function, options)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells["ag__"] = types.CellType(operators)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(
        code, function.__globals__, code.co_name, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    made.__dict__.update(function.__dict__)
    made.__module__, made.__doc__ = function.__module__, function.__doc__
    made.autograph_info__ = {}
    made.ag_module = operators
    return made
