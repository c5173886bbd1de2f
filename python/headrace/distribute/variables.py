"""Variables with a copy for each replica."""

import functools
import weakref

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack, strategies
from headrace.context.properties import read_only
from headrace.distribute import kinds, values
from headrace.distribute.options import ReduceOp
from headrace.framework.support import plain_scalars
from headrace.framework.variables import ResourceVariable, VariableSynchronization

_SUM, _MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN
_FIRST, _NONE = tf.VariableAggregation.ONLY_FIRST_REPLICA, tf.VariableAggregation.NONE

_SCATTER_OF_ROWS = (
    "{op} is only supported for mirrored variable (variable created within certain "
    "`tf.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: "
    "{aggregation}."
)


_ON_READ = "Variables with `synchronization=ON_READ` doesn't support `{op}`"


class DistributedVariable(ResourceVariable, kinds.DistributedValues):
    """A variable of copies, one for each replica; what is asked of it is asked of the copy
    that is meant here, of the first where none is.

    Attributes:
      values: a tuple of the copies, which are variables of their own.
    """

    # Tapes and graphs' gradients take the copy that is meant.
    _should_act_as_resource_variable = True

    def __init__(self, strategy, copies, aggregation):
        self._distribute_strategy = strategy
        self._copies = tuple(copies)
        self._aggregation = aggregation
        own = weakref.ref(self)
        for copy in copies:
            copy._copy_of = own

    @property
    def values(self):
        """A tuple of the copies."""
        return self._copies

    distribute_strategy = read_only(
        "_distribute_strategy", "The strategy under which it was made."
    )
    _primary = property(lambda self: self._copies[0])
    _key = read_only("_primary._key")
    aggregation = read_only(
        "_aggregation", "The VariableAggregation: how writes of replicas become one."
    )

    def _which(self):
        """The number of the copy that is meant here, or None."""
        return strategies.copy_of(self._distribute_strategy)

    def _get(self):
        """The copy that is meant here, else the first one."""
        which = self._which()
        if which == strategies.SAVED:
            return self._file_variable()
        return self._copies[0 if which is None else which]

    # --- what all copies have alike ---

    name = read_only(
        "_primary.name", 'The name of the first copy, with ":0" behind it.'
    )
    dtype = read_only("_primary.dtype", "The dtype of the value.")
    shape = read_only("_primary.shape", "The static shape of the value.")
    trainable = read_only("_primary.trainable", "Whether tapes watch it.")
    constraint = read_only(
        "_primary.constraint",
        "The function that optimizers apply to new values, or None.",
    )
    _constraint = read_only("_primary._constraint")
    _shared_name = read_only("_primary._shared_name")
    synchronization = read_only(
        "_primary.synchronization", "The VariableSynchronization it was made with."
    )
    initial_value = read_only(
        "_primary.initial_value", "The first value; RuntimeError outside of graphs."
    )
    _initial_value = read_only("_primary._initial_value")

    # --- what the copy here has ---

    handle = property(
        lambda self: self._get().handle,
        doc="The resource of the copy that is meant here.",
    )
    _handle = property(lambda self: self.handle)
    device = property(lambda self: self._get().device, doc="The device of that copy.")
    graph = property(lambda self: self._get().graph, doc="The graph of that copy.")
    op = property(lambda self: self._get().op, doc="The operation of that copy.")

    @property
    def initializer(self):
        """The operation that gives all copies their first values; None outside of
        graphs."""
        found = [copy.initializer for copy in self._copies]
        return None if found[0] is None else tf.group(*found)

    @property
    def _unique_id(self):
        return self._primary._unique_id

    def is_initialized(self, name=None):
        """Whether all copies have a value: a bool tensor."""
        found = [copy.is_initialized() for copy in self._copies]
        return functools.reduce(tf.logical_and, found)

    def _read(self):
        return self._get()._read()

    def _touch(self):
        self._get()._touch()

    def value(self):
        """The value of the copy that is meant here: a tensor."""
        return self._read()

    def read_value(self):
        """The value now, read after what the control dependencies say: a tensor."""
        return tf.identity(self.value())

    read_value_no_copy = value

    def numpy(self):
        """The value as an array of its own; NotImplementedError in graphs."""
        if not _headrace.is_eager():
            raise NotImplementedError(
                "numpy() is only available when eager execution is enabled."
            )
        return plain_scalars.plain(self.value().numpy())

    def eval(self, session=None):
        """The value in a session."""
        return self._get().eval(session)

    def sparse_read(self, indices, name=None):
        """The rows at those indices, without reading the rest."""
        return self._get().sparse_read(indices, name)

    def gather_nd(self, indices, name=None):
        """The slices at places indices [..., depth], without reading the rest."""
        return self._get().gather_nd(indices, name)

    def count_up_to(self, limit):
        """The value; then one more, an OutOfRangeError where that is the limit."""
        return self._get().count_up_to(limit)

    # --- changes ---

    def _written(self, method, value, kwargs):
        """What the method of a copy, or of each of them, gives."""
        which = self._which()
        if which is None:
            return self._write_all(method, value, kwargs)
        copy = self._get()
        if strategies.replica() is None:
            return getattr(copy, method)(values.select(which, value), **kwargs)
        return self._write_in_replica(copy, method, value, kwargs)

    def _write_in_replica(self, copy, method, value, kwargs):
        return getattr(copy, method)(value, **kwargs)

    def _write_all(self, method, value, kwargs):
        """Writes in all copies; in each what `value` has for it."""
        done = []
        for i, copy in enumerate(self._copies):
            with strategies.entering(
                strategies.Mode(self._distribute_strategy, None, i)
            ):
                done.append(getattr(copy, method)(values.select(i, value), **kwargs))
        if stack.plain_graph() is not None:
            return tf.group(*[getattr(d, "op", d) for d in done])
        if all(d is None for d in done):
            return None
        if _headrace.is_eager():
            return self
        return values.regroup(done, values.Mirrored)

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Gives the copies a value: in a replica as the aggregation says, else each of
        them."""
        return self._written("assign", value, dict(name=name, read_value=read_value))

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds to the copies, as assign() gives them a value."""
        return self._written(
            "assign_add", delta, dict(name=name, read_value=read_value)
        )

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Takes from the copies, as assign() gives them a value."""
        return self._written(
            "assign_sub", delta, dict(name=name, read_value=read_value)
        )

    def _assign(self, value):
        self._written("assign", value, dict(read_value=False))

    def _assign_add(self, value):
        self._written("assign_add", value, dict(read_value=False))

    def _assign_sub(self, value):
        self._written("assign_sub", value, dict(read_value=False))

    def _assign_part(self, key, value, name=None):
        """Sets self[key]: of the copy that is meant here, else of all."""
        for copy in self._meant():
            copy._assign_part(key, value, name)
        return self._changed()

    def _meant(self):
        """The copy that is meant here, else all."""
        return self._copies if self._which() is None else [self._get()]

    def _changed(self):
        """What methods give that changed it: itself, in graphs its value."""
        return self if _headrace.is_eager() else self._read()

    def load(self, value, session=None):
        """Sets the value of all copies, of graphs' variables by a session."""
        for copy in self._copies:
            copy.load(value, session)

    # --- checkpoints: one value ---

    def _serialize_to_tensors(self):
        return {"VARIABLE_VALUE": self._saved_value()}

    def _saved_value(self):
        return self._primary.value()

    def _saved_variable(self):
        """The plain variable that SavedModels have in its place, with the value now."""
        return self._file_variable()

    def _mode_of_files(self):
        """The Mode in which functions are traced for SavedModels."""
        return strategies.Mode(self._distribute_strategy, None, strategies.SAVED)

    def _file_variable(self):
        """The same, with any value."""
        return self._primary

    def _restore_from_tensors(self, restored_tensors):
        value = restored_tensors["VARIABLE_VALUE"]
        return tf.group(*self._restored(tf.convert_to_tensor(value)))

    def _restored(self, value):
        return [_operation(copy.assign(value)) for copy in self._copies]

    # --- Python's protocols ---

    def __repr__(self):
        rows = ",\n".join(f"  {i}: {v!r}" for i, v in enumerate(self._copies))
        return f"{type(self).__name__}:{{\n{rows}\n}}"

    __str__ = __repr__

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        with self._distribute_strategy.scope():
            copy = tf.Variable(
                self.value(),
                trainable=self.trainable,
                constraint=self.constraint,
                dtype=self.dtype,
                name=self._shared_name,
                synchronization=self.synchronization,
                aggregation=self.aggregation,
            )
        memo[id(self)] = copy
        return copy

    def __reduce__(self):
        raise TypeError(
            f"{type(self).__name__} cannot be pickled: it belongs to a strategy"
        )


def _operation(done):
    return getattr(done, "op", done) if not _headrace.is_eager() else done


class MirroredVariable(DistributedVariable, kinds.Mirrored):
    """A variable of which all copies have one value, as long as writes in replicas go by
    an aggregation: their sum or mean, or the first replica's."""

    @property
    def synchronization(self):
        """When copies are made equal: a VariableSynchronization, of which AUTO is
        ON_WRITE here."""
        made = self._primary.synchronization
        automatic = made == VariableSynchronization.AUTO
        return VariableSynchronization.ON_WRITE if automatic else made

    def _write_in_replica(self, copy, method, value, kwargs):
        if self._aggregation == _NONE:
            return getattr(copy, method)(value, **kwargs)
        replica = strategies.replica()

        def write(strategy, value):
            reduced = _reduced(strategy, self, value)
            return [
                getattr(one, method)(values.select(i, reduced), **kwargs)
                for i, one in enumerate(self._copies)
            ]

        # The values are read once all copies are written.
        # A number, array or list that all replicas give is no value of each, and has no
        # sum.
        plain = (int, float, np.ndarray, list, tuple)
        if isinstance(value, bool) or not isinstance(value, plain):
            value = _tensor_of(value, self.dtype)
        done = replica.merge_call(write, args=(value,))
        if stack.plain_graph() is not None:
            with tf.control_dependencies([getattr(d, "op", d) for d in done]):
                return copy._read()
        return copy._read() if kwargs.get("read_value", True) else None

    def _scatter(self, op, sparse_delta, name):
        self._check_slices(sparse_delta)
        method = "scatter_" + op.removeprefix("ResourceScatter").lower()
        sums = self._aggregation in (_SUM, _MEAN)
        if sums and method not in ("scatter_add", "scatter_sub"):
            raise NotImplementedError(
                _SCATTER_OF_ROWS.format(op=method, aggregation=self._aggregation)
            )
        return self._written(method, sparse_delta, {"name": name})

    def _scatter_nd(self, op, indices, updates, name):
        for copy in self._meant():
            copy._scatter_nd(op, indices, updates, name)
        return self._changed()


def _tensor_of(value, dtype):
    if isinstance(value, (tf.Tensor, tf.IndexedSlices)):
        return value
    return tf.convert_to_tensor(value, dtype)


def _reduced(strategy, variable, value):
    """What replicas write, as one value."""
    aggregation = variable._aggregation
    if aggregation == _FIRST:
        return values.values_of(value)[0]
    op = ReduceOp.from_variable_aggregation(aggregation)
    if isinstance(value, (list, tuple)):
        if any(map(values.is_distributed, tf.nest.flatten(value))):
            count = len(strategy.extended._devices)
            value = values.PerReplica([values.select(i, value) for i in range(count)])
    if values.is_distributed(value):
        parts = values.values_of(value)
        value = values.PerReplica([_tensor_of(v, variable.dtype) for v in parts])
    return strategy.extended.reduce_to(op, value, destinations=variable)


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies differ: each replica writes its own, and elsewhere it is
    what they are together."""

    _kept_for_saving = None

    def _read(self):
        alone = self._distribute_strategy.num_replicas_in_sync == 1
        if self._which() is not None or alone:
            return super()._read()
        return self._together()

    def _together(self):
        """The one value of all copies. ValueError without an aggregation."""
        if self._aggregation == _FIRST:
            return self._primary._read()
        op = ReduceOp.from_variable_aggregation(self._aggregation)
        found = [copy._read() for copy in self._copies]
        total = tf.add_n(found) if len(found) > 1 else found[0]
        total = self._distribute_strategy.extended._sum_workers(total)
        if op == ReduceOp.SUM:
            return total
        return _divided(total, self._distribute_strategy.num_replicas_in_sync)

    def _saved_value(self):
        return self._together()

    def _saved_variable(self):
        value = self._together()
        if self._aggregation in (_MEAN, _FIRST):
            self.assign(value)  # then each copy is what they are together
        else:
            self._file_variable().assign(value)
        return self._file_variable()

    def _file_variable(self):
        if self._aggregation in (_MEAN, _FIRST):
            return self._primary
        if self._kept_for_saving is None:
            with tf.init_scope():
                value = tf.zeros(self.shape, self.dtype)
                self._kept_for_saving = ResourceVariable(
                    value, trainable=False, name=self._shared_name
                )
        return self._kept_for_saving

    def _restored(self, value):
        return [_operation(copy.assign(v)) for copy, v in self._shares(value)]

    def _shares(self, value):
        """(copy, what it holds of a whole value) pairs."""
        if self._aggregation == _NONE:
            ReduceOp.from_variable_aggregation(_NONE)
        if self._aggregation == _SUM:
            value = tf.convert_to_tensor(value, self.dtype)
            count = self._distribute_strategy.num_replicas_in_sync
            value = tf.cast(value / count, self.dtype)
        return [(copy, value) for copy in self._copies]

    def _write_all(self, method, value, kwargs):
        if values.is_distributed(value):
            return super()._write_all(method, value, kwargs)
        if method != "assign" and self._aggregation == _SUM:
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context "
                "when aggregation is set to `tf.VariableAggregation.SUM`."
            )
        shared = tuple(share for _, share in self._shares(value))
        done = super()._write_all(method, values.PerReplica(shared), kwargs)
        if strategies.in_ring(self._distribute_strategy):
            if kwargs.get("read_value", True) and self._aggregation in (_SUM, _MEAN):
                self._together()  # as all workers read what they wrote
        return done

    def _scatter(self, op, sparse_delta, name):
        method = "scatter_" + op.removeprefix("ResourceScatter").lower()
        raise NotImplementedError(_ON_READ.format(op=method))

    def _scatter_nd(self, op, indices, updates, name):
        raise NotImplementedError(_ON_READ.format(op="scatter_nd"))

    def _assign_part(self, key, value, name=None):
        if self._which() is None and self._aggregation != _FIRST:
            # A part of what the copies are together is nobody's.
            raise NotImplementedError(_ON_READ.format(op="assigning slices"))
        return super()._assign_part(key, value, name)


def _divided(total, count):
    if total.dtype.is_floating or total.dtype.is_complex:
        return total / count
    return total // count
