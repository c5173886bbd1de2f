"""Name scopes and devices of the graph being built."""

import re

from headrace.graph import stack

_ROOT = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_INNER = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


def enter(name):
    """Enters the scope `name` of the current graph; what leave() wants."""
    core = stack.current()._core
    old = core.scope
    if not name:
        core.scope = ""
    elif name.endswith("/"):
        core.scope = name
    else:
        if old:
            if not _INNER.match(name):
                raise ValueError(
                    f"'{name}' is not a valid scope name. A scope name has to match "
                    f"the following pattern: {_INNER.pattern}"
                )
        elif not _ROOT.match(name):
            raise ValueError(
                f"'{name}' is not a valid root scope name. A root scope name has to "
                f"match the following pattern: {_ROOT.pattern}"
            )
        core.scope = core.unique_scope(name)
    return core, old


def leave(entered):
    core, old = entered
    core.scope = old


def current():
    """The current graph's scope, "" or ending in a slash."""
    return stack.current()._core.scope


def set_device(name):
    stack.current()._core.device = name
