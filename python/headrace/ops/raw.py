"""tf.raw_ops: every registered op under its own name, arguments by keyword."""

from headrace._load import _headrace


def __getattr__(name):
    if name.startswith("__") or name not in _names():
        why = _headrace.why_absent_op(name)
        text = f"module 'headrace.raw_ops' has no attribute '{name}'"
        text = f"tf.raw_ops.{name} is not supported: {why}" if why else text
        raise AttributeError(text)
    function = _headrace.raw_op(name)
    globals()[name] = function
    return function


def __dir__():
    return sorted(_names())


def _names(kept=[]):  # noqa: B006
    if not kept:
        kept.append(frozenset(n for n in _headrace.op_names() if n[0] != "_"))
    return kept[0]
