"""tf.compat.v1.placeholder."""

from headrace._load import _headrace
from headrace.framework import dtypes
from headrace.graph import stack


def placeholder(dtype, shape=None, name=None):
    """A tensor that every run must be fed."""
    if _headrace.is_eager():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return _headrace.raw_op("Placeholder")(
        dtype=dtypes.as_dtype(dtype), shape=shape, name=name
    )


def placeholder_with_default(input, shape, name=None):
    """A tensor that a run may be fed, else `input`."""
    return _headrace.raw_op("PlaceholderWithDefault")(
        input=input, shape=shape, name=name
    )


def get_collection(key, scope=None):
    return stack.default_graph().get_collection(key, scope)


def get_collection_ref(key):
    return stack.default_graph().get_collection_ref(key)


def add_to_collection(name, value):
    stack.default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    stack.default_graph().add_to_collections(names, value)
