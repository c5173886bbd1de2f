"""Where a node was made, and errors of runs told in those terms."""

import os
import re

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# How the qualified names of such code objects end that AutoGraph made of a part of a
# function.
PART = ".<part>"
# Compiled when they are first needed: the node that failed as it ran, and one that has no
# device that it may run on.
_NODE = r"\[\[\{\{node ([^}]+)\}\}\]\]"
_UNPLACED = r"^Cannot assign a device for operation [^:]+: \{\{node ([^}]+)\}\}"


def _line(code, instruction):
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def is_converted(code):
    """True for code that AutoGraph made; it has the user's files and lines."""
    return "ag__" in code.co_freevars


def is_part(code):
    """True for what AutoGraph made of a part of a function (a branch, a loop's body):
    code that is called like the function and runs below it."""
    return code.co_qualname.endswith(PART)


def name_of(code):
    """The name that the user gave to the function."""
    if is_converted(code):
        return code.co_name.removeprefix("tf__")
    return code.co_name


def frames(stack):
    """(file, line, function) of a native stack of (code, instruction)."""
    found, users = [], []  # all, and the places of the user's among them
    for code, instruction in stack:
        if users and is_part(code):
            del found[users.pop()]
        if not is_internal(code.co_filename):
            users.append(len(found))
        found.append((code.co_filename, _line(code, instruction), name_of(code)))
    return found


def is_internal(filename):
    """True for files of this package and of the interpreter itself."""
    return filename.startswith((_PACKAGE, "<frozen"))


def user_frames(found):
    return [f for f in found if not is_internal(f[0])]


def _node_of(error, graph, *patterns):
    """The node that the error's text names, with the frames that made it."""
    found = (re.search(pattern, error.message) for pattern in patterns)
    named = next(filter(None, found), None)
    if named is None:
        return None, ()
    name = named.group(1)
    node = _find(graph, name)
    if node is None:
        return name, ()
    holder, found = node
    return name, user_frames(frames(holder._core.call_stack(found.id)))


def _find(graph, name):
    for holder in (graph, *graph._bodies):
        node = holder._core.find(name)
        if node is not None:
            return holder, node
    return None


def _replace(error, text):
    error._message = text
    error.args = (text,) + tuple(error.args[1:])


def explain_run(error, graph, scope=""):
    """Puts where the failing node was made into the error of a function's run, which was
    put into another graph in that scope."""
    if scope:
        _replace(error, error.message.replace(f"{{{{node {scope}", "{{node "))
    if error.message.startswith("Graph execution error"):
        return
    # (One that no device runs is told as it is, as by TensorFlow.)
    name, where = _node_of(error, graph, _NODE)
    if name is None:
        return
    lines = "".join(f'  File "{f}", line {n}, in {fn}\n\n' for f, n, fn in where)
    head = f"Detected at node {name} defined at (most recent call last):\n{lines}"
    _replace(error, f"Graph execution error:\n\n{head if where else ''}{error.message}")


def explain_session(error, graph):
    """The same for a session's run."""
    if error.message.startswith("Graph execution error"):
        return
    name, where = _node_of(error, graph, _NODE, _UNPLACED)
    if name is None:
        return
    found = _find(graph, name)
    error._op = graph._operation(found[1]) if found else None
    rows = [f'File "{f}", line {n}, in {fn}' for f, n, fn in where]
    inner = "".join(f"    {r}\n" for r in rows)
    outer = "\n".join(f"  {r}" for r in rows)
    _replace(
        error,
        f"Graph execution error:\n\nDetected at node '{name}' defined at (most recent "
        f"call last):\n{inner}Node: '{name}'\n{error.message}\n\nOriginal stack trace "
        f"for '{name}':\n{outer}",
    )
