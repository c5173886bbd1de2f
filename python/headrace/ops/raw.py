"""tf.raw_ops: every registered op under its own name, arguments by keyword."""

from headrace._load import _headrace


def __getattr__(name):
    if name.startswith("__") or name not in _names():
        why = _headrace.why_absent_op(name)
        text = f"module 'headrace.raw_ops' has no attribute '{name}'"
        text = f"tf.raw_ops.{name} is not supported: {why}" if why else text
        raise AttributeError(text)
    function = _headrace.raw_op(name)
    for wrap in _wraps:
        function = wrap(function)
    globals()[name] = function
    return function


_wraps = []  # in turn, around each function


def wrap_all(wrap):
    """From now on each op's function is handed out as wrap(function)."""
    _wraps.append(wrap)
    for name in _names() & globals().keys():
        globals()[name] = wrap(globals()[name])


def __dir__():
    return sorted(_names())


def _names(kept=[]):  # noqa: B006
    if not kept:
        kept.append(frozenset(n for n in _headrace.op_names() if n[0] != "_"))
    return kept[0]
