"""tf.debugging.enable_check_numerics: errors at the first NaN or infinity."""

import linecache
import threading

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import call_stacks


class _Limits(threading.local):
    stack_height = 30
    path_length = 50


_limits = _Limits()


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """From now on looks at what each op of this thread makes, of floating dtypes.

    An output with a NaN or an infinity is InvalidArgumentError, which names the op and
    its inputs: at once for ops that run, when a graph or traced function runs for those
    that were added to it meanwhile. Ops that only hand numbers on are passed over.
    A second call only sets the limits.

    Args:
      stack_height_limit: of how many calls behind a graph's op the error tells.
      path_length_limit: longer names of files are told by their end.
    """
    _limits.stack_height = stack_height_limit
    _limits.path_length = path_length_limit
    _headrace.check_numbers(True)


def disable_check_numerics():
    """Ends enable_check_numerics for this thread; graphs keep the checks they have."""
    _headrace.check_numbers(False)


def checked(op, index, count, inputs, output):
    """Output `index` of `count` of `op`, looked at; called natively."""
    if isinstance(output, _headrace.EagerTensor):
        lines = [_headline(index, "eagerly-executing", op, count), *_kind(output)]
        lines += [*_amounts(output.numpy()), "", *_told(inputs), ""]
        return _check(output, lines)
    node = output.op
    lines = [_headline(index, "graph", op, count), *_kind(output), "", *_told(inputs)]
    if node.graph.building_function:
        lines.append(f'  Graph name: "{node.graph.name}"')
    lines += ["", *_origin(node), ""]
    with node.graph.name_scope(f"{node.name}/"):
        return _check(output, lines)


def _check(output, lines):
    message = "\n\n" + "\n".join(lines) + "\n"
    return raw.CheckNumericsV2(output, message=message)


def _headline(index, how, op, count):
    return (
        f"!!! Detected Infinity or NaN in output {index} of {how} op "
        f'"{op}" (# of outputs: {count}) !!!'
    )


def _kind(output):
    return [f"  dtype: {output.dtype}", f"  shape: {output.shape}"]


def _amounts(values):
    values = values.astype(np.float64)
    kinds = (
        ("-Inf", np.isneginf(values)),
        ("+Inf", np.isposinf(values)),
        ("+NaN", np.isnan(values)),
    )
    return [f"  # of {name} elements: {at.sum()}" for name, at in kinds if at.any()]


def _told(inputs):
    if not inputs:
        return []
    if len(inputs) == 1:
        return [f"  Input tensor: {inputs[0]!s}"]
    rows = [f"         {i}: {x!s}" for i, x in enumerate(inputs)]
    return [f"  Input tensors ({len(inputs)}):", *rows]


def _origin(node):
    lines = ['  Stack trace of op\'s creation ("->": inferred user code):']
    found = call_stacks.user_frames(node.traceback)
    for path, line, function in found[-_limits.stack_height :]:
        source = linecache.getline(path, line).strip()
        if len(path) > _limits.path_length:
            path = "..." + path[-_limits.path_length :]
        lines += [f"    + {path} (L{line}) {function}", f" -> |   {source}"]
    return lines
