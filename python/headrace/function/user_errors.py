"""Errors raised while tracing, told in terms of the user's own frames."""

import ast
import linecache

from headrace.context import call_stacks
from headrace.context.errors import OpError
from headrace.framework.settings import tracebacks


class _MultilineKeyError(KeyError):
    """A KeyError whose text is shown as it is."""

    def __str__(self):
        return self.args[0]


_MultilineKeyError.__name__ = _MultilineKeyError.__qualname__ = "KeyError"


def user_frames(traceback):
    """(file, line, function, whether it is converted) of the frames that are shown."""
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not tracebacks.hides(code):
            name = call_stacks.name_of(code)
            name = "None" if name == "<lambda>" else name
            if call_stacks.is_part(code) and frames and frames[-1][3]:
                frames.pop()
            converted = call_stacks.is_converted(code)
            frames.append((code.co_filename, traceback.tb_lineno, name, converted))
        traceback = traceback.tb_next
    return frames


def _source(filename, number, is_lambda):
    """The source line; of a lambda only itself, where the line can be parsed."""
    text = linecache.getline(filename, number).strip()
    if is_lambda:
        try:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Lambda):
                    return ast.get_source_segment(text, node)
        except SyntaxError:
            pass
    return text


def in_user_code(error, traceback):
    """The same error with a text that begins "in user code:"; None where it cannot be
    made, or no frame is the user's.
    """
    frames = user_frames(traceback)
    if all(call_stacks.is_internal(filename) for filename, *_ in frames):
        return None
    lines = ["in user code:", ""]
    for filename, line, name, converted in frames:
        star = "  *" if converted else ""
        lines.append(f'    File "{filename}", line {line}, in {name}{star}')
        source = _source(filename, line, name == "None")
        lines.append(f"        {source}")
    text = f"{type(error).__name__}: {error}"
    lines = [line.rstrip() for line in lines]
    lines += ["", *("    " + part for part in text.split("\n")), ""]
    return _with_message(error, "\n".join(lines))


def _with_message(error, message):
    cls = type(error)
    if cls is KeyError:
        return _MultilineKeyError(message)
    try:
        if isinstance(error, OpError):
            return cls(error.node_def, error.op, message)
        if (
            cls.__init__ in (Exception.__init__, BaseException.__init__)
            or (cls.__module__ == "builtins")
            or cls.__module__.startswith("headrace.")
        ):
            return cls(message)
    except TypeError:
        pass
    return None
