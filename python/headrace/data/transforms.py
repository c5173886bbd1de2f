"""Datasets made of other datasets, element by element."""

import warnings

from headrace._load import raw
from headrace.context import stack
from headrace.context.errors import InvalidArgumentError
from headrace.data import sources
from headrace.data.dataset import (
    AUTOTUNE,
    Dataset,
    DatasetSpec,
    as_bool,
    as_int,
    made,
    made_of,
    method,
)
from headrace.data.functions import DatasetFunction, flat
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes, execution
from headrace.framework.type_spec import TensorSpec


def _by_function(op, source, f, spec, **arguments):
    """The dataset of an op that calls a DatasetFunction, its attribute `f`."""
    captures = {"other_arguments": f.captures, "f": f.function}
    return made_of(op, source, spec, [f], **captures, **arguments)


class _OptionsDataset(Dataset):
    """The same elements under options."""

    def __init__(self, source, options):
        merged = source.options().merge(options)
        spec = source.element_spec
        variant = raw.OptionsDataset(
            source._variant_tensor, serialized_options=merged._serialize(), **flat(spec)
        )
        super().__init__(variant, spec, [source])
        self._options = merged

    def options(self):
        return self._options


@method
def with_options(self, options, name=None):
    """The same elements under a tf.data.Options, which also holds for what is made
    of it.
    """
    return _OptionsDataset(self, options)


@method
def batch(
    self,
    batch_size,
    drop_remainder=False,
    num_parallel_calls=None,
    deterministic=None,
    name=None,
):
    """Consecutive elements stacked: [batch_size, ...], the last may be smaller.

    `drop_remainder` leaves a smaller one out, which makes the size static.
    `num_parallel_calls` copies batches on that many threads (tf.data.AUTOTUNE: as
    many as fit). InvalidArgumentError for elements of different shapes or a size
    below 1.
    """
    size = as_int(batch_size)
    spec = batched_spec(self.element_spec, size, drop_remainder)
    how = {"batch_size": size, "drop_remainder": as_bool(drop_remainder)}
    op = "BatchDatasetV2"
    if num_parallel_calls is None:
        warn_of_order(deterministic)
    else:
        op = "ParallelBatchDataset"
        how["num_parallel_calls"] = as_int(num_parallel_calls)
        how["deterministic"] = order_text(deterministic)
    made = made_of(op, self, spec, **how)
    made._batch_size = size  # for those who split batches again
    return made


def batched_spec(spec, size, drop_remainder):
    """The spec of batches: their size is known when no smaller one can come."""
    known = None
    if execution.get_static_value(as_bool(drop_remainder)):
        value = execution.get_static_value(size)
        known = None if value is None else int(value)
        if known is not None and known < 0:
            raise ValueError(f"Dimension {known} must be >= 0")
    return structure.batched(spec, known)


def warn_of_order(deterministic):
    """Says that what comes one by one has one order only."""
    if deterministic is not None:
        warnings.warn(
            "The `deterministic` argument has no effect unless the "
            "`num_parallel_calls` argument is specified.",
            stacklevel=3,
        )


def order_text(deterministic):
    """The attribute `deterministic`."""
    if deterministic is None:
        return "default"
    return "true" if deterministic else "false"


@method
def map_(
    self,
    map_func,
    num_parallel_calls=None,
    deterministic=None,
    synchronous=None,
    use_unbounded_threadpool=False,
    name=None,
):
    """map_func(*element) of every element; its result is the new element.

    It is traced once: Python effects are not repeated. `num_parallel_calls` runs
    that many at once (tf.data.AUTOTUNE: as many as fit), in order unless
    `deterministic` is False; without it one after another. `synchronous` with it is
    a ValueError.
    """
    if synchronous and num_parallel_calls is not None:
        raise ValueError(
            "`synchronous` is not supported with `num_parallel_calls`, but "
            f"`num_parallel_calls` was set to {num_parallel_calls}"
        )
    how = {"preserve_cardinality": True}
    if num_parallel_calls is None:
        warn_of_order(deterministic)
        op, how["force_synchronous"] = "MapDataset", bool(synchronous)
    f = DatasetFunction(map_func, "map", [self.element_spec])
    if num_parallel_calls is not None:
        op, how["deterministic"] = "ParallelMapDatasetV2", order_text(deterministic)
        how["num_parallel_calls"] = as_int(num_parallel_calls)
    return _by_function(op, self, f, f.output, **how)


def _inner_spec(f):
    """The element spec of the datasets that a function returns."""
    if not isinstance(f.output, DatasetSpec):
        raise TypeError(
            "The `map_func` argument must return a `Dataset` object. Got "
            f"{f.output.value_type if structure.is_spec(f.output) else f.output!r}."
        )
    return f.output._element_spec


@method
def flat_map(self, map_func, name=None):
    """The elements of the datasets map_func(*element), one behind another.

    TypeError where it returns no dataset.
    """
    f = DatasetFunction(map_func, "flat_map", [self.element_spec])
    return _by_function("FlatMapDataset", self, f, _inner_spec(f))


@method
def interleave(
    self,
    map_func,
    cycle_length=None,
    block_length=None,
    num_parallel_calls=None,
    deterministic=None,
    name=None,
):
    """Elements of the datasets that map_func(*element) returns, by turns.

    `cycle_length` datasets are open at a time, and each gives `block_length`
    elements (1) in its turn. `num_parallel_calls` reads that many at once, in order
    unless `deterministic` is False. TypeError where map_func returns no dataset.
    """
    how = {"cycle_length": AUTOTUNE if cycle_length is None else cycle_length}
    how["block_length"] = 1 if block_length is None else block_length
    if num_parallel_calls is None:
        warn_of_order(deterministic)
        op, more = "InterleaveDataset", {}
    else:
        op, more = "ParallelInterleaveDatasetV4", {}
        how |= {"buffer_output_elements": AUTOTUNE, "prefetch_input_elements": AUTOTUNE}
        how["num_parallel_calls"] = num_parallel_calls
        more["deterministic"] = order_text(deterministic)
    f = DatasetFunction(map_func, "interleave", [self.element_spec])
    numbers = {name: as_int(value) for name, value in how.items()}
    return _by_function(op, self, f, _inner_spec(f), **numbers, **more)


def _by_predicate(op, name, joint, source, predicate):
    """Elements that a predicate decides about."""
    f = DatasetFunction(predicate, name, [source.element_spec])
    if f.output != TensorSpec([], dtypes.bool):
        raise ValueError(
            "Invalid `predicate`. `predicate` must return a `tf.bool` scalar "
            f"tensor{joint}{f.output}."
        )
    captures = {"other_arguments": f.captures, "predicate": f.function}
    return made_of(op, source, None, [f], **captures)


@method
def filter_(self, predicate, name=None):
    """The elements for which predicate(*element), a bool scalar (ValueError else),
    holds.
    """
    joint = ", but its return type is "
    return _by_predicate("FilterDataset", "filter", joint, self, predicate)


@method
def take_while(self, predicate, name=None):
    """The elements before the first for which predicate(*element), a bool scalar,
    fails.
    """
    joint = " but its return type is"
    return _by_predicate("TakeWhileDataset", "take_while", joint, self, predicate)


@method
def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
    """Elements drawn at random from a buffer of the next `buffer_size` ones.

    Evenly only where the buffer has room for all. With `reshuffle_each_iteration`
    each walk has another order; `seed` and tf.random.set_seed fix them.
    InvalidArgumentError for a size of 0.
    """
    again = reshuffle_each_iteration
    again = True if again is None else bool(again)
    first, second = sources.seeds(seed)
    seeds = None
    if stack.plain_graph() is None:
        seeds = raw.AnonymousSeedGenerator(first, second, again)
    dataset = made_of(
        "ShuffleDatasetV3",
        self,
        buffer_size=as_int(buffer_size),
        seed=first,
        seed2=second,
        seed_generator=seeds[0] if seeds else raw.DummySeedGenerator(),
        reshuffle_each_iteration=again,
    )
    dataset._seeds = seeds  # lives as long as the dataset
    return dataset


@method
def concatenate(self, dataset, name=None):
    """The elements of this dataset, then those of another of its structure.

    TypeError where structures or dtypes differ; shapes become what both have.
    """
    spec = structure.common(self.element_spec, dataset.element_spec)
    both = [self, dataset]
    variant = raw.ConcatenateDataset(*(d._variant_tensor for d in both), **flat(spec))
    return made("ConcatenateDataset", variant, spec, both)


@method
def cache(self, filename="", name=None):
    """The elements, kept once they have been walked.

    In memory, or in files whose names begin with `filename`. Only a walk to the end
    completes it; later walks do not ask the input again.
    """
    memory = raw.AnonymousMemoryCache()
    filename = conversion.convert_to_tensor(filename, dtypes.string)
    how = {"filename": filename, "cache": memory[0]}
    dataset = made_of("CacheDatasetV2", self, class_name="CacheDataset", **how)
    dataset._cache = memory  # lives as long as the dataset
    return dataset


@method
def unique(self, name=None):
    """Each element once, where it came first; all of them are kept in memory.

    TypeError unless elements are of int32, int64 or string.
    """
    for s in nest.flatten(self.element_spec):
        dtype = getattr(s, "dtype", None)
        if dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
            raise TypeError(
                "`tf.data.Dataset.unique` does not support type "
                f"{s if dtype is None else dtype} -- only `tf.int32`, `tf.int64`, "
                "and `tf.string` are supported."
            )
    return made_of("UniqueDataset", self)


class StateFunction:
    """A function of (state, element) whose state keeps its structure.

    Where the shapes of the state change from step to step, they are unknown.
    """

    def __init__(self, func, name, source, initial_state, split):
        self._is_reduce = name == "reduce"
        texts = ("", " but ") if self._is_reduce else ("Invalid `scan_func`. ", ", ")
        self._prefix, self._joint = texts
        self.initial = structure.normalize(initial_state)
        self.spec = structure.spec_of(self.initial)
        while True:
            f = DatasetFunction(
                func, name, [self.spec, source.element_spec], unpack=False
            )
            new, self.output = split(f.output)
            self._check(new)
            joined = structure.common(self.spec, new)
            if joined == self.spec:
                break
            self.spec = joined
        self.traced = f

    def _check(self, new):
        sizes = [len(structure.component_specs(s)) for s in (self.spec, new)]
        if self._is_reduce and sizes[0] != sizes[1]:
            raise InvalidArgumentError._of(
                "The number of components of the initial state and the reduce function "
                f"output does not match. (initial_state={sizes[0]}, output={sizes[1]})."
            )
        nest.assert_same_structure(self.spec, new)
        for a, b in zip(nest.flatten(self.spec), nest.flatten(new)):
            mine, theirs = getattr(a, "dtype", a), getattr(b, "dtype", b)
            alike = mine == theirs or a.most_specific_common_supertype([b])
            if type(a) is not type(b) or not alike:
                raise TypeError(
                    f"{self._prefix}The element types for the new state must match the "
                    f"initial state. Expected {mine!s}{self._joint}got {theirs!s}."
                )

    def tensors(self):
        return structure.to_tensors(self.spec, self.initial)


@method
def reduce(self, initial_state, reduce_func, name=None):
    """The last state of reduce_func(state, element), over all elements in turn.

    The state is a structure of tensors and keeps its dtypes; shapes may change.
    """
    f = StateFunction(reduce_func, "reduce", self, initial_state, lambda s: (s, None))
    tensors = raw.ReduceDataset(
        self._variant_tensor,
        f.tensors(),
        f.traced.captures,
        f=f.traced.function,
        name=name,
        **flat(f.spec),
    )
    return structure.from_tensors(f.spec, tensors)


def _split_scan(spec):
    if not isinstance(spec, tuple) or len(spec) != 2:
        raise TypeError(
            "Invalid `scan_func`. `scan_func` should return a pair consisting of new "
            f"state and the output value but its return type is {spec}."
        )
    return spec


@method
def scan(self, initial_state, scan_func, name=None):
    """The outputs of scan_func(state, element) -> (new state, output).

    The state keeps its structure and dtypes (TypeError else).
    """
    f = StateFunction(scan_func, "scan", self, initial_state, _split_scan)
    how = {"initial_state": f.tensors(), "preserve_cardinality": True}
    return _by_function("ScanDataset", self, f.traced, f.output, **how)
