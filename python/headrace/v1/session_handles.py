"""Tensors that stay in a session between its runs, known by handles."""

import weakref

from headrace import _api as tf
from headrace._load import raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import dtypes


class TensorHandle:
    """What a run gives for get_session_handle: a tensor that its session keeps.

    The session forgets the tensor with this object, unless get_raw_handle was called.
    """

    def __init__(self, handle, dtype, session):
        self._handle = handle
        self._dtype = dtypes.as_dtype(dtype)
        self._session = session
        self._end = weakref.finalize(self, _forget, session, handle)
        self._end.atexit = False
        self._deleted = False

    handle = read_only("_handle", "The handle, a string, that placeholders are fed.")

    def __str__(self):
        return self._handle

    def get_raw_handle(self):
        """The handle; from now on only delete_session_tensor frees the tensor."""
        self._end.detach()
        return self._handle

    def eval(self):
        """The tensor's value; TypeError once it was deleted."""
        self._check()
        holder, tensor = _reader(self._session.graph, self._dtype)
        return self._session.run(tensor, {holder: self._handle})

    def to_numpy_array(self):
        """The same as eval()."""
        return self.eval()

    def delete(self):
        """Has the session forget the tensor."""
        self._check()
        self._end()
        self._deleted = True

    def _check(self):
        if self._deleted:
            raise TypeError(
                f"Persistent tensor {self._handle} may have already been deleted."
            )


def handles_of(graph):
    """{id of a tensor: dtype}: which of the graph's tensors are handles, of what."""
    return graph.__dict__.get("_session_handles")


def _nodes(graph, key, make):
    """Nodes that a graph has once, outside of all scopes."""
    made = graph.__dict__.setdefault("_session_nodes", {})
    if key not in made:
        with graph.as_default(), tf.control_dependencies(None), tf.name_scope(""):
            made[key] = make()
    return made[key]


def _reader(graph, dtype):
    return _nodes(graph, dtype, lambda: get_session_tensor(None, dtype))


def _forget(session, handle):
    if session._closed:
        return
    holder, deleted = _nodes(session.graph, None, lambda: delete_session_tensor(None))
    session.run(deleted, {holder: handle})


def get_session_handle(data, name=None):
    """A tensor for which runs give a TensorHandle of `data`, which the session keeps."""
    if not tf.is_tensor(data):
        raise TypeError("`data` must be of type Tensor.")
    handle = raw.GetSessionHandle(data, name=name)
    graph = stack.default_graph()
    graph.__dict__.setdefault("_session_handles", {})[handle._id] = data.dtype
    return handle


def get_session_tensor(handle, dtype, name=None):
    """(placeholder of a handle, the tensor of `dtype` that the handle fed to it names)."""
    holder = tf.compat.v1.placeholder(tf.string, name=None)
    return holder, raw.GetSessionTensor(holder, dtype=dtype, name=name)


def delete_session_tensor(handle, name=None):
    """(placeholder of a handle, the operation that has the session forget its tensor)."""
    holder = tf.compat.v1.placeholder(tf.string)
    return holder, raw.DeleteSessionTensor(holder, name=name)


def wrapped(session, tensors, values):
    """The values of a run, handles as TensorHandles."""
    kinds = handles_of(session.graph)
    if not kinds:
        return values
    return [
        TensorHandle(bytes(value).decode(), kinds[t._id], session)
        if t._id in kinds
        else value
        for t, value in zip(tensors, values)
    ]


def fed(tensor, value):
    """What a placeholder of strings is fed for a handle; another one its tensor."""
    if not isinstance(value, TensorHandle):
        return value
    if tensor.dtype == dtypes.string and value._dtype != dtypes.string:
        return value.handle
    return value.eval()
