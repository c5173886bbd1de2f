"""tf.distribute.Strategy and StrategyExtended: what strategies have in common.

A strategy is a list of devices, one a replica, and a way to make variables. What
subclasses differ in lies in their extended object.
"""

import contextlib
import weakref

from headrace import _api as tf
from headrace._load import _headrace
from headrace.autograph.calls import do_not_convert, in_graph
from headrace.context import stack, strategies
from headrace.context.properties import read_only
from headrace.distribute import contexts, cross_device, datasets, replicas, values
from headrace.distribute.options import InputOptions, ValueContext, reduce_op_of
from headrace.distribute.variables import MirroredVariable, SyncOnReadVariable
from headrace.framework.settings import config
from headrace.framework.variables import VariableSynchronization, mode_of, whole_of

_SYNC = VariableSynchronization


def canonical(device):
    """The full name of a device of this process."""
    spec = tf.DeviceSpec(job="localhost", replica=0, task=0, device_type="CPU")
    made = spec.make_merged_spec(tf.DeviceSpec.from_string(device))
    if made.device_index is None:
        made = made.replace(device_index=0)
    return made.to_string()


def all_devices():
    """The devices to train on unless told: all GPUs, else all CPUs."""
    found = config.list_logical_devices("GPU") or config.list_logical_devices("CPU")
    return [d.name for d in found]


class StrategyBase:
    """What trains on several devices.

    Attributes:
      extended: the StrategyExtended with what writers of libraries need.
    """

    def __init__(self, extended):
        self._extended = extended

    extended = read_only(
        "_extended", "The StrategyExtended with what writers of libraries need."
    )

    @property
    def num_replicas_in_sync(self):
        """How many replicas compute a step."""
        return self._extended._num_replicas_in_sync

    @property
    def cluster_resolver(self):
        """The ClusterResolver of a strategy of several workers, else None."""
        return self._extended._cluster_resolver

    def scope(self):
        """A context whose variables are the strategy's. RuntimeError within a replica,
        and in the scope of another strategy."""
        return self._extended._scope(self)

    def run(self, fn, args=(), kwargs=None, options=None):
        """What fn(*args, **kwargs) gives for each replica, PerReplica where that differs.

        Args:
          fn: a function; of distributed values in args and kwargs each call gets its own.
          args: a tuple, or a list.
          kwargs: a dict, or None.
          options: RunOptions; they change nothing.

        Raises:
          TypeError: for what is no function.
          RuntimeError: within a replica.
        """
        del options
        if not isinstance(args, (list, tuple)):
            raise ValueError(
                f"positional args must be a list or tuple, got {type(args)}"
            )
        return self._extended.call_for_each_replica(fn, tuple(args), kwargs)

    def reduce(self, reduce_op, value, axis):
        """One tensor of the values of replicas: their sum or mean.

        Args:
          reduce_op: a ReduceOp, or its name.
          value: what run() gave, or a structure of that.
          axis: a dimension that is summed over, too, or of which it is the mean: values
            count by how many they are. None for none.
        """
        op = reduce_op_of(reduce_op)
        if isinstance(op, str):
            raise ValueError(f"{reduce_op!r} is not a valid ReduceOp")
        return values.map_leaves(lambda v: self._extended._reduce(op, v, axis), value)

    def gather(self, value, axis):
        """The values of replicas after each other along an axis: one tensor."""
        return values.map_leaves(lambda v: self._extended._gather(v, axis), value)

    def experimental_distribute_dataset(self, dataset, options=None):
        """A DistributedDataset whose elements are a global batch divided among replicas.

        Args:
          dataset: a batched Dataset.
          options: InputOptions.

        Raises:
          IndexError: for a dataset that has no batches.
          NotImplementedError: with InputReplicationMode.PER_REPLICA.
        """
        return self._extended._distribute_dataset(dataset, options or InputOptions())

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """A DistributedDataset of dataset_fn(InputContext): elements of its Dataset go to
        replicas in turn, as they are."""
        options = options or InputOptions()
        return self._extended._distribute_from_function(dataset_fn, options)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        """What value_fn(ValueContext) gives for each replica: PerReplica."""
        return self._extended._distribute_values(value_fn)

    def experimental_local_results(self, value):
        """A tuple of the values of this worker's replicas."""
        return self._extended._local_results(value)

    # --- older names ---

    def unwrap(self, value):
        """The same as experimental_local_results."""
        return self.experimental_local_results(value)

    def group(self, value, name=None):
        """An operation behind what replicas have done."""
        return tf.group(*self.experimental_local_results(value), name=name)

    def configure(
        self, session_config=None, cluster_spec=None, task_type=None, task_id=None
    ):
        """Tells a strategy of several workers where it is; others want nothing."""
        self._extended._configure(session_config, cluster_spec, task_type, task_id)

    def update_config_proto(self, config_proto):
        """A copy of a ConfigProto for the strategy's sessions."""
        made = type(config_proto)()
        made.CopyFrom(config_proto)
        self._extended._update_config(made)
        return made

    def colocate_vars_with(self, colocate_with_variable):
        """The same as extended.colocate_vars_with."""
        return self._extended.colocate_vars_with(colocate_with_variable)

    def make_dataset_iterator(self, dataset):
        """A DistributedIterator of a batched Dataset, divided among replicas."""
        return self._extended._initializable(
            self._extended._distribute_dataset(dataset, InputOptions())
        )

    def make_input_fn_iterator(self, input_fn, replication_mode=None):
        """A DistributedIterator of input_fn(InputContext)'s Dataset."""
        del replication_mode
        return self._extended._initializable(
            self._extended._distribute_from_function(input_fn, InputOptions())
        )

    def experimental_run(self, fn, input_iterator=None):
        """What run() gives for the next element of an iterator, if there is one."""
        args = () if input_iterator is None else (input_iterator.get_next(),)
        return self.run(fn, args=args)

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        raise RuntimeError("Must only deepcopy DistributionStrategy.")


class Strategy(StrategyBase):
    """What trains on several devices: made of a StrategyExtended, whose subclasses say
    how."""


class StrategyV1(StrategyBase):
    """A Strategy of TensorFlow 1: iterators of graphs are initialized by a session."""

    def experimental_make_numpy_dataset(self, numpy_input, session=None):
        """A Dataset of the rows of arrays: a structure of them."""
        del session
        return tf.data.Dataset.from_tensor_slices(numpy_input)

    def reduce(self, reduce_op, value, axis=None):
        """One tensor of the values of replicas: their sum or mean; `axis` is a dimension
        that is summed over, too."""
        return super().reduce(reduce_op, value, axis)


class StrategyExtended:
    """What writers of libraries need of a strategy.

    Subclasses give `_devices`, a device for each replica, and make variables by
    _create_variable().
    """

    _cluster_resolver = None
    _parameter_device = None  # the one device of all variables, if there is one
    experimental_require_static_shapes = False
    experimental_between_graph = False
    experimental_should_init = True
    should_checkpoint = True
    should_save_summary = True
    _shards = 1, 0  # of how many workers' input which
    _replica_offset = 0  # the number of this worker's first replica
    _rings = False  # whether workers meet in TensorFlow's order, by its messages

    def _in_multi_worker_mode(self):
        """Whether other workers compute the same: programs that write files ask it."""
        return False

    def __init__(self, container_strategy):
        self._container = weakref.ref(container_strategy)
        self._devices = ()
        self._cross_device = cross_device.ReductionToOneDevice()
        self._run_functions = weakref.WeakKeyDictionary()

    def _container_strategy(self):
        found = self._container()
        assert found is not None
        return found

    @property
    def _num_replicas_in_sync(self):
        return len(self._devices)

    def _in_cluster(self, device):
        """The device's name as other tasks of the cluster have it."""
        return device

    @property
    def worker_devices(self):
        """A tuple of the devices, one a replica."""
        return tuple(map(self._in_cluster, self._devices))

    @property
    def _own_parameter_devices(self):
        only = self._parameter_device
        return tuple(self._devices) if only is None else (only,)

    @property
    def parameter_devices(self):
        """A tuple of the devices that variables lie on."""
        return tuple(map(self._in_cluster, self._own_parameter_devices))

    @property
    def worker_devices_by_replica(self):
        """A list of devices a replica."""
        return [[d] for d in self.worker_devices]

    experimental_enable_get_next_as_optional = True

    def _configure(self, session_config, cluster_spec, task_type, task_id):
        """Other strategies than those of several workers want nothing."""

    _isolates_sessions = False  # whether its sessions share no state

    def _update_config(self, config):
        """Sets what the strategy's sessions need in a ConfigProto."""
        if self._isolates_sessions:
            config.isolate_session_state = True

    # --- scopes and variables ---

    @contextlib.contextmanager
    def _scope(self, strategy):
        contexts.require_scope_or_none(strategy)
        if strategies.entered_here():
            with contexts.entering(strategy):  # the same scope again
                yield strategy
            return
        with contexts.entering(strategy), self._creator_scope():
            yield strategy

    @contextlib.contextmanager
    def _creator_scope(self):
        def create(next_creator, **kwargs):
            mode = strategies.mode()
            if mode is None or mode.strategy is not self._container():
                return next_creator(**kwargs)
            # Copies of a variable being made, or a replica's code, which shares them.
            if mode.copy is not None:
                return next_creator(**kwargs)
            return self._create_variable(next_creator, **kwargs)

        with tf.variable_creator_scope(create), tf.device(self._parameter_device):
            yield

    def _shared_creator(self, replica, made):
        """Makes the variables of replicas' code: the first one's, which others share."""
        taken = [0]

        def create(next_creator, **kwargs):
            mode = strategies.mode()
            if mode.replica is None and mode.copy is not None:
                return next_creator(**kwargs)
            if mode.replica is None:
                return self._create_variable(next_creator, **kwargs)
            if replica == 0:
                with contexts.entering(self._container_strategy()):
                    made.append(self._create_variable(next_creator, **kwargs))
                return made[-1]
            taken[0] += 1
            if taken[0] > len(made):
                raise RuntimeError(
                    f"replica {replica} makes a variable that the first one does not"
                )
            return made[taken[0] - 1]

        return create

    def _create_variable(self, next_creator, **kwargs):
        """A variable of the strategy; `next_creator` makes a copy."""
        raise NotImplementedError("must be implemented in descendants")

    def _mirrored(self, next_creator, kwargs):
        """A variable of a copy on each device."""
        kwargs = self._checked(kwargs)
        if kwargs["synchronization"] == _SYNC.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with "
                "tf.distribute strategy. Please change the `synchronization` for "
                f"variable: {kwargs.get('name')}"
            )
        copies = []
        for i, device in enumerate(self._devices):
            given = dict(kwargs)
            if i:
                given["name"] = f"{copies[0]._shared_name.split('/')[-1]}/replica_{i}"
                given["initial_value"] = _value_of_first(copies[0])
            with (
                contexts.entering(self._container_strategy(), None, i),
                tf.device(device),
                _named_like_first(copies),
            ):
                copies.append(next_creator(**given))
        on_read = kwargs.get("synchronization") == _SYNC.ON_READ
        kind = SyncOnReadVariable if on_read else MirroredVariable
        strategy = self._container_strategy()
        made = kind(strategy, copies, kwargs.get("aggregation", _no_aggregation()))
        return collected(made, copies)

    def _checked(self, kwargs):
        name = kwargs.get("name")
        sync = mode_of(_SYNC, kwargs.get("synchronization"), "synchronization", name)
        kind, given = tf.VariableAggregation, kwargs.get("aggregation")
        aggregation = mode_of(kind, given, "aggregation", name)
        return {**kwargs, "synchronization": sync, "aggregation": aggregation}

    def variable_created_in_scope(self, v):
        """Whether a variable was made in the scope of this strategy."""
        return getattr(v, "_distribute_strategy", None) is self._container_strategy()

    def colocate_vars_with(self, colocate_with_variable):
        """A context whose variables lie where that one does; each copy beside its own.
        RuntimeError outside of the scope and of replicas, ValueError for a variable of
        another scope."""
        contexts.require_within(self._container_strategy())
        self._check_own(colocate_with_variable)
        return contextlib.nullcontext()  # copies lie on the replicas' devices anyway

    def _near(self, variable):
        """A context whose variables lie where that one does: all do."""
        del variable
        return contextlib.nullcontext()

    def _check_own(self, variable):
        """ValueError for a variable that was made in another scope."""
        if not self.variable_created_in_scope(variable):
            raise ValueError(
                "`colocate_vars_with` must only be passed a variable created in this "
                f"tf.distribute.Strategy.scope(), not: {variable}"
            )

    def value_container(self, value):
        """The distributed variable that a variable is a copy of; others themselves."""
        found = whole_of(value)
        return value if found is None else found

    def read_var(self, v):
        """The value of a variable: a tensor."""
        return v.read_value()

    def non_slot_devices(self, var_list):
        """The devices of what an optimizer has for all variables."""
        del var_list
        return self.parameter_devices

    # What has Keras' steps run elsewhere: a function of a tf.function and a batch that
    # gives a RemoteValue. None: they are called.
    _schedule = None

    # --- replicas ---

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        """What Strategy.run gives."""
        strategy = self._container_strategy()
        contexts.require_scope_or_none(strategy)
        kwargs = dict(kwargs or {})
        if isinstance(fn, _headrace.FunctionBase) and stack.executing_eagerly():
            if not config.functions_run_eagerly():
                return self._run_function(fn, args, kwargs)
        if isinstance(fn, _headrace.FunctionBase):
            fn = fn.python_function
        with self._run_scope(strategy):
            results = self._run_all(strategy, in_graph(fn), args, kwargs)
        return values.regroup(results)

    @contextlib.contextmanager
    def _run_scope(self, strategy):
        with contexts.entering(strategy):
            yield

    def _run_all(self, strategy, fn, args, kwargs):
        return replicas.Meeting(strategy, self._devices, fn, args, kwargs).run()

    def _run_function(self, fn, args, kwargs):
        """The replicas of a tf.function: one trace of all of them."""
        traced = self._run_functions.get(fn)
        if traced is None:
            python_function = fn.python_function
            own = weakref.ref(self)

            def all_replicas(args, kwargs):
                return own().call_for_each_replica(python_function, args, kwargs)

            options = {"autograph": fn._options["autograph"]}
            traced = tf.function(all_replicas, **options)
            self._run_functions[fn] = traced
        return traced(args, kwargs)

    def _run_shares(self, fn, batch):
        """The results of fn(share) for each replica, of a global batch in equal parts, or
        of one whose leaves are values of replicas."""
        strategy, count = self._container_strategy(), len(self._devices)
        if any(map(values.is_distributed, tf.nest.flatten(batch))):
            shares = [values.select(i, batch) for i in range(count)]
        else:
            shares = datasets.own_shares(self, batch)
        with self._run_scope(strategy):
            share = values.Parts(shares)
            return self._run_all(strategy, fn, (share,), {})

    # --- values ---

    def _reduce(self, op, value, axis):
        strategy = self._container_strategy()
        contexts.require_scope_or_none(strategy)
        if axis is None:
            with contexts.entering(strategy):
                found = self._reduce_to(op, value, self._devices[0])
            return values.values_of(found)[0]
        total, count = self._local_sums(value, axis)
        if op == contexts.ReduceOp.SUM:
            return total
        dtype = total.dtype if total.dtype.is_floating else tf.float64
        return tf.cast(total, dtype) / tf.cast(count, dtype)

    def _local_sums(self, value, axis):
        """(sum over a dimension, its size) of this worker's replicas together."""
        given = [tf.convert_to_tensor(v) for v in values.values_of(value)]
        axes = axis if isinstance(axis, (list, tuple)) else [axis]
        for rank in {v.shape.rank for v in given} - {None}:
            if bad := [a for a in axes if not -rank <= a < rank]:
                raise ValueError(
                    f"Invalid reduction dimension {bad[0]} for input with {rank} "
                    "dimensions."
                )
        sums = [tf.reduce_sum(v, axis=axis) for v in given]
        counts = [
            tf.reduce_prod(
                tf.gather(
                    tf.shape(v, out_type=tf.int64), [a % tf.rank(v) for a in axes]
                )
            )
            for v in given
        ]
        total = tf.add_n(sums) if len(sums) > 1 else sums[0]
        return total, tf.add_n(counts) if len(counts) > 1 else counts[0]

    def _sum_workers(self, total):
        """The sum of what workers have each; other strategies have one."""
        return total

    def _reduce_each(self, op, given, destinations=None, options=None):
        """A list of what _reduce_to gives, where each value itself is unless told; options
        are those of several workers."""
        destinations = given if destinations is None else destinations
        return [self._reduce_to(op, v, d) for v, d in zip(given, destinations)]

    def _reduce_brought(self, op, given, options):
        """What _reduce_each gives for what replicas brought. One tensor that all of them
        brought is no value of each: it stays, as upstream has it."""
        if len(self._devices) == 1:
            return self._reduce_each(op, given, options=options)
        each = [i for i, x in enumerate(given) if values.is_distributed(x)]
        reduced = self._reduce_each(op, [given[i] for i in each], options=options)
        found = dict(zip(each, reduced))
        for i, x in enumerate(given):
            if i not in found:
                same = [tf.identity(x) for _ in self._devices]
                found[i] = values.PerReplica(same)
        return [found[i] for i in range(len(given))]

    def _gather(self, value, axis):
        contexts.require_scope_or_none(self._container_strategy())
        return values.values_of(self._gather_to(value, axis))[0]

    def _gather_to(self, value, axis, options=None):
        """The values of replicas after each other, for each of them."""
        if not values.is_distributed(value):
            return tf.convert_to_tensor(value)
        return self._cross_device._gather(value, value, axis)

    def reduce_to(self, reduce_op, value, destinations, options=None):
        """The sum or mean of replicas' values, Mirrored where `destinations` are.

        Args:
          reduce_op: a ReduceOp, or its name.
          value: PerReplica, or a tensor.
          destinations: a distributed value, a variable, or a device.
          options: CommunicationOptions; of one process they change nothing.
        """
        pairs = [(value, destinations)]
        return self.batch_reduce_to(reduce_op, pairs, options)[0]

    def _reduce_to(self, op, value, destinations):
        if isinstance(value, values.Mirrored) and op == contexts.ReduceOp.MEAN:
            return value
        if not values.is_distributed(value):
            return cross_device.of_plain_value(
                op, value, destinations, self._num_replicas_in_sync
            )
        return self._cross_device._reduce_any(op, value, destinations)

    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        """A list of what reduce_to gives for each (value, destinations)."""
        contexts.require_scope_or_none(self._container_strategy())
        pairs = list(value_destination_pairs)
        given, destinations = [v for v, _ in pairs], [d for _, d in pairs]
        op = reduce_op_of(reduce_op)
        return self._reduce_each(op, given, destinations, options)

    def broadcast_to(self, tensor, destinations):
        """A value for all replicas; of Python's numbers themselves."""
        contexts.require_scope_or_none(self._container_strategy())
        if isinstance(tensor, (int, float)):
            return tensor
        return self._cross_device.broadcast(tensor, destinations)

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """Runs fn(copy, ...) for each copy of a variable; of distributed arguments each
        call gets its own. In the code of replicas these meet first, as merge_call has it.

        Returns:
          With `group` one result, Mirrored; else a tuple of all of them.
        """
        replica = contexts.replica_of(self._container_strategy())
        if replica is not None:

            def merged(strategy, var, *args, **kwargs):
                return strategy.extended.update(var, fn, args, kwargs, group)

            return replica.merge_call(merged, (var, *args), kwargs)
        contexts.require_scope_or_none(self._container_strategy())
        fn = do_not_convert(fn)
        results = []
        copies = values.values_of(var)
        for i, copy in enumerate(copies):
            with self._updating(i, copy.device):
                part = values.select(i, (tuple(args), dict(kwargs or {})))
                results.append(fn(copy, *part[0], **part[1]))
        return self._grouped(results, group)

    def update_non_slot(self, colocate_with, fn, args=(), kwargs=None, group=True):
        """Runs fn(...) on each of the devices, as update() does."""
        del colocate_with
        contexts.require_scope_or_none(self._container_strategy())
        results = []
        for i, device in enumerate(self._own_parameter_devices):
            with self._updating(i, device):
                part = values.select(i, (tuple(args), dict(kwargs or {})))
                results.append(fn(*part[0], **part[1]))
        return self._grouped(results, group)

    def _grouped(self, results, group):
        if not group:
            return values.map_leaves(self._local_results, values.regroup(results))
        if stack.plain_graph() is not None:
            return tf.group(*[getattr(r, "op", r) for r in results])
        flat = [r.value() if isinstance(r, tf.Variable) else r for r in results]
        return values.regroup(flat, values.Mirrored)

    @contextlib.contextmanager
    def _updating(self, copy, device):
        with (
            contexts.entering(self._container_strategy(), None, copy),
            tf.device(device),
        ):
            yield

    def _update_all(self, fn, *args):
        """fn(...) on behalf of each copy of the variables: optimizers' steps."""
        for i, device in enumerate(self._own_parameter_devices):
            with self._updating(i, device):
                result = fn(*values.select(i, args))
        return result

    def _local_results(self, value):
        if values.is_distributed(value):
            return tuple(value.values)
        flat = tf.nest.flatten(value)
        if not any(map(values.is_distributed, flat)):
            return (value,)
        return tuple(values.select(i, value) for i in range(len(self._devices)))

    def _distribute_values(self, value_fn):
        first, count = self._replica_offset, self._num_replicas_in_sync
        own = range(first, first + len(self._devices))
        found = [value_fn(ValueContext(i, count)) for i in own]
        return values.regroup(found, always=True)

    # --- datasets ---

    def _check_input_of_each_replica(self):
        """NotImplementedError where replicas do not have datasets of their own."""

    def _distribute_dataset(self, dataset, options):
        return datasets.divided(self._container_strategy(), dataset, options)

    def _distribute_from_function(self, dataset_fn, options):
        return datasets.from_function(self._container_strategy(), dataset_fn, options)

    def _initializable(self, distributed):
        """The iterator of a distributed dataset, in graphs one to be initialized."""
        return datasets.initializable(distributed)

    def experimental_make_numpy_dataset(self, numpy_input, session=None):
        """A Dataset of the rows of arrays: a structure of them."""
        del session
        return tf.data.Dataset.from_tensor_slices(numpy_input)

    def experimental_run_steps_on_iterator(
        self, fn, iterator, iterations=1, initial_loop_values=None
    ):
        """Runs fn(context, element) for so many elements: one after the other."""
        del initial_loop_values
        for _ in range(iterations):
            result = fn(None, iterator.get_next())
        return result


def _no_aggregation():
    return tf.VariableAggregation.NONE


def _value_of_first(first):
    """The first value of further copies: what the first one has."""
    if stack.plain_graph() is not None:
        return lambda: tf.identity(first.initial_value)

    def value():
        with stack.init_scope():
            return first._read()

    return value


@contextlib.contextmanager
def _named_like_first(copies):
    """Further copies are named in the scope of the first."""
    if not copies:
        yield
        return
    scope = copies[0]._shared_name.rpartition("/")[0]
    with tf.name_scope(f"{scope}/" if scope else ""):
        yield


def collected(variable, copies):
    """The variable, in the collections of a plain graph in the place of its copies."""
    graph = stack.plain_graph()
    if graph is None:
        return variable
    ids = {id(c) for c in copies}
    for key in graph.get_all_collection_keys():
        kept = graph.get_collection_ref(key)
        if not any(id(v) in ids for v in kept):
            continue
        at = next(i for i, v in enumerate(kept) if id(v) in ids)
        rest = [v for v in kept if id(v) not in ids]
        kept[:] = [*rest[:at], variable, *rest[at:]]
    return variable
