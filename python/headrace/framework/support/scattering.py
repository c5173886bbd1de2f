"""Methods of variables that change parts of them, each by an op."""

import re


def of_rows(op, doc):
    """A method that changes rows by IndexedSlices."""

    def scatter(self, sparse_delta, use_locking=False, name=None):
        return self._scatter(op, sparse_delta, name)

    return named(scatter, op, doc)


def of_elements(op, doc):
    """A method that changes elements or slices."""

    def scatter(self, indices, updates, name=None):
        return self._scatter_nd(op, indices, updates, name)

    return named(scatter, op, doc)


def named(function, op, doc):
    """The method that is called like its op: scatter_nd_add for ResourceScatterNdAdd."""
    words = re.findall("[A-Z][a-z]+", op.removeprefix("Resource"))
    function.__name__ = "_".join(words).lower()
    function.__qualname__ = f"Variable.{function.__name__}"
    function.__doc__ = doc
    return function
