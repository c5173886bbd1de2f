"""Functions that say of each operation of a graph where it is placed.

A function sees an operation once it is made, and the devices of the contexts inside of
its own. So those operations wait: whatever asks for a device, and each begin and end of a
context, first places what was made since the last time.
"""

import contextlib

from headrace.framework.devices import DeviceSpec


def text_of(device):
    """The name of a device as nodes have it; None is none."""
    if isinstance(device, DeviceSpec):
        return device.to_string()
    return DeviceSpec.from_string(device).to_string() if device else ""


def merged(outer, inner):
    """The device of a context inside of another."""
    if not outer or not inner:
        return outer or inner
    whole = DeviceSpec.from_string(outer)
    return whole.make_merged_spec(DeviceSpec.from_string(inner)).to_string()


def _checked(device):
    """What a function gave, as nodes have it."""
    if not isinstance(device, (str, bytes, DeviceSpec)):
        raise TypeError(f"Expected binary or unicode string, got {device!r}")
    return text_of(device.decode() if isinstance(device, bytes) else device)


def place(graph):
    """Places the operations that functions have not seen yet."""
    contexts = graph._device_contexts
    if not contexts:
        return
    begin, end = graph._placed, graph._core.num_nodes
    graph._placed = end  # before functions ask for devices
    inner = max(i for i, entry in enumerate(contexts) if callable(entry))
    if None in contexts[inner:]:
        return
    first = max((i for i, entry in enumerate(contexts) if entry is None), default=-1)
    for number in range(begin, end):
        op = graph._operation(graph._core.node(number))
        for entry in reversed(contexts[first + 1 : inner + 1]):
            if callable(entry):
                op._set_device(_checked(entry(op)))
            else:
                op._set_device(merged(entry, op._node.device))


@contextlib.contextmanager
def context(graph, entry):
    """Operations made inside are placed by a function, or inside of one by a name;
    None: by what is inside alone."""
    contexts, old = graph._device_contexts, graph._core.device
    if contexts:
        place(graph)
    else:
        graph._placed = graph._core.num_nodes
        contexts.append(old)
    contexts.append(entry if callable(entry) or entry is None else text_of(entry))
    if callable(entry) or entry is None:
        graph._core.device = ""
    else:
        graph._core.device = merged(old, contexts[-1])
    try:
        yield
    finally:
        try:
            place(graph)
        finally:
            contexts.pop()
            if len(contexts) == 1:
                contexts.clear()
            graph._core.device = old
