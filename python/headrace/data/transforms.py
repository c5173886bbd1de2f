"""Datasets made of other datasets, element by element."""

import warnings

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.data import sources
from headrace.data.dataset import AUTOTUNE, Dataset, DatasetSpec
from headrace.data.functions import DatasetFunction, flat
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes, execution
from headrace.framework.errors import InvalidArgumentError
from headrace.framework.type_spec import TensorSpec


def as_int(value):
    return conversion.convert_to_tensor(value, dtypes.int64)


def as_bool(value):
    return conversion.convert_to_tensor(value, dtypes.bool)


class _UnaryDataset(Dataset):
    """One dataset made of another by an op; the element spec stays, or is given."""

    def __init__(self, op, source, spec=None, functions=(), **arguments):
        spec = source.element_spec if spec is None else spec
        variant = _headrace.raw_op(op)(
            input_dataset=source._variant_tensor, **arguments, **flat(spec)
        )
        super().__init__(variant, spec, [source], functions)


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


class _BatchDataset(_UnaryDataset):
    def __init__(self, source, batch_size, drop_remainder):
        size = as_int(batch_size)
        super().__init__(
            "BatchDatasetV2",
            source,
            batched_spec(source.element_spec, size, drop_remainder),
            batch_size=size,
            drop_remainder=as_bool(drop_remainder),
        )


class _ParallelBatchDataset(_UnaryDataset):
    def __init__(
        self, source, batch_size, drop_remainder, num_parallel_calls, deterministic
    ):
        size = as_int(batch_size)
        super().__init__(
            "ParallelBatchDataset",
            source,
            batched_spec(source.element_spec, size, drop_remainder),
            batch_size=size,
            num_parallel_calls=as_int(num_parallel_calls),
            drop_remainder=as_bool(drop_remainder),
            deterministic=order_text(deterministic),
        )


def _batch(source, batch_size, drop_remainder, num_parallel_calls, deterministic):
    if num_parallel_calls is None:
        warn_of_order(deterministic)
        return _BatchDataset(source, batch_size, drop_remainder)
    return _ParallelBatchDataset(
        source, batch_size, drop_remainder, num_parallel_calls, deterministic
    )


def batched_spec(spec, size, drop_remainder):
    """The spec of batches: their size is known when no smaller one can come."""
    known = None
    if execution.get_static_value(as_bool(drop_remainder)):
        value = execution.get_static_value(size)
        known = None if value is None else int(value)
        if known is not None and known < 0:
            raise ValueError(f"Dimension {known} must be >= 0")
    return structure.batched(spec, known)


class _MapDataset(_UnaryDataset):
    def __init__(self, source, map_func, synchronous=None):
        f = DatasetFunction(map_func, "map", [source.element_spec])
        super().__init__(
            "MapDataset",
            source,
            f.output,
            [f],
            other_arguments=f.captures,
            f=f.function,
            preserve_cardinality=True,
            force_synchronous=bool(synchronous),
        )


class _ParallelMapDataset(_UnaryDataset):
    def __init__(self, source, map_func, num_parallel_calls, deterministic):
        f = DatasetFunction(map_func, "map", [source.element_spec])
        super().__init__(
            "ParallelMapDatasetV2",
            source,
            f.output,
            [f],
            other_arguments=f.captures,
            f=f.function,
            num_parallel_calls=as_int(num_parallel_calls),
            deterministic=order_text(deterministic),
            preserve_cardinality=True,
        )


def warn_of_order(deterministic):
    """Says that what comes one by one has one order only."""
    if deterministic is not None:
        warnings.warn(
            "The `deterministic` argument has no effect unless the "
            "`num_parallel_calls` argument is specified.",
            stacklevel=4,
        )


def order_text(deterministic):
    """The attribute `deterministic`."""
    if deterministic is None:
        return "default"
    return "true" if deterministic else "false"


def _map(source, map_func, num_parallel_calls, deterministic, synchronous):
    if synchronous and num_parallel_calls is not None:
        raise ValueError(
            "`synchronous` is not supported with `num_parallel_calls`, but "
            f"`num_parallel_calls` was set to {num_parallel_calls}"
        )
    if num_parallel_calls is None:
        warn_of_order(deterministic)
        return _MapDataset(source, map_func, synchronous)
    return _ParallelMapDataset(source, map_func, num_parallel_calls, deterministic)


def _inner_spec(f, transformation):
    """The element spec of the datasets that a function returns."""
    if not isinstance(f.output, DatasetSpec):
        raise TypeError(
            "The `map_func` argument must return a `Dataset` object. Got "
            f"{f.output.value_type if structure.is_spec(f.output) else f.output!r}."
        )
    return f.output._element_spec


class _FlatMapDataset(_UnaryDataset):
    def __init__(self, source, map_func):
        f = DatasetFunction(map_func, "flat_map", [source.element_spec])
        super().__init__(
            "FlatMapDataset",
            source,
            _inner_spec(f, "flat_map"),
            [f],
            other_arguments=f.captures,
            f=f.function,
        )


class _InterleaveDataset(_UnaryDataset):
    def __init__(self, source, map_func, cycle_length, block_length):
        f = DatasetFunction(map_func, "interleave", [source.element_spec])
        super().__init__(
            "InterleaveDataset",
            source,
            _inner_spec(f, "interleave"),
            [f],
            other_arguments=f.captures,
            cycle_length=as_int(cycle_length),
            block_length=as_int(block_length),
            f=f.function,
        )


class _ParallelInterleaveDataset(_UnaryDataset):
    def __init__(
        self, source, map_func, cycle_length, block_length, parallel, deterministic
    ):
        f = DatasetFunction(map_func, "interleave", [source.element_spec])
        super().__init__(
            "ParallelInterleaveDatasetV4",
            source,
            _inner_spec(f, "interleave"),
            [f],
            other_arguments=f.captures,
            cycle_length=as_int(cycle_length),
            block_length=as_int(block_length),
            buffer_output_elements=as_int(AUTOTUNE),
            prefetch_input_elements=as_int(AUTOTUNE),
            num_parallel_calls=as_int(parallel),
            f=f.function,
            deterministic=order_text(deterministic),
        )


def _interleave(
    source, map_func, cycle_length, block_length, num_parallel_calls, deterministic
):
    block_length = 1 if block_length is None else block_length
    cycle_length = AUTOTUNE if cycle_length is None else cycle_length
    if num_parallel_calls is None:
        warn_of_order(deterministic)
        return _InterleaveDataset(source, map_func, cycle_length, block_length)
    return _ParallelInterleaveDataset(
        source, map_func, cycle_length, block_length, num_parallel_calls, deterministic
    )


class _PredicateDataset(_UnaryDataset):
    """Elements that a predicate decides about."""

    def __init__(self, op, name, source, predicate):
        f = DatasetFunction(predicate, name, [source.element_spec])
        if f.output != TensorSpec([], dtypes.bool):
            joint = (
                ", but its return type is "
                if op == "FilterDataset"
                else (" but its return type is")
            )
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar "
                f"tensor{joint}{f.output}."
            )
        super().__init__(
            op,
            source,
            None,
            [f],
            other_arguments=f.captures,
            predicate=f.function,
        )


class _FilterDataset(_PredicateDataset):
    def __init__(self, source, predicate):
        super().__init__("FilterDataset", "filter", source, predicate)


class _TakeWhileDataset(_PredicateDataset):
    def __init__(self, source, predicate):
        super().__init__("TakeWhileDataset", "take_while", source, predicate)


class _ShuffleDataset(_UnaryDataset):
    def __init__(self, source, buffer_size, seed, reshuffle_each_iteration):
        reshuffle = (
            True if reshuffle_each_iteration is None else reshuffle_each_iteration
        )
        first, second = sources.seeds(seed)
        if _headrace.is_eager() or stack.inside_function():
            self._seeds = raw.AnonymousSeedGenerator(first, second, bool(reshuffle))
            handle = self._seeds[0]
        else:
            handle = raw.DummySeedGenerator()
        super().__init__(
            "ShuffleDatasetV3",
            source,
            buffer_size=as_int(buffer_size),
            seed=first,
            seed2=second,
            seed_generator=handle,
            reshuffle_each_iteration=bool(reshuffle),
        )


class _CountDataset(_UnaryDataset):
    def __init__(self, op, source, count):
        super().__init__(op, source, count=as_int(-1 if count is None else count))


class _RepeatDataset(_CountDataset):
    def __init__(self, source, count):
        super().__init__("RepeatDataset", source, count)


class _TakeDataset(_CountDataset):
    def __init__(self, source, count):
        super().__init__("TakeDataset", source, count)


class _SkipDataset(_CountDataset):
    def __init__(self, source, count):
        super().__init__("SkipDataset", source, count)


class _ShardDataset(_UnaryDataset):
    def __init__(self, source, num_shards, index):
        super().__init__(
            "ShardDataset", source, num_shards=as_int(num_shards), index=as_int(index)
        )


class _PrefetchDataset(_UnaryDataset):
    def __init__(self, source, buffer_size):
        size = AUTOTUNE if buffer_size is None else buffer_size
        super().__init__("PrefetchDataset", source, buffer_size=as_int(size))


class _ConcatenateDataset(Dataset):
    """One dataset behind another."""

    def __init__(self, source, other):
        spec = structure.common(source.element_spec, other.element_spec)
        super().__init__(
            raw.ConcatenateDataset(
                source._variant_tensor, other._variant_tensor, **flat(spec)
            ),
            spec,
            [source, other],
        )


class CacheDataset(_UnaryDataset):
    """The elements, kept from the first time on."""

    def __init__(self, source, filename):
        self._cache = raw.AnonymousMemoryCache()
        super().__init__(
            "CacheDatasetV2",
            source,
            filename=conversion.convert_to_tensor(filename, dtypes.string),
            cache=self._cache[0],
        )


class _UniqueDataset(_UnaryDataset):
    def __init__(self, source):
        for s in nest.flatten(source.element_spec):
            dtype = getattr(s, "dtype", None)
            if dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
                raise TypeError(
                    "`tf.data.Dataset.unique` does not support type "
                    f"{s if dtype is None else dtype} -- only `tf.int32`, `tf.int64`, "
                    "and `tf.string` are supported."
                )
        super().__init__("UniqueDataset", source)


class _IgnoreErrorsDataset(_UnaryDataset):
    def __init__(self, source, log_warning):
        super().__init__("IgnoreErrorsDataset", source, log_warning=bool(log_warning))


class StateFunction:
    """A function of (state, element) whose state keeps its structure.

    Where the shapes of the state change from step to step, they are unknown.
    """

    def __init__(self, func, name, source, initial_state, split):
        self._is_reduce = name == "reduce"
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
            raise InvalidArgumentError(
                None,
                None,
                "The number of components of the initial state and the reduce function "
                f"output does not match. (initial_state={sizes[0]}, output={sizes[1]}).",
            )
        nest.assert_same_structure(self.spec, new)
        for a, b in zip(nest.flatten(self.spec), nest.flatten(new)):
            if type(a) is not type(b) or a.dtype != b.dtype:
                raise TypeError(
                    "The element types for the new state must match the initial state. "
                    f"Expected {getattr(a, 'dtype', a)!s} but got "
                    f"{getattr(b, 'dtype', b)!s}."
                )

    def tensors(self):
        return structure.to_tensors(self.spec, self.initial)


def reduce(source, initial_state, reduce_func, name):
    """The last state."""
    f = StateFunction(reduce_func, "reduce", source, initial_state, lambda s: (s, None))
    tensors = raw.ReduceDataset(
        source._variant_tensor,
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


class _ScanDataset(_UnaryDataset):
    def __init__(self, source, initial_state, scan_func):
        f = StateFunction(scan_func, "scan", source, initial_state, _split_scan)
        super().__init__(
            "ScanDataset",
            source,
            f.output,
            [f.traced],
            initial_state=f.tensors(),
            other_arguments=f.traced.captures,
            f=f.traced.function,
            preserve_cardinality=True,
        )
