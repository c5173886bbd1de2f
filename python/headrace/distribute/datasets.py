"""Datasets and iterators whose elements are values of replicas.

Underneath is one Dataset, whose elements are tuples of what each replica gets, so that
loops, iterators and optionals are those of tf.data.
"""

from headrace import _api as tf
from headrace.autograph import builtins, loops, tensors
from headrace.context import errors

from headrace.distribute import values
from headrace.distribute.options import InputContext, InputReplicationMode
from headrace.distribute.together import Together, no_rows, of_any_rows
from headrace.data import autograph_loops
from headrace.data.dataset import Dataset, made_of
from headrace.data.iterator import OwnedIterator
from headrace.data.optional import OptionalImpl, OptionalSpec
from headrace.elements import nest
from headrace.framework import type_spec


class DistributedDatasetInterface:
    """A dataset whose elements are values of replicas."""


class DistributedIteratorInterface:
    """An iterator whose elements are values of replicas."""


def _per_replica(parts):
    """A tuple of replicas' elements as one element of PerReplica values."""
    if len(parts) == 1:
        return parts[0]
    return _zipped(parts, values.PerReplica)


def _zipped(parts, wrap):
    """The structure of an element whose leaves are wrap(tuple of each part's leaf)."""
    columns = zip(*(nest.flatten(part) for part in parts))
    return nest.pack(parts[0], [wrap(tuple(c)) for c in columns])


def _spec_of(parts):
    if len(parts) == 1:
        return parts[0]
    return _zipped(parts, lambda specs: values.PerReplicaSpec(*specs))


class _OfReplicas:
    """What distributed datasets and their iterators share."""

    @property
    def element_spec(self):
        """The structure of PerReplicaSpecs of an element."""
        return _spec_of(self._inner.element_spec)

    def _of_this_worker(self, element):
        """An element whose leaves say that they are no global batch, also where this
        worker has but one replica."""
        extended = self._strategy.extended
        if extended._shards[0] == 1 or len(extended._devices) > 1:
            return element
        return values.map_leaves(lambda x: values.PerReplica((x,)), element)


class _OptionalOfReplicas(OptionalImpl):
    """An Optional of the tuple of replicas' elements, as one element of theirs."""

    @property
    def element_spec(self):
        return _spec_of(self._element_spec)

    _type_spec = property(lambda self: _OptionalOfReplicasSpec(self._element_spec))

    def get_value(self, name=None):
        return _per_replica(super().get_value(name))


class _OptionalOfReplicasSpec(OptionalSpec):
    """What such an optional is like, in loops and branches; its element_spec is that of the
    tuple."""

    value_type = _OptionalOfReplicas

    def _wrap(self, tensor):
        return _OptionalOfReplicas(tensor, self._element_spec)

    @classmethod
    def from_value(cls, value):
        return cls(value._element_spec)


class DistributedDataset(_OfReplicas, DistributedDatasetInterface):
    """A dataset of PerReplica elements. Only iterating over it is defined."""

    # Whether workers may have different numbers of elements, and end together.
    _ends_together = False

    def __init__(self, strategy, dataset):
        self._strategy = strategy
        self._inner = dataset
        in_ring = strategy.extended._rings and tf.executing_eagerly()
        self._is_endless = in_ring and self.cardinality == tf.data.INFINITE_CARDINALITY

    def __iter__(self):
        """A DistributedIterator, also within a tf.function."""
        inner = OwnedIterator(self._inner)
        return DistributedIterator(self._strategy, inner, self._meets())

    def _meets(self):
        """Whether workers ask each other before each element whether one is left."""
        if self._strategy.extended._rings:
            return not self._is_endless
        return self._ends_together

    @property
    def cardinality(self):
        """How many elements there are, -1 for ever, -2 where it is not known."""
        return self._inner.cardinality().numpy()


class DistributedDatasetsFromFunction(DistributedDataset):
    """A dataset of PerReplica elements, made by a function of an InputContext."""


class DistributedIterator(_OfReplicas, DistributedIteratorInterface):
    """An iterator of PerReplica elements."""

    _is_composite_tensor = True

    def __init__(self, strategy, iterator, meets=False):
        self._strategy, self._meets = strategy, meets
        self._own = self._inner = iterator
        if meets:
            self._inner = Together(strategy.extended._workers, iterator)

    def __iter__(self):
        return self

    def __next__(self):
        """The next element; StopIteration at the end."""
        return _per_replica(next(self._inner))

    next = __next__

    def get_next(self):
        """The next element; OutOfRangeError at the end."""
        return _per_replica(self._inner.get_next())

    def get_next_as_optional(self):
        """The next element as a tf.experimental.Optional, empty at the end."""
        inner = self._inner.get_next_as_optional()
        return _OptionalOfReplicas(inner._variant_tensor, inner.element_spec)

    @property
    def initializer(self):
        """The operation that begins anew, of an iterator of graphs."""
        return self._own.initializer

    def initialize(self):
        """The operation that begins anew, in a list; eagerly it begins anew at once."""
        if tf.executing_eagerly():
            inner = OwnedIterator(self._own._dataset)
            self.__init__(self._strategy, inner, self._meets)
            return []
        return [self._own.initializer]

    # --- an argument of functions ---

    @property
    def _type_spec(self):
        return DistributedIteratorSpec(
            self._strategy, self._own._type_spec, self._meets
        )

    def _static_parts(self):
        return (self._type_spec,)

    def _components(self):
        return self._own._components()

    def _from_components(self, parts):
        return self._type_spec._from_components(parts)


class DistributedIteratorSpec(type_spec.TypeSpec):
    """The spec of a DistributedIterator."""

    value_type = DistributedIterator

    def __init__(self, strategy, inner, meets=False):
        self._strategy, self._inner, self._meets = strategy, inner, meets

    def _serialize(self):
        return (_Same(self._strategy), self._inner, self._meets)

    @classmethod
    def _deserialize(cls, serialization):
        strategy, *rest = serialization
        return cls(strategy.object, *rest)

    @property
    def element_spec(self):
        """The structure of PerReplicaSpecs of an element."""
        found = self._inner.element_spec
        return _spec_of(of_any_rows(found) if self._meets else found)

    @property
    def _component_specs(self):
        return self._inner._component_specs

    def _from_components(self, parts):
        inner = self._inner._from_components(parts)
        return DistributedIterator(self._strategy, inner, self._meets)


class _Same:
    """An object that only equals itself."""

    __slots__ = ("object",)

    def __init__(self, wrapped):
        self.object = wrapped

    def __eq__(self, other):
        return isinstance(other, _Same) and self.object is other.object

    def __hash__(self):
        return id(self.object)


# --- dividing global batches ---


def divided(strategy, dataset, options):
    """The DistributedDataset of a Dataset's batches, each divided among replicas."""
    if options.experimental_replication_mode == InputReplicationMode.PER_REPLICA:
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA is only supported in "
            "`distribute_datasets_from_function`."
        )
    if isinstance(dataset, DistributedDatasetInterface):
        return dataset
    if not isinstance(dataset, Dataset):
        raise AttributeError(
            f"'{type(dataset).__name__}' object has no attribute '_variant_tensor'"
        )
    extended, count = strategy.extended, strategy.num_replicas_in_sync
    size = _batch_size(dataset.element_spec)
    if count == 1:
        return DistributedDataset(strategy, dataset.map(lambda *e: (_one(e),)))
    policy = dataset.options().experimental_distribute.auto_shard_policy
    if policy == _POLICY.HINT:
        dataset = _part(dataset, policy, *extended._shards)
    files = _own_files(dataset, policy, *extended._shards)
    if files is not None or policy in _WHOLE:
        dataset = dataset if files is None else files
        made = _in_turns(strategy, _rebatched(dataset, count), DistributedDataset)
        made._ends_together = files is not None
        return made

    def share(*element):
        return _own(_shares(_one(element), count, size), *extended._shards)

    return DistributedDataset(strategy, dataset.map(share))


_POLICY = tf.data.experimental.AutoShardPolicy
# By these a batch that is cut short leaves the last replicas without.
_WHOLE = (_POLICY.OFF, _POLICY.FILE, _POLICY.HINT)


def _own_files(dataset, policy, workers, index):
    """What a dataset has of its files for one of several workers; None where workers share
    elements."""
    if workers == 1 or policy not in (_POLICY.AUTO, _POLICY.FILE):
        return None
    try:
        return _part(dataset, _POLICY.FILE, workers, index)
    except errors.OpError:
        if policy == _POLICY.FILE:
            raise
        return None  # not of files


def _part(dataset, policy, workers, index):
    """What one of several workers has of a dataset."""
    number = int(policy.value)
    return made_of(
        "AutoShardDataset",
        dataset,
        num_workers=workers,
        index=index,
        auto_shard_policy=number,
    )


def _own(shares, workers, index):
    """The shares of one of several workers."""
    return tuple(shares[index::workers])


def own_shares(extended, structure):
    """A structure of global batches as a list of what this worker's replicas get."""
    count = extended._num_replicas_in_sync
    return list(_own(shares_of(structure, count), *extended._shards))


def _one(element):
    return element[0] if len(element) == 1 else element


def _batch_size(spec):
    """The static size of batches, None where it is not known. IndexError for elements
    that are no batches."""
    sizes = set()
    for leaf in nest.flatten(spec):
        shape = getattr(leaf, "shape", tf.TensorShape(None))
        if shape.rank == 0:
            raise IndexError(
                "the elements of a dataset to be distributed are batches, but some are "
                f"scalars: {leaf}"
            )
        sizes.add(None if shape.rank is None else shape[0])
    return sizes.pop() if len(sizes) == 1 else None


def shares_of(structure, count):
    """A structure of batches as a list of `count` structures: equal parts, the last ones
    shorter or empty."""
    if count == 1:
        return [structure]
    flat = [x for x in tf.nest.flatten(structure) if x is not None]
    size = flat[0].shape[0] if isinstance(flat[0], tf.Tensor) else None
    return list(_shares(structure, count, size))


def _shares(element, count, size):
    flat = tf.nest.flatten(element)
    first_batch = next(x for x in flat if x is not None)
    total = size if size is not None else _rows(first_batch)
    part = -(-total // count)
    shares = []
    for i in range(count):
        first, last = i * part, (i + 1) * part
        if size is None:
            first, last = tf.minimum(first, total), tf.minimum(last, total)
        rows = [_slice(x, first, last) for x in flat]
        shares.append(tf.nest.pack_sequence_as(element, rows))
    return tuple(shares)


def _rows(value):
    if isinstance(value, tf.RaggedTensor):
        return tf.cast(value.nrows(), tf.int64)
    if isinstance(value, tf.SparseTensor):
        return value.dense_shape[0]
    return tf.shape(value, out_type=tf.int64)[0]


def _slice(value, first, last):
    if value is None:
        return None
    if isinstance(value, tf.SparseTensor):
        start = tf.concat([[first], tf.zeros_like(value.dense_shape[1:])], 0)
        size = tf.concat([[last - first], value.dense_shape[1:]], 0)
        rows = tf.sparse.slice(value, start, size)
        rows.set_shape(
            value.shape if value.shape.rank is None else [None, *value.shape[1:]]
        )
        return rows
    return value[first:last]


def _rebatched(dataset, count):
    size = _batch_size(dataset.element_spec)
    if size is None:
        first = next(iter(dataset.take(1)), None)
        if first is None:
            return dataset
        size = int(_rows(nest.flatten(first)[0]))
    part = -(-size // count)
    parts = [max(0, min(part, size - i * part)) for i in range(count)]
    return dataset.rebatch(parts)


# --- elements in turn ---


def from_function(strategy, dataset_fn, options):
    """The DistributedDataset of a function of an InputContext."""
    count, local = strategy.num_replicas_in_sync, len(strategy.extended._devices)
    workers, worker = strategy.extended._shards
    each = options.experimental_replication_mode == InputReplicationMode.PER_REPLICA
    if each:
        strategy.extended._check_input_of_each_replica()
    if options.experimental_place_dataset_on_device and not each:
        raise ValueError(
            "When `experimental_place_dataset_on_device` is set for dataset placement, you "
            "must also specify `PER_REPLICA` for the replication mode"
        )
    fetches = options.experimental_fetch_to_device
    if options.experimental_place_dataset_on_device and fetches is not False:
        raise ValueError(
            "`experimental_place_dataset_on_device` can not be set to True when "
            "experimental_fetch_to_device is True and replication mode is set to "
            "`PER_REPLICA`"
        )
    if each:
        own = range(worker * local, (worker + 1) * local)
        made = [dataset_fn(InputContext(count, i, count)) for i in own]
        joined = Dataset.zip(tuple(map(_checked, made)))
        distributed = DistributedDatasetsFromFunction(strategy, joined)
    else:
        dataset = _checked(dataset_fn(InputContext(workers, worker, count)))
        distributed = _in_turns(strategy, dataset, DistributedDatasetsFromFunction)
    # Nobody knows whether the function gives all workers as many.
    if workers > 1 and tf.executing_eagerly():
        endless = distributed.cardinality == tf.data.INFINITE_CARDINALITY
        distributed._ends_together = not endless
    return distributed


def _checked(dataset):
    if not isinstance(dataset, Dataset):
        raise AttributeError(
            f"'{type(dataset).__name__}' object has no attribute 'element_spec'"
        )
    return dataset


def _in_turns(strategy, dataset, kind):
    """The first element for the first replica, the next for the next; where they run out
    the last replicas get batches without rows."""
    count = len(strategy.extended._devices)
    if count == 1:
        return kind(strategy, dataset.map(lambda *e: (_one(e),)))
    spec = dataset.element_spec
    static = all(
        getattr(s, "shape", tf.TensorShape(None)).is_fully_defined()
        for s in nest.flatten(spec)
    )
    windows = dataset.window(count, drop_remainder=static)

    def together(*window):
        return tuple(_nth(window, i, spec) for i in range(count))

    return kind(strategy, windows.map(together))


def _nth(window, i, spec):
    """The element i of a window: a structure of datasets; else batches without rows."""
    element = Dataset.zip(_one(window)) if nest.is_nested(_one(window)) else window[0]
    if i:
        element = element.skip(i)
    if all(s.shape.is_fully_defined() for s in nest.flatten(spec)):
        return element.take(1).get_single_element()
    rest = Dataset.from_tensors(nest.map_structure(no_rows, spec))
    return element.concatenate(rest).take(1).get_single_element()


def initializable(distributed):
    """The iterator of a distributed dataset; in graphs a session initializes it."""
    if tf.executing_eagerly():
        return iter(distributed)
    inner = tf.compat.v1.data.make_initializable_iterator(distributed._inner)
    return DistributedIterator(distributed._strategy, inner)


# --- loops of converted code ---


def _over_dataset(distributed, extra_test, body, state, opts):
    def of_replicas(parts):
        return body(_per_replica(parts))

    is_dataset = isinstance(distributed, DistributedDataset)
    iterator = (iter(distributed) if is_dataset else distributed)._inner
    if isinstance(iterator, Together) and not is_dataset:
        iterator = iterator.in_loop()
    return autograph_loops.over_elements(
        iterator, extra_test, of_replicas, state, opts, relaxes=is_dataset
    )


loops.register_iterable(DistributedDataset, _over_dataset)
loops.register_iterable(DistributedIterator, _over_dataset)


def _no_counter(iterable, start=0):
    """What `enumerate` is in functions: refused, as each turn is one of the graph's."""
    del start
    if not tensors.in_graph():
        return NotImplemented
    raise NotImplementedError(
        f"enumerate not supported with {type(iterable).__name__} types within "
        "tf.functions. Use a for loop over the dataset and keep a separate counter "
        "instead."
    )


for _kind in (DistributedDatasetInterface, DistributedIteratorInterface):
    builtins.register_overload(enumerate, _kind, _no_counter)
