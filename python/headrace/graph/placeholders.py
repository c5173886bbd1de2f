"""tf.compat.v1.placeholder."""

from headrace._load import raw
from headrace.context import stack
from headrace.framework import dtypes, execution, tensor_shape


def placeholder(dtype, shape=None, name=None):
    """A tensor that every run must be fed."""
    execution.only_in_graphs("tf.placeholder() is not compatible with eager execution.")
    return raw.Placeholder(
        dtype=dtypes.as_dtype(dtype), shape=tensor_shape.as_shape(shape), name=name
    )


def placeholder_with_default(input, shape, name=None):
    """A tensor that a run may be fed, else `input`."""
    return raw.PlaceholderWithDefault(input, shape=shape, name=name)


def get_collection(key, scope=None):
    """What the default graph has under `key`, in order: a list of its own."""
    return stack.default_graph().get_collection(key, scope)


def get_collection_ref(key):
    """The default graph's own list under `key`."""
    return stack.default_graph().get_collection_ref(key)


def add_to_collection(name, value):
    """Puts a value under a name in the default graph."""
    stack.default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    """Puts a value under each of the names in the default graph."""
    stack.default_graph().add_to_collections(names, value)
