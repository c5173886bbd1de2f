"""Name scopes and devices of the graph being built."""

import contextlib
import re

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import nest

_ROOT = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_INNER = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


def enter(name):
    """Enters the scope `name` of the current graph; what leave() wants."""
    core = stack.current()._core
    old = core.scope
    if name:
        _check(name, old)
    if not name or name.endswith("/"):
        core.scope = name or ""
    else:
        core.scope = core.unique_scope(name)
    return core, old


def _check(name, outer):
    pattern, kind = (_INNER, "scope") if outer else (_ROOT, "root scope")
    if not pattern.match(name):
        raise ValueError(
            f"'{name}' is not a valid {kind} name. A {kind} name has to match the "
            f"following pattern: {pattern.pattern}"
        )


def leave(entered):
    core, old = entered
    core.scope = old


def current():
    """The current graph's scope, "" or ending in a slash."""
    return stack.current()._core.scope


def control_dependencies(control_inputs):
    graph = stack.current()
    if callable(control_inputs):
        raise NotImplementedError(
            "control_dependencies: a callable is not supported inside a graph"
        )
    return graph.control_dependencies(control_inputs)


def group(inputs, name):
    """A NoOp that runs after all the inputs: by way of one on each device where these are
    on several, so that it waits for each device once."""
    graph = stack.current()
    flat = nest.flatten(list(inputs), expand_composites=True)
    for x in flat:
        if x is not None and not hasattr(x, "device"):
            raise TypeError(
                "'inputs' should be zero or more (nested) Tensors. Received "
                f"'{x}' with type '{type(x)}'."
            )
    by_device = {}
    for x in flat:
        if x is not None:
            by_device.setdefault(x.device or "", []).append(x)

    def after(waited_for, device, name):
        place = graph.device(device) if device else contextlib.nullcontext()
        with graph.control_dependencies(waited_for), place:
            return op_of_effect("NoOp", name)

    name = name or "group_deps"
    if len(by_device) < 2:
        device, waited_for = next(iter(by_device.items()), ("", []))
        return after(waited_for, device, name)
    with graph.name_scope(name) as scope:
        each = [
            after(by_device[device], device, "NoOp") for device in sorted(by_device)
        ]
    return after(each, "", scope)


def op_of_effect(op, name):
    """Asks an op without outputs; its Operation, None where it ran at once."""
    _headrace.raw_op(op)(name=name)
    return stack.last_operation()


def tuple(tensors, control_inputs, name):  # noqa: A001
    """The tensors, each after all of them and `control_inputs`."""
    graph = stack.current()
    present = [t for t in tensors if t is not None]
    if not present:
        raise ValueError(
            "Expected at least one Tensor or Operation in `tensors`, but got none"
        )
    with graph.name_scope(name or "tuple"):
        gate = group(list(present) + list(control_inputs or ()), "group_deps")
        out = []
        with graph.control_dependencies([gate]):
            for t in tensors:
                is_tensor = t is not None and not hasattr(t, "outputs")
                after = (
                    raw.Identity(t, name="control_dependency") if is_tensor else None
                )
                out.append(after)
        return out
