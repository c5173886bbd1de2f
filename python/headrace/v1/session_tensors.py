"""Tensors that a session keeps between its runs: tf.compat.v1.get_session_handle."""

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.graph import placeholders


class TensorHandle:
    """A tensor that a session keeps, what a run gives for get_session_handle."""

    def __init__(self, handle, dtype, session):
        self._handle, self._dtype, self._session = handle, dtype, session
        self._goes_with_this = True

    handle = read_only(
        "_handle", "The handle, a string, that get_session_tensor takes."
    )
    dtype = read_only("_dtype", "The dtype of the tensor that is kept.")

    def get_raw_handle(self):
        """The handle; the tensor is kept until delete_session_tensor from now on."""
        self._goes_with_this = False
        return self._handle

    def eval(self):
        """The value as NumPy; TypeError where the tensor was deleted or handed out."""
        holder, value = _reader(self._session.graph, self._dtype)
        return self._session.run(value, {holder: self._kept()})

    to_numpy_array = eval

    def delete(self):
        """Lets the tensor go; TypeError where that was done."""
        handle = self._kept()
        holder, deleter = _deleter(self._session.graph)
        self._goes_with_this = False
        self._session.run(deleter, {holder: handle})

    def _kept(self):
        if self._goes_with_this:
            return self._handle
        raise TypeError(
            f"Persistent tensor {self._handle} may have already been deleted."
        )

    def __str__(self):
        return self._handle

    def __del__(self):
        if self._goes_with_this:
            self._session._dead_handles.append(self._handle)


# Handles whose tensors a session lets go of at once: that is a run of its own.
_MOST_DEAD = 10


def delete_dead(session):
    """Lets tensors go whose TensorHandles have ended, when there are some."""
    dead = session._dead_handles
    if len(dead) < _MOST_DEAD or session.graph.finalized:
        return
    handles = [dead.pop() for _ in range(len(dead))]
    holder, deleter = _deleter(session.graph)
    for handle in handles:
        session.run(deleter, {holder: handle})


def _device_of(handle):
    return str(handle).rpartition(";")[2]


def _kept(graph, key, make):
    if key not in graph._handle_nodes:
        with graph.as_default(), graph.control_dependencies(None):
            graph._handle_nodes[key] = make()
    return graph._handle_nodes[key]


def _reader(graph, dtype):
    return _kept(graph, dtype, lambda: get_session_tensor("", dtype))


def _deleter(graph):
    return _kept(graph, None, lambda: delete_session_tensor(""))


def get_session_handle(data, name=None):
    """What runs of a session give as a TensorHandle, by which the value is kept.

    A later run reads it by get_session_tensor, or is fed with the TensorHandle. It goes
    with the TensorHandle, by its delete(), or with the session.
    """
    if not isinstance(data, _headrace.Tensor):
        raise TypeError("`data` must be of type Tensor.")
    graph = stack.default_graph()
    made = raw.GetSessionHandle(data, name=name)
    graph._session_handles[made._id] = made.op.inputs[0].dtype.base_dtype
    return made


def get_session_tensor(handle, dtype, name=None):
    """(a placeholder for the handle, the tensor of that dtype that it names)."""
    with stack.default_graph().device(_device_of(handle)):
        holder = placeholders.placeholder(dtypes.string)
        return holder, raw.GetSessionTensor(holder, dtype=dtype, name=name)


def delete_session_tensor(handle, name=None):
    """(a placeholder for the handle, the operation that lets go of what it names)."""
    graph = stack.default_graph()
    with graph.device(_device_of(handle)):
        holder = placeholders.placeholder(dtypes.string)
        raw.DeleteSessionTensor(holder, name=name)
        return holder, graph._last_operation()
