"""Where the source of a function is, and its part of the syntax tree."""

import ast
import linecache
import sys

from headrace.autograph.conversion.errors import ConversionError

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NO_SOURCE = (
    "Unable to locate the source code of {}. Note that functions defined in certain "
    "environments, like the interactive Python shell, do not expose their source code. "
    "If that is the case, you should define them in a .py source file. If you are "
    "certain the code is graph-compatible, wrap the call using "
    "@tf.autograph.experimental.do_not_convert."
)
_kept = {}  # {file: (its lines, {first line: nodes})}


def _first_line(node):
    """The line that a code object of the node begins with: that of a decorator."""
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(d.lineno for d in decorators)])


def lines_of(function):
    """(the file that a function says it is from, its lines: [] where there are none)"""
    filename = function.__code__.co_filename
    lines = linecache.getlines(filename, function.__globals__)
    return filename, lines or _typed_lines(function)


def _typed_lines(function):
    """The lines of a function that was typed into the interpreter: those of readline's
    history, at the numbers that the code has; [] where there are none.
    """
    code, readline = function.__code__, sys.modules.get("readline")
    if code.co_filename != "<stdin>" or readline is None:
        return []
    count = readline.get_current_history_length()
    typed = [readline.get_history_item(i + 1) or "" for i in range(count)]
    begins = [i for i, t in enumerate(typed) if t.startswith(f"def {code.co_name}(")]
    if not begins:
        return []
    first = end = begins[-1]
    while first > 0 and typed[first - 1].startswith("@"):
        first -= 1
    end += 1
    while end < len(typed) and typed[end][:1] in ("", " ", "\t", "#"):
        end += 1
    before = ["\n"] * (code.co_firstlineno - 1)
    return before + [text + "\n" for text in typed[first:end]]


def _functions_of(filename, lines):
    """{first line: [nodes]} of all functions of a file."""
    if filename in _kept and _kept[filename][0] == lines:
        return _kept[filename][1]
    found = {}
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, _FUNCTIONS):
            found.setdefault(_first_line(node), []).append(node)
    _kept[filename] = lines, found
    return found


def _spans(code):
    """The first and last place, (line, column), of a code object's instructions."""
    places = [p for p in code.co_positions() if None not in p]
    places = [p for p in places if p[2] != p[3] or p[0] != p[1]]
    if not places:
        return None
    return min((p[0], p[2]) for p in places), max((p[1], p[3]) for p in places)


def _holds(node, span):
    if span is None:
        return True
    body = node.body
    begin, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return begin <= span[0] and span[1] <= end


def identity(code):
    """What tells the node of a code object among those of its file: no more of it than
    this is asked below."""
    span = _spans(code) if code.co_name == "<lambda>" else None
    parameters = code.co_varnames[: _count(code)]
    return code.co_firstlineno, code.co_name, code.co_qualname, parameters, span


def node_of(function):
    """(a copy of the function's node, its file).

    Raises ConversionError where the source cannot be found.
    """
    code = function.__code__
    filename, lines = lines_of(function)
    if not lines:
        raise ConversionError(_NO_SOURCE.format(function))
    try:
        nodes = _functions_of(filename, lines).get(code.co_firstlineno, [])
    except SyntaxError as e:
        raise ConversionError(f"could not parse the source of {function}: {e}") from e
    name = code.co_name
    if name == "<lambda>":
        span = _spans(code)
        nodes = [n for n in nodes if isinstance(n, ast.Lambda) and _holds(n, span)]
        nodes.sort(key=lambda n: len(ast.dump(n)))  # the innermost that holds it
    else:
        nodes = [n for n in nodes if getattr(n, "name", None) == name]
    if nodes:
        node = _copied(nodes[0])
        _mangle(node, _class_of(code.co_qualname))
        if _parameters(node) == code.co_varnames[: _count(code)]:
            return node, filename
    raise ConversionError(_NO_SOURCE.format(function))


def _copied(node):
    """A copy of a tree (copy.deepcopy does the same in five times as long)."""
    if isinstance(node, list):
        return [_copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)()
    made.__dict__.update({k: _copied(v) for k, v in node.__dict__.items()})
    return made


def _class_of(qualname):
    """The name of the innermost class around a function; None outside of classes."""
    parts = qualname.split(".")
    for part, inner in reversed(list(zip(parts, parts[1:]))):
        if inner != "<locals>" and part != "<locals>":
            return part
    return None


def _mangle(node, class_name):
    """Gives private names, __x, what Python makes of them in a class: _Class__x."""
    class_name = (class_name or "").lstrip("_")
    if not class_name:
        return
    for n in ast.walk(node):
        for field in ("attr", "id", "arg"):
            name = getattr(n, field, None)
            if isinstance(name, str) and name[:2] == "__" and name[-2:] != "__":
                setattr(n, field, f"_{class_name}{name}")


def _count(code):
    named = code.co_argcount + code.co_kwonlyargcount
    return named + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def _parameters(node):
    a = node.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return tuple(names + [x.arg for x in (a.vararg, a.kwarg) if x is not None])
