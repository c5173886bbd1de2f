"""What the assignments of a plain graph's variables return."""

from headrace._load import raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.graph.by_identity import ByIdentity


class _UnreadVariable(ByIdentity):
    """A variable behind an assignment: whatever reads or changes it waits for that.

    Each use as a tensor reads anew. What sessions fetch is read where the assignment
    was made. It is no `tf.Variable`, as upstream in graphs.
    """

    _is_tensor_like = True

    def __init__(self, variable, assignment):
        self._variable, self.op = variable, assignment
        self._snapshot = self.value()

    name = read_only("op.name")
    handle = read_only("_variable.handle")
    dtype = read_only("_variable.dtype")
    shape = read_only("_variable.shape")
    graph = read_only("_variable.graph")
    device = read_only("_variable.device")
    trainable = read_only("_variable.trainable")
    constraint = read_only("_variable.constraint")
    synchronization = read_only("_variable.synchronization")
    aggregation = read_only("_variable.aggregation")
    initializer = None

    def _behind(self):
        """A context whose operations wait for the assignment."""
        return stack.current().control_dependencies([self.op])

    def value(self):
        """The value behind the assignment, read here."""
        with self._behind():
            return raw.ReadVariableOp(
                self.handle, dtype=self.dtype, name="ReadVariableOp"
            )

    read_value = _operand = value

    def eval(self, session=None):
        """The value in `session`, or the default one."""
        return self._snapshot.eval(session=session)

    def is_initialized(self, name=None):
        """Whether it has a value: a bool tensor."""
        return raw.VarIsInitializedOp(self.handle, name=name)

    def _as_graph_element(self):
        return self._snapshot

    def _graph_element(self):
        return self._snapshot

    def _waited_for(self):
        """The operation that control dependencies on this wait for."""
        return self.op

    def __tf_tensor__(self, dtype=None, name=None):
        if dtype is not None and not self.dtype.is_compatible_with(dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type {dtype.name} for "
                f"`tf.Variable of type {self.dtype.name}. (Variable: {self!r})"
            )
        return self.value()

    def __getitem__(self, key):
        with self._behind():
            return self._variable[key]

    def __bool__(self):
        return bool(self._snapshot)


def _of_variable(name):
    """The variable's method of that name, behind the assignment."""

    def method(self, *args, **kwargs):
        with self._behind():
            return getattr(self._variable, name)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The variable's {name}(), which waits for the assignment."
    setattr(_UnreadVariable, name, method)


def _add_methods():
    changes = "assign assign_add assign_sub batch_scatter_update sparse_read gather_nd"
    rows = "add sub mul div max min update nd_add nd_sub nd_update nd_max nd_min"
    for name in changes.split() + [f"scatter_{n}" for n in rows.split()]:
        _of_variable(name)


_add_methods()
