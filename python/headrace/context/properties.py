"""Properties that only give what an object keeps."""

import operator


def read_only(path, doc=None):
    """The property that gives the attribute at `path` ("_name", "_core.scope") of its
    object, and that cannot be set."""
    made = property(operator.attrgetter(path))
    made.__doc__ = doc  # not attrgetter's own
    return made
