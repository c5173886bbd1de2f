"""Files of TensorFlow 1's programs."""

from headrace._load import _headrace
from headrace.framework.variables import Variable
from headrace.graph.graph_keys import GraphKeys
from headrace.ops.io import io_ops
from headrace.v1.variable_scope import variable_v1


def match_filenames_once(pattern, name=None):
    """A variable with the files that fit a pattern when it is initialized: a local one
    of a graph."""
    if _headrace.is_eager():
        return Variable(io_ops.matching_files(pattern), trainable=False, name=name)
    return variable_v1(
        io_ops.matching_files(pattern),
        name=name,
        trainable=False,
        validate_shape=False,
        collections=[GraphKeys.LOCAL_VARIABLES],
    )
