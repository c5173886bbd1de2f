"""The strategy in force where none is entered: one replica, nothing distributed."""

import contextlib

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.context import stack, strategies
from headrace.distribute import contexts
from headrace.distribute.options import InputContext, ValueContext
from headrace.distribute.strategy import Strategy, StrategyExtended, StrategyV1


def _unsupported(name):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(
            f"{name}() method unsupported by default tf.distribute.Strategy."
        )

    return refuse


class _DefaultReplicaContext(contexts.ReplicaContext):
    """The context of code outside of all scopes: it is the only replica."""

    @property
    def replica_id_in_sync_group(self):
        return 0

    def merge_call(self, merge_fn, args=(), kwargs=None):
        mode = strategies.Mode(self._strategy, is_default=True)
        with strategies.entering(mode):
            return in_graph(merge_fn)(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op, value, options=None):
        return value

    def all_gather(self, value, axis, options=None):
        return value


class _DefaultExtended(StrategyExtended):
    worker_devices = property(_unsupported("worker_devices"))
    parameter_devices = property(_unsupported("parameter_devices"))
    _num_replicas_in_sync = 1

    @contextlib.contextmanager
    def _scope(self, strategy):
        if strategies.strategy() is not None:
            raise RuntimeError("Must not nest tf.distribute.Strategy scopes.")
        yield strategy

    @contextlib.contextmanager
    def colocate_vars_with(self, colocate_with_variable):
        yield

    def variable_created_in_scope(self, v):
        return getattr(v, "_distribute_strategy", None) is None

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        return in_graph(fn)(*args, **(kwargs or {}))

    def _reduce(self, op, value, axis):
        if axis is None:
            return value
        way = tf.reduce_sum if op == contexts.ReduceOp.SUM else tf.reduce_mean
        return way(value, axis=axis)

    def _reduce_to(self, op, value, destinations):
        return value

    def _gather_to(self, value, axis, options=None):
        return value

    def update(self, var, fn, args=(), kwargs=None, group=True):
        result = fn(var, *args, **(kwargs or {}))
        return result if group else (result,)

    def update_non_slot(self, colocate_with, fn, args=(), kwargs=None, group=True):
        result = fn(*args, **(kwargs or {}))
        return result if group else (result,)

    def broadcast_to(self, tensor, destinations):
        return tensor

    def non_slot_devices(self, var_list):
        return min(var_list, key=lambda v: v.name)

    def _update_all(self, fn, *args):
        return fn(*args)

    def _local_results(self, value):
        return (value,)

    def _distribute_values(self, value_fn):
        return value_fn(ValueContext())

    def _distribute_dataset(self, dataset, options):
        return dataset

    def _distribute_from_function(self, dataset_fn, options):
        return dataset_fn(InputContext())

    def _initializable(self, distributed):
        if tf.executing_eagerly():
            return iter(distributed)
        return tf.compat.v1.data.make_initializable_iterator(distributed)


class _OneReplica:
    """A strategy of one replica, whose variables are plain ones."""

    def __init__(self):
        super().__init__(_DefaultExtended(self))
        self._replica_context = _DefaultReplicaContext(self, 0)


class _DefaultDistributionStrategy(_OneReplica, Strategy):
    """The default strategy."""


class _DefaultDistributionStrategyV1(_OneReplica, StrategyV1):
    """The default strategy of programs of TensorFlow 1."""


_made = {}  # by whether operations build graphs by default


def strategy():
    """The one default strategy."""
    of_v1 = stack.builds_graphs_by_default()
    if of_v1 not in _made:
        kinds = _DefaultDistributionStrategy, _DefaultDistributionStrategyV1
        _made[of_v1] = kinds[of_v1]()
    return _made[of_v1]
