"""Lists, tuples and dicts of values."""


def leaves(value):
    """What lists, tuples and dicts hold, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from leaves(v)
    else:
        yield value


def mapped(function, value):
    """The structure of lists, tuples and dicts with function(leaf) for each leaf."""
    if isinstance(value, dict):
        made = {k: mapped(function, v) for k, v in value.items()}
        return made if type(value) is dict else type(value)(made)
    if isinstance(value, (list, tuple)):
        made = [mapped(function, v) for v in value]
        if hasattr(value, "_fields"):
            return type(value)(*made)
        return type(value)(made) if type(value) in (list, tuple) else made
    return function(value)
