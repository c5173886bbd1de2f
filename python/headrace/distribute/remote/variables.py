"""Variables on parameter servers."""

import itertools
import secrets
import weakref

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.distribute import values, variables
from headrace.distribute.remote.tasks import CONTAINER, building

_process, _numbers = secrets.token_hex(8), itertools.count()


_READS = ("ReadVariableOp", "VarIsInitializedOp")
_OPS = {
    "assign": "AssignVariableOp",
    "assign_add": "AssignAddVariableOp",
    "assign_sub": "AssignSubVariableOp",
}


class Store:
    """A variable's value on a server, `home`, and the operations on it in a session of
    the server's."""

    def __init__(self, home, name, dtype, shape):
        self.home, self.server = home, home.for_variable()
        self._dtype, self._shape = dtype, shape
        self.name = f"{name}_{_process}_{next(_numbers)}"
        self._traced = {}  # functions, by what they do
        with self.server.lock:
            handle = self.handle(self.server)
            with building(self.server.graph):
                self._nodes = {op: self._made(op, handle) for op in self._ops()}

    def handle(self, task):
        """The resource in the graph of a task."""

        def make():
            with tf.device(f"{self.server.name}/device:CPU:0"):
                return raw.VarHandleOp(
                    dtype=self._dtype,
                    shape=self._shape,
                    container=CONTAINER,
                    shared_name=self.name,
                )

        return task.resource(self.name, make)

    def _ops(self):
        """What is asked of the variable's kind, made at once, as graphs grow slowly."""
        is_number = self._dtype.is_floating or self._dtype.is_integer
        adding = (*_OPS.values(),) if is_number or self._dtype.is_complex else ()
        return dict.fromkeys(("AssignVariableOp", *adding, *_READS))

    def _made(self, op, handle):
        """(what is fetched, what is run, what is fed) of an op of the variable."""
        if op == "ReadVariableOp":
            return [raw.ReadVariableOp(handle, dtype=self._dtype)], [], []
        if op == "VarIsInitializedOp":
            return [raw.VarIsInitializedOp(handle)], [], []
        value = tf.compat.v1.placeholder(self._dtype, self._shape)
        done = _headrace.raw_op(op)(resource=handle, value=value)
        return [], [done._node], [value]

    def read(self, op="ReadVariableOp"):
        """The value: a tensor."""
        with self.server.lock:
            self.server.collect()
            fetched, _, _ = self._nodes[op]
            found = self.server.run(fetched)[0]
        return _headrace.make_tensor(found, fetched[0].dtype)

    def write(self, op, value):
        """Has the server run an assignment."""
        with self.server.lock:
            self.server.collect()
            _, targets, feeds = self._nodes[op]
            self.server.run([], targets, feeds, [value])

    def run(self, key, function, args):
        """What a traced function of the variable gives, run on its server."""
        if key not in self._traced:
            self._traced[key] = tf.function(function, autograph=False)
        concrete = self._traced[key].get_concrete_function(*args)
        with self.server.lock:
            return self.server.call(concrete, concrete._leaves(args, {}))


class RemoteVariable(variables.DistributedVariable):
    """A variable whose value is kept by a parameter server. Traced functions see a
    variable of theirs, and a server's resource is put in its place; elsewhere each read
    and change is a call to the server."""

    def __init__(self, strategy, server, local, first):
        super().__init__(strategy, [local], local.aggregation)
        self._store = Store(server, local._shared_name, local.dtype, local.shape)
        local._device = f"{server.name}/device:CPU:0"
        self._store.write("AssignVariableOp", first)
        weakref.finalize(self, self._store.server.leave, self._store.name)

    _on_task = property(lambda self: self._store.handle)
    _is_cast = property(
        lambda self: self._primary._is_cast,
        lambda self, is_cast: setattr(self._primary, "_is_cast", is_cast),
    )
    _stored_dtype = property(lambda self: self._primary._stored_dtype)

    def _ask(self, method, *args, **kwargs):
        """What a method of the variable gives: where operations run at once, it is traced
        and run on the server."""
        local = self._primary

        def call(*args):
            done = getattr(local, method)(*args, **kwargs)
            return None if done is local or isinstance(done, tf.Variable) else done

        if not _headrace.is_eager():
            return getattr(local, method)(*args, **kwargs)
        return self._store.run((method, *sorted(kwargs.items())), call, args)

    def _read(self):
        local = self._primary
        if not _headrace.is_eager():
            return local._read()
        local._touch()
        value = self._store.read()
        if self._is_recorded():
            given = [local.handle]
            _headrace.record_custom("ReadVariableOp", given, [value], list)
        return local._as_read(value)

    def _is_recorded(self):
        """Whether a tape wants to know what is read here."""
        return _headrace.is_eager() and self.trainable and _headrace.has_recorders()

    def is_initialized(self, name=None):
        """Whether the server has a value: a bool tensor."""
        if not _headrace.is_eager():
            return self._primary.is_initialized(name)
        return self._store.read("VarIsInitializedOp")

    def sparse_read(self, indices, name=None):
        """The rows at those indices; the rest is not sent."""
        if self._is_recorded():
            return tf.gather(self._read(), indices)
        return self._ask("sparse_read", tf.convert_to_tensor(indices))

    def gather_nd(self, indices, name=None):
        """The slices at places indices [..., depth]; the rest is not sent."""
        if self._is_recorded():
            return tf.gather_nd(self._read(), indices)
        return self._ask("gather_nd", tf.convert_to_tensor(indices))

    def count_up_to(self, limit):
        """The value; then one more, an OutOfRangeError where that is the limit."""
        return self._ask("count_up_to", limit=limit)

    def _written(self, method, value, kwargs):
        local = self._primary
        value = values.values_of(value)[0]
        if not _headrace.is_eager():
            return getattr(local, method)(value, **kwargs)
        if isinstance(value, tf.Variable):
            value = value.value()
        value = self._fitting(tf.convert_to_tensor(value, local._stored_dtype), method)
        self._store.write(_OPS[method.removeprefix("_")], value)
        return self if kwargs.get("read_value", True) else None

    def _fitting(self, value, method):
        if self.shape.is_compatible_with(value.shape):
            return value
        raise ValueError(
            f"Cannot assign value to variable ' {self.name}': Shape mismatch.The "
            f"variable shape {self.shape}, and the assigned value shape {value.shape} "
            "are incompatible."
        )

    def _scatter(self, op, sparse_delta, name):
        self._check_slices(sparse_delta)
        method = "scatter_" + op.removeprefix("ResourceScatter").lower()
        if not _headrace.is_eager():
            return getattr(self._primary, method)(sparse_delta, name=name)
        given = [
            tf.convert_to_tensor(sparse_delta.values, self._stored_dtype),
            tf.convert_to_tensor(sparse_delta.indices),
        ]
        local = self._primary

        def call(values, indices):
            getattr(local, method)(tf.IndexedSlices(values, indices))

        self._store.run(method, call, given)
        return self

    def _scatter_nd(self, op, indices, updates, name):
        if not _headrace.is_eager():
            return self._primary._scatter_nd(op, indices, updates, name)
        method = "scatter_nd_" + op.removeprefix("ResourceScatterNd").lower()
        self._ask(method, tf.convert_to_tensor(indices), tf.convert_to_tensor(updates))
        return self

    def _assign_part(self, key, value, name=None):
        if not _headrace.is_eager():
            return self._primary._assign_part(key, value, name)
        local = self._primary

        def call(value):
            local._assign_part(key, value, name)

        value = tf.convert_to_tensor(value, local._stored_dtype)
        self._store.run(("part", repr(key)), call, (value,))
        return self

    def _saved_value(self):
        return self.value()

    def _restored(self, value):
        done = self.assign(value)
        return [] if _headrace.is_eager() else [getattr(done, "op", done)]

    def _saved_variable(self):
        """The variable that functions captured, with the server's value: this process
        has a copy from then on."""
        self._primary._assign(self.value())
        return self._primary

    def __repr__(self):
        return tf.Variable.__repr__(self)

    __str__ = __repr__
