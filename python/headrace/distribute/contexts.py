"""In what code runs: in a strategy's scope, for one of its replicas, or in neither."""

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.context import late, stack, strategies
from headrace.context.properties import read_only
from headrace.distribute import values
from headrace.distribute.options import ReduceOp, reduce_op_of

CROSS_REPLICA_NEEDED = (
    "Method requires being in cross-replica context, use "
    "get_replica_context().merge_call()"
)
_NESTED_GRAPH = (
    "`merge_call` called while defining a new graph or a tf.function. This can often "
    "happen if the function `fn` passed to `strategy.run()` contains a nested "
    "`@tf.function`, and the nested `@tf.function` contains a synchronization point, such "
    "as aggregating gradients (e.g, optimizer.apply_gradients), or if the function `fn` "
    "uses a control flow statement which contains a synchronization point in the body. "
    "Such behaviors are not yet supported. Instead, please avoid nested `tf.function`s or "
    "control flow statements that may potentially cross a synchronization boundary, for "
    "example, wrap the `fn` passed to `strategy.run` or the entire `strategy.run` inside "
    "a `tf.function` or move the control flow out of `fn`. If you are subclassing a "
    "`tf.keras.Model`, please avoid decorating overridden methods `test_step` and "
    "`train_step` in `tf.function`."
)


def _default():
    return late.default_strategy()


def has_strategy():
    """Whether a strategy other than the default one is in force on this thread."""
    return strategies.strategy() is not None


def get_strategy():
    """The Strategy in force on this thread: that of the scope entered last, else the
    default one, of one replica."""
    return strategies.strategy() or _default()


def in_cross_replica_context():
    """Whether code runs in a strategy's scope, for all replicas together, as what
    updates the copies of a variable does, too."""
    mode = strategies.mode()
    return mode is not None and mode.replica is None


def get_replica_context():
    """The ReplicaContext of the replica that code runs for; the default strategy's where
    none is entered, None in a strategy's scope."""
    mode = strategies.mode()
    return _default()._replica_context if mode is None else mode.replica


def require_replica_context(context):
    """RuntimeError where another replica's code runs than that of `context`."""
    if get_replica_context() is not context:
        if in_cross_replica_context():
            raise RuntimeError(
                "Need to be inside `call_for_each_replica()`: a replica's code"
            )
        raise RuntimeError("Mismatching ReplicaContext.")


def require_cross_replica(strategy):
    """RuntimeError where code does not run in the scope of that strategy."""
    mode = strategies.mode()
    if mode is not None and mode.strategy is strategy and mode.replica is None:
        return
    if mode is not None and mode.strategy is not strategy:
        raise _mixed(mode.strategy, strategy)
    if mode is None:
        raise RuntimeError(f'Need to be inside "with strategy.scope()" for {strategy}')
    raise RuntimeError(CROSS_REPLICA_NEEDED)


def require_within(strategy):
    """RuntimeError where code runs neither in the scope of that strategy nor in one of its
    replicas."""
    if replica_of(strategy) is None:
        require_cross_replica(strategy)


def replica_of(strategy):
    """The ReplicaContext of the strategy's replica whose code runs; None where none
    does."""
    mode = strategies.mode()
    return mode.replica if mode is not None and mode.strategy is strategy else None


def _mixed(current, strategy):
    return RuntimeError(
        f"Mixing different tf.distribute.Strategy objects: {current} is not {strategy}"
    )


def require_scope_or_none(strategy):
    """RuntimeError within a replica, or the scope of another strategy."""
    mode = strategies.mode()
    if mode is None:
        return
    if mode.replica is not None:
        raise RuntimeError(CROSS_REPLICA_NEEDED)
    if mode.strategy is not strategy:
        raise _mixed(mode.strategy, strategy)


def entering(strategy, replica=None, copy=None):
    """A context in which code runs in a strategy's scope, for a replica, or for one copy
    of its variables."""
    return strategies.entering(strategies.Mode(strategy, replica, copy))


class ReplicaContextBase:
    """What the code of a replica knows, and how replicas meet.

    Attributes:
      strategy: the Strategy whose replica it is.
    """

    def __init__(self, strategy, replica_id_in_sync_group):
        self._strategy = strategy
        self._replica = replica_id_in_sync_group
        self._thread_context = None
        self._graph = stack.current()

    strategy = read_only("_strategy", "The Strategy whose replica it is.")

    def __enter__(self):
        if strategies.entered_here() and strategies.replica() is not None:
            raise RuntimeError("a replica's code cannot enter another replica")
        self._thread_context = entering(self._strategy, self, self._copy)
        self._thread_context.__enter__()
        return self

    def __exit__(self, *error):
        return self._thread_context.__exit__(*error)

    @property
    def _copy(self):
        """The number of the replica; 0 where a tensor says it."""
        known = self._replica
        return known if isinstance(known, int) else int(tf.get_static_value(known) or 0)

    @property
    def replica_id_in_sync_group(self):
        """The number of the replica: an int32 scalar."""
        return tf.convert_to_tensor(self._replica_id_in_sync_group, tf.int32)

    @property
    def _replica_id_in_sync_group(self):
        return self._replica + self._strategy.extended._replica_offset

    @property
    def num_replicas_in_sync(self):
        """How many replicas compute a step."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self):
        """The devices of the replica: a tuple of their names."""
        require_replica_context(self)
        return [[self._strategy.extended.worker_devices[self._copy]]]

    def merge_call(self, merge_fn, args=(), kwargs=None):
        """What merge_fn(strategy, ...) gives, called once for all replicas when each has
        called this, in the strategy's scope: its arguments are PerReplica where replicas
        gave different ones. Each replica gets its part of the result.

        RuntimeError in a tf.function or branch within the replica's code, and where some
        replicas do not call it.
        """
        require_replica_context(self)
        graph = stack.current()
        # An init_scope is left before the others can build anything in the replica's graph.
        if graph is not self._graph and graph is not stack.outside_functions():
            raise RuntimeError(_NESTED_GRAPH)
        return self._merge_call(in_graph(merge_fn), tuple(args), dict(kwargs or {}))

    def _merge_call(self, merge_fn, args, kwargs):
        """The only replica: the merge is at once."""
        with entering(self._strategy):
            return merge_fn(self._strategy, *args, **kwargs)

    def __str__(self):
        return f"{type(self).__name__}(replica {self._replica})"


class ReplicaContext(ReplicaContextBase):
    """What the code of a replica knows, and how replicas meet. Strategy.run makes them."""

    __doc__ = ReplicaContextBase.__doc__

    def all_reduce(self, reduce_op, value, options=None):
        """The sum or mean of all replicas' values, for each of them.

        Args:
          reduce_op: a ReduceOp, or its name.
          value: a structure of tensors and IndexedSlices.
          options: CommunicationOptions, in the place of the strategy's; of one process
            they change nothing.
        """
        op = reduce_op_of(reduce_op)
        if isinstance(op, str) or not isinstance(op, ReduceOp):
            raise ValueError(f"{reduce_op!r} is not a valid ReduceOp")
        _check_options(options)
        flat = tf.nest.flatten(value)
        kept = [None if isinstance(x, tf.IndexedSlices) else x for x in flat]
        dense = [i for i, x in enumerate(kept) if x is not None]
        for i in dense:
            flat[i].dtype  # noqa: B018  (AttributeError for what is no tensor)

        @tf.custom_gradient
        def reduced(*xs):
            ys = self._reduce_together(op, list(xs), options)
            return ys, lambda *dys: self.all_reduce(op, list(dys), options)

        found = list(flat)
        if dense:
            given = reduced(*[flat[i] for i in dense])
            given = given if isinstance(given, (list, tuple)) else [given]
            for i, y in zip(dense, given):
                found[i] = y
        rows = [i for i, x in enumerate(kept) if x is None]
        if rows:
            parts = self._reduce_together(op, [flat[i] for i in rows], options)
            for i, y in zip(rows, parts):
                found[i] = y
        return tf.nest.pack_sequence_as(value, found)

    def _reduce_together(self, op, flat, options):
        def merge(strategy, *given):
            return strategy.extended._reduce_brought(op, given, options)

        return self.merge_call(merge, args=tuple(flat))

    def all_gather(self, value, axis, options=None):
        """The values of all replicas after each other along an axis, for each of them.

        Args:
          value: a structure of tensors of one rank, equal but for that dimension.
          axis: the dimension.
          options: CommunicationOptions, in the place of the strategy's; of one process
            they change nothing.

        Raises:
          NotImplementedError: for IndexedSlices.
        """
        _check_options(options)
        flat = tf.nest.flatten(value)
        if any(isinstance(x, tf.IndexedSlices) for x in flat):
            raise NotImplementedError("all_gather does not support IndexedSlices")

        @tf.custom_gradient
        def gathered(*xs):
            ys = self._gather_together(list(xs), axis, options)
            sizes = [tf.shape(x)[axis] for x in xs]

            def gradient(*dys):
                # Of the sum of what all replicas say, the rows that came from here.
                sums = self.all_reduce(ReduceOp.SUM, list(dys), options)
                return [
                    _own_part(total, size, self, axis)
                    for total, size in zip(sums, sizes)
                ]

            return ys, gradient

        found = gathered(*map(tf.convert_to_tensor, flat))
        found = found if isinstance(found, (list, tuple)) else [found]
        return tf.nest.pack_sequence_as(value, list(found))

    def _gather_together(self, flat, axis, options):
        def merge(strategy, *given):
            gather = strategy.extended._gather_to
            return [gather(value, axis, options) for value in given]

        return self.merge_call(merge, args=tuple(flat))


def _check_options(options):
    if options is not None:
        options.bytes_per_pack  # noqa: B018  (AttributeError for what are no options)


def _own_part(total, size, context, axis):
    """The part of a gathered tensor that came from a replica."""

    def before(strategy, size):
        sizes = values.values_of(size)
        sizes = sizes * strategy.num_replicas_in_sync if len(sizes) == 1 else sizes
        starts = [
            tf.add_n([tf.zeros_like(size0), *sizes[:i]])
            for i, size0 in enumerate(sizes)
        ]
        return values.PerReplica(starts) if len(starts) > 1 else starts[0]

    start = context.merge_call(before, args=(size,))
    return tf.gather(total, tf.range(start, start + size), axis=axis)


def experimental_set_strategy(strategy):
    """Puts a strategy in force on all threads, as if its scope were entered; None takes it
    away. RuntimeError within a scope."""
    if strategies.entered_here():
        raise RuntimeError(
            "Must not be called inside a `tf.distribute.Strategy` scope."
        )
    old = _scope.pop("entered", None)
    if old is not None:
        old.__exit__(None, None, None)
    strategies.set_everywhere(None)
    if strategy is not None:
        strategies.set_everywhere(strategies.Mode(strategy))
        entered = _scope["entered"] = strategy.extended._creator_scope()
        entered.__enter__()


_scope = {}  # what experimental_set_strategy entered
