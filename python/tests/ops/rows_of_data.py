"""Rows of datasets, iterators, optionals and memory caches."""

import functools
import pathlib
import tempfile

import numpy as np
from rows import formula, row, wave


def _kinds(tf, *types, shapes=None):
    return {
        "output_types": [tf.as_dtype(t) for t in types or ("int64",)],
        "output_shapes": shapes or [[]] * max(1, len(types)),
    }


def _long(tf, values):
    return tf.constant(values, tf.int64)


def _range(tf, raw, stop, start=0):
    bounds = {"start": start, "stop": stop, "step": 1}
    return raw.RangeDataset(
        **{k: _long(tf, v) for k, v in bounds.items()}, **_kinds(tf)
    )


def _elements(tf, raw, dataset, *types, shapes=None, most=40):
    """All elements (the first of `most`), flat."""
    kinds = _kinds(tf, *types, shapes=shapes)
    iterator = raw.AnonymousIteratorV3(**kinds)
    raw.MakeIterator(dataset=dataset, iterator=iterator)
    found = []
    for _ in range(most):
        try:
            found += raw.IteratorGetNext(iterator=iterator, **kinds)
        except tf.errors.OutOfRangeError:
            break
    return found


def _function(tf, f, *types, shapes=None):
    """f(tensors) -> tensors, traced."""
    kinds = _kinds(tf, *types, shapes=shapes)
    specs = [
        tf.TensorSpec(s, t)
        for t, s in zip(kinds["output_types"], kinds["output_shapes"], strict=True)
    ]
    return tf.function(f).get_concrete_function(*specs)


@row("TensorDataset TensorSliceDataset ZipDataset ConcatenateDataset ListDataset")
def made_of_tensors(tf, raw):
    x, words = wave(tf, 3, 2), tf.constant(["a", "b", "c"])
    one = raw.TensorDataset(components=[x, words], output_shapes=[[3, 2], [3]])
    rows = raw.TensorSliceDataset(components=[x, words], output_shapes=[[2], []])
    zipped = raw.ZipDataset(
        input_datasets=[rows, _range(tf, raw, 2)],
        **_kinds(tf, "float32", "string", "int64", shapes=[[2], [], []]),
    )
    joined = raw.ConcatenateDataset(
        input_dataset=_range(tf, raw, 2),
        another_dataset=_range(tf, raw, 9, 7),
        **_kinds(tf),
    )
    listed = raw.ListDataset(tensors=[_long(tf, 4), _long(tf, 2)], **_kinds(tf))
    return [
        *_elements(tf, raw, one, "float32", "string", shapes=[[3, 2], [3]]),
        *_elements(tf, raw, rows, "float32", "string", shapes=[[2], []]),
        *_elements(tf, raw, zipped, "float32", "string", "int64", shapes=[[2], [], []]),
        *_elements(tf, raw, joined),
        *_elements(tf, raw, listed),
    ]


@row("RangeDataset TakeDataset SkipDataset RepeatDataset ShardDataset PrefetchDataset")
def parts(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 7), **_kinds(tf)}
    two = _long(tf, 2)
    step = raw.RangeDataset(
        start=_long(tf, 9), stop=_long(tf, 0), step=_long(tf, -4), **_kinds(tf)
    )
    return [
        _elements(tf, raw, dataset)
        for dataset in (
            step,
            raw.TakeDataset(count=two, **numbers),
            raw.SkipDataset(count=_long(tf, 5), **numbers),
            raw.RepeatDataset(count=two, **numbers),
            raw.ShardDataset(num_shards=_long(tf, 3), index=two, **numbers),
            raw.PrefetchDataset(buffer_size=two, **numbers),
        )
    ]


@formula("BatchDataset")
def batches_of_old(tf, raw):
    made = raw.BatchDataset(
        input_dataset=_range(tf, raw, 5),
        batch_size=_long(tf, 2),
        **_kinds(tf, shapes=[[None]]),
    )
    found = _elements(tf, raw, made, "int64", shapes=[[None]])
    return list(zip(found, [np.array(x) for x in ([0, 1], [2, 3], [4])], strict=True))


@row(
    "BatchDatasetV2 ParallelBatchDataset RebatchDatasetV2 UnbatchDataset"
    " WindowDataset WindowOp"
)
def batches(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 5)}
    some = _kinds(tf, shapes=[[None]])
    size = {"batch_size": _long(tf, 2)}
    pairs = raw.BatchDatasetV2(**numbers, **size, drop_remainder=False, **some)
    found = [
        raw.BatchDatasetV2(**numbers, **size, drop_remainder=True, **some),
        raw.ParallelBatchDataset(
            **numbers,
            **size,
            num_parallel_calls=_long(tf, 2),
            drop_remainder=False,
            deterministic="true",
            **some,
        ),
        raw.RebatchDatasetV2(
            input_dataset=pairs,
            batch_sizes=_long(tf, [3, 1]),
            drop_remainder=False,
            **some,
        ),
    ]
    found = [_elements(tf, raw, d, "int64", shapes=[[None]]) for d in found]
    flat = raw.UnbatchDataset(input_dataset=pairs, **_kinds(tf))
    windows = raw.WindowDataset(
        **numbers,
        size=_long(tf, 3),
        shift=_long(tf, 2),
        stride=_long(tf, 1),
        drop_remainder=False,
        **_kinds(tf, "variant"),
    )
    for window in _elements(tf, raw, windows, "variant"):
        found.append(_elements(tf, raw, window))
    made = raw.WindowOp(inputs=[_long(tf, 7), _long(tf, 8)], **_kinds(tf))
    return [*found, _elements(tf, raw, flat), _elements(tf, raw, made)]


def _growing(tf, raw):
    cut = _function(tf, lambda i: tf.range(i), "int64")
    return raw.MapDataset(
        input_dataset=_range(tf, raw, 4),
        other_arguments=[],
        f=cut,
        **_kinds(tf, shapes=[[None]]),
    )


@formula("PaddedBatchDataset")
def padded_batches_of_old(tf, raw):
    made = raw.PaddedBatchDataset(
        input_dataset=_growing(tf, raw),
        batch_size=_long(tf, 2),
        padded_shapes=[_long(tf, [-1])],
        padding_values=[_long(tf, -1)],
        output_shapes=[[None, None]],
    )
    found = _elements(tf, raw, made, "int64", shapes=[[None, None]])
    wanted = np.array([[-1], [0]]), np.array([[0, 1, -1], [0, 1, 2]])
    return list(zip(found, wanted, strict=True))


@row("PaddedBatchDatasetV2 DenseToSparseBatchDataset")
def padded_batches(tf, raw):
    more = {"input_dataset": _growing(tf, raw), "batch_size": _long(tf, 3)}
    padded = raw.PaddedBatchDatasetV2(
        padded_shapes=[_long(tf, [4])],
        drop_remainder=False,
        padding_values=[_long(tf, -1)],
        output_shapes=[[None, None]],
        **more,
    )
    sparse = raw.DenseToSparseBatchDataset(
        row_shape=_long(tf, [4]), **_kinds(tf, "variant", shapes=[None]), **more
    )
    found = _elements(tf, raw, padded, "int64", shapes=[[None, None]])
    for coded in _elements(tf, raw, sparse, "variant", shapes=[None]):
        found += tf.raw_ops.DeserializeSparse(serialized_sparse=coded, dtype=tf.int64)
    return found


@row(
    "MapDataset ParallelMapDataset ParallelMapDatasetV2 MapAndBatchDataset"
    " FilterDataset TakeWhileDataset ScanDataset ReduceDataset"
)
def mapped(tf, raw):
    square = _function(tf, lambda i: i * i + 1, "int64")
    small = _function(tf, lambda i: i % 3 < 2, "int64")
    add = _function(tf, lambda s, i: (s + i, s * 10), "int64", "int64")
    total = _function(tf, lambda s, i: s * 2 + i, "int64", "int64")
    numbers = {"input_dataset": _range(tf, raw, 5), "other_arguments": []}
    two = _long(tf, 2)
    mapped = {**numbers, "f": square, **_kinds(tf)}
    both = raw.MapAndBatchDataset(
        **{**mapped, **_kinds(tf, shapes=[[None]])},
        batch_size=two,
        num_parallel_calls=two,
        drop_remainder=False,
    )
    found = [
        raw.MapDataset(**mapped),
        raw.ParallelMapDataset(**mapped, num_parallel_calls=2),
        raw.ParallelMapDatasetV2(
            **mapped, num_parallel_calls=two, deterministic="true"
        ),
        raw.FilterDataset(**numbers, predicate=small, **_kinds(tf)),
        raw.TakeWhileDataset(**numbers, predicate=small, **_kinds(tf)),
        raw.ScanDataset(**numbers, initial_state=[two], f=add, **_kinds(tf)),
    ]
    reduced = raw.ReduceDataset(**numbers, initial_state=[two], f=total, **_kinds(tf))
    return [
        *(_elements(tf, raw, d) for d in found),
        _elements(tf, raw, both, "int64", shapes=[[None]]),
        *reduced,
    ]


@row(
    "FlatMapDataset InterleaveDataset ParallelInterleaveDatasetV2"
    " ParallelInterleaveDatasetV4 DirectedInterleaveDataset"
)
def interleaved(tf, raw):
    def several(i):
        return tf.data.Dataset.range(i * 10, i * 10 + 3)._variant_tensor

    numbers = {"input_dataset": _range(tf, raw, 3), "other_arguments": []}
    numbers.update(f=_function(tf, several, "int64"), **_kinds(tf))
    turns = {"cycle_length": _long(tf, 2), "block_length": _long(tf, 2)}
    calls = {"num_parallel_calls": _long(tf, 2)}
    directed = raw.DirectedInterleaveDataset(
        selector_input_dataset=raw.TensorSliceDataset(
            components=[_long(tf, [1, 0, 0, 1, 1])], output_shapes=[[]]
        ),
        data_input_datasets=[_range(tf, raw, 3), _range(tf, raw, 9, 7)],
        **_kinds(tf),
    )
    return [
        _elements(tf, raw, d)
        for d in (
            raw.FlatMapDataset(**numbers),
            raw.InterleaveDataset(**numbers, **turns),
            raw.ParallelInterleaveDatasetV2(**numbers, **turns, **calls),
            raw.ParallelInterleaveDatasetV4(
                **numbers,
                **turns,
                **calls,
                buffer_output_elements=_long(tf, 1),
                prefetch_input_elements=_long(tf, 1),
                deterministic="true",
            ),
            directed,
        )
    ]


@row("GroupByWindowDataset UniqueDataset IgnoreErrorsDataset")
def by_functions(tf, raw):
    def first_of(key, window):
        del key
        return tf.raw_ops.TakeDataset(
            input_dataset=window, count=_long(tf, 2), **_kinds(tf)
        )

    key = _function(tf, lambda i: i % 2, "int64")
    size = _function(tf, lambda k: k + 2, "int64")
    reduce = _function(tf, first_of, "int64", "variant")
    groups = raw.GroupByWindowDataset(
        input_dataset=_range(tf, raw, 8),
        key_func_other_arguments=[],
        reduce_func_other_arguments=[],
        window_size_func_other_arguments=[],
        key_func=key,
        reduce_func=reduce,
        window_size_func=size,
        **_kinds(tf),
    )
    again = raw.TensorSliceDataset(
        components=[_long(tf, [3, 1, 3, 2, 1])], output_shapes=[[]]
    )
    checked = _function(
        tf,
        lambda i: (
            tf.raw_ops.CheckNumerics(tensor=4.0 / tf.cast(i, tf.float32), message="")
            + 0.5
        ),
        "int64",
    )
    risky = raw.MapDataset(
        input_dataset=_range(tf, raw, 3),
        other_arguments=[],
        f=checked,
        **_kinds(tf, "float32"),
    )
    risky = raw.IgnoreErrorsDataset(input_dataset=risky, **_kinds(tf, "float32"))
    return [
        _elements(tf, raw, groups),
        _elements(tf, raw, raw.UniqueDataset(input_dataset=again, **_kinds(tf))),
        _elements(tf, raw, risky, "float32"),
    ]


@row("ShuffleDataset ShuffleAndRepeatDataset RandomDataset")
def shuffled(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 6), **_kinds(tf)}
    seeds = {"seed": _long(tf, 3), "seed2": _long(tf, 4)}
    some = {"buffer_size": _long(tf, 4), **seeds}
    return [
        _elements(tf, raw, raw.ShuffleDataset(**numbers, **some)),
        _elements(
            tf,
            raw,
            raw.ShuffleAndRepeatDataset(**numbers, **some, count=_long(tf, 2)),
        ),
        _elements(tf, raw, raw.RandomDataset(**seeds, **_kinds(tf)), most=4),
    ]


@row("ShuffleAndRepeatDatasetV2 RandomDatasetV2 ShuffleDatasetV2")
def shuffled_by_generators(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 6), **_kinds(tf)}
    seeds = {"seed": _long(tf, 3), "seed2": _long(tf, 4)}
    source = {
        "seed_generator": tf.raw_ops.AnonymousSeedGenerator(**seeds, reshuffle=True)[0]
    }
    again = raw.ShuffleAndRepeatDatasetV2(
        **numbers, **seeds, **source, buffer_size=_long(tf, 4), count=_long(tf, 2)
    )
    drawn = raw.RandomDatasetV2(**seeds, **source, **_kinds(tf))
    old = raw.ShuffleDatasetV2(**numbers, **source, buffer_size=_long(tf, 4))
    return [
        _elements(tf, raw, again),
        _elements(tf, raw, drawn, most=4),
        _elements(tf, raw, old),
    ]


@row(
    "DatasetCardinality ExperimentalDatasetCardinality AssertCardinalityDataset"
    " DatasetToSingleElement GetElementAtIndex"
)
def sizes(tf, raw):
    numbers = _range(tf, raw, 5)
    told = raw.AssertCardinalityDataset(
        input_dataset=numbers, cardinality=_long(tf, 5), **_kinds(tf)
    )
    odd = raw.FilterDataset(
        input_dataset=numbers,
        other_arguments=[],
        predicate=_function(tf, lambda i: i > 3, "int64"),
        **_kinds(tf),
    )
    return [
        raw.DatasetCardinality(input_dataset=told),
        raw.DatasetCardinality(input_dataset=odd),
        raw.ExperimentalDatasetCardinality(input_dataset=numbers),
        *raw.DatasetToSingleElement(dataset=odd, **_kinds(tf)),
        *raw.GetElementAtIndex(dataset=numbers, index=_long(tf, 3), **_kinds(tf)),
        *_elements(tf, raw, told),
    ]


@row(
    "OptionsDataset OptimizeDatasetV2 ModelDataset FinalizeDataset"
    " MaxIntraOpParallelismDataset PrivateThreadPoolDataset"
)
def passed_through(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 3), **_kinds(tf)}
    none, two = tf.constant([], tf.string), _long(tf, 2)
    return [
        _elements(tf, raw, d)
        for d in (
            raw.OptionsDataset(**numbers, serialized_options=b""),
            raw.OptimizeDatasetV2(
                **numbers,
                optimizations_enabled=none,
                optimizations_disabled=none,
                optimizations_default=none,
            ),
            raw.ModelDataset(**numbers),
            raw.FinalizeDataset(**numbers),
            raw.MaxIntraOpParallelismDataset(**numbers, max_intra_op_parallelism=two),
            raw.PrivateThreadPoolDataset(**numbers, num_threads=two),
        )
    ]


@row("CacheDataset CacheDatasetV2 AnonymousMemoryCache")
def cached(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 3), "filename": "", **_kinds(tf)}
    cache, _deleter = raw.AnonymousMemoryCache()
    old, new = raw.CacheDataset(**numbers), raw.CacheDatasetV2(**numbers, cache=cache)
    return [_elements(tf, raw, d) for d in (old, old, new, new)]


# --- Iterators.


@row("AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 IteratorGetNextSync")
def iterators(tf, raw):
    kinds, found = _kinds(tf), []
    for iterator in (
        raw.AnonymousIterator(**kinds),
        raw.AnonymousIteratorV2(**kinds)[0],
        raw.AnonymousIteratorV3(**kinds),
    ):
        raw.MakeIterator(dataset=_range(tf, raw, 9, 4), iterator=iterator)
        found += raw.IteratorGetNextSync(iterator=iterator, **kinds)
        found += raw.IteratorGetNextSync(iterator=iterator, **kinds)
    return found


@row(
    "IteratorGetNextAsOptional OptionalFromValue OptionalGetValue OptionalHasValue"
    " OptionalNone"
)
def optionals(tf, raw):
    kinds = _kinds(tf)
    iterator = raw.AnonymousIteratorV3(**kinds)
    raw.MakeIterator(dataset=_range(tf, raw, 8, 7), iterator=iterator)
    first = raw.IteratorGetNextAsOptional(iterator=iterator, **kinds)
    none = raw.IteratorGetNextAsOptional(iterator=iterator, **kinds)
    made = raw.OptionalFromValue(components=[wave(tf, 2), tf.constant("a")])
    two = _kinds(tf, "float32", "string", shapes=[[2], []])
    return [
        *(
            raw.OptionalHasValue(optional=o)
            for o in (first, none, made, raw.OptionalNone())
        ),
        *raw.OptionalGetValue(optional=first, **kinds),
        *raw.OptionalGetValue(optional=made, **two),
    ]


@row(
    "Iterator IteratorV2 IteratorToStringHandle IteratorFromStringHandleV2 IteratorGetNext"
)
def iterators_of_graphs(tf, raw):
    found = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        kinds = _kinds(tf)
        for make, again in (
            (raw.Iterator, raw.IteratorFromStringHandleV2),
            (raw.IteratorV2, raw.IteratorFromStringHandleV2),
        ):
            iterator = make(shared_name="", container="", **kinds)
            begin = raw.MakeIterator(dataset=_range(tf, raw, 9, 4), iterator=iterator)
            session.run(begin)
            handle = raw.IteratorToStringHandle(resource_handle=iterator)
            other = again(string_handle=session.run(handle), **kinds)
            for i in (iterator, other, iterator):
                found += session.run(raw.IteratorGetNext(iterator=i, **kinds))
    return found


@row("IteratorFromStringHandle")
def iterators_by_name(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        kinds = _kinds(tf)
        iterator = raw.IteratorV2(shared_name="", container="", **kinds)
        begin = raw.MakeIterator(dataset=_range(tf, raw, 9, 4), iterator=iterator)
        session.run(begin)
        handle = raw.IteratorToStringHandle(resource_handle=iterator)
        other = raw.IteratorFromStringHandle(string_handle=session.run(handle), **kinds)
        return session.run(raw.IteratorGetNext(iterator=other, **kinds))


@row("SerializeIterator DeserializeIterator")
def iterator_states(tf, raw):
    kinds = _kinds(tf)
    data = _range(tf, raw, 9, 4)
    iterators = [raw.AnonymousIteratorV3(**kinds) for _ in range(2)]
    for iterator in iterators:
        raw.MakeIterator(dataset=data, iterator=iterator)
    for _ in range(2):
        raw.IteratorGetNext(iterator=iterators[0], **kinds)
    state = raw.SerializeIterator(resource_handle=iterators[0])
    raw.DeserializeIterator(resource_handle=iterators[1], serialized=state)
    return raw.IteratorGetNext(iterator=iterators[1], **kinds)


@row("OneShotIterator")
def one_shot(tf, raw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        make = tf.function(lambda: tf.data.Dataset.range(5, 9)._variant_tensor)
        iterator = raw.OneShotIterator(
            dataset_factory=make.get_concrete_function(), **_kinds(tf)
        )
        first = tf.raw_ops.IteratorGetNext(iterator=iterator, **_kinds(tf))
        return [session.run(first) for _ in range(2)]


# --- Files.


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory()


def _path(name):
    return pathlib.Path(_folder().name, name)


def _files(tf):
    text = _path("text")
    text.write_text("one\ntwo\n\nfour\n")
    table = _path("table")
    table.write_text("a,b,c\n1,2.5,x\n,3.5,\n")
    fixed = _path("fixed")
    fixed.write_bytes(b"hAABBCCf")
    records = _path("records")
    with tf.io.TFRecordWriter(str(records)) as writer:
        for word in ("x", "yy", "zzz"):
            writer.write(word)
    return [str(p) for p in (text, table, fixed, records)]


@row(
    "TextLineDataset FixedLengthRecordDatasetV2 TFRecordDataset CSVDataset"
    " CSVDatasetV2 MatchingFiles"
)
def files(tf, raw):
    text, table, fixed, records = _files(tf)
    more = {"compression_type": "", "buffer_size": _long(tf, 16)}
    sizes = {"header_bytes": 1, "record_bytes": 2, "footer_bytes": 1}
    columns = {
        "filenames": [table],
        **more,
        "header": True,
        "field_delim": ",",
        "use_quote_delim": True,
        "na_value": "",
        "select_cols": tf.constant([], tf.int64),
        "record_defaults": [tf.constant([9]), tf.constant([1.0]), tf.constant(["z"])],
        "output_shapes": [[], [], []],
    }
    none = tf.constant([], tf.int64)
    lines = [
        raw.TextLineDataset(filenames=[text], **more),
        raw.FixedLengthRecordDatasetV2(
            filenames=[fixed], **more, **{k: _long(tf, v) for k, v in sizes.items()}
        ),
        raw.TFRecordDataset(filenames=[records], **more),
    ]
    rows = [
        raw.CSVDataset(**columns),
        raw.CSVDatasetV2(**columns, exclude_cols=none),
    ]
    matching = raw.MatchingFiles(pattern=str(_path("te*")))
    return [
        *(_elements(tf, raw, d, "string") for d in lines),
        *(_elements(tf, raw, d, "int32", "float32", "string") for d in rows),
        np.array([p.rpartition(b"/")[2] for p in matching.numpy()]),
    ]


def _reader(tf):
    def read(shards):
        return tf.raw_ops.FlatMapDataset(
            input_dataset=shards,
            other_arguments=[],
            f=_function(tf, lambda shard: shard, "variant"),
            **_kinds(tf),
        )

    return _function(tf, read, "variant")


@formula("TFRecordDatasetV2")
def records_from_a_place(tf, raw):
    made = raw.TFRecordDatasetV2(
        filenames=[_files(tf)[-1]],
        compression_type="",
        buffer_size=_long(tf, 16),
        byte_offsets=_long(tf, [17]),
    )
    found = _elements(tf, raw, made, "string")
    return list(zip(found, [b"yy", b"zzz"], strict=True))


@row("SaveDataset SaveDatasetV2 LoadDataset SnapshotDatasetV2")
def saved(tf, raw):
    numbers, found = _range(tf, raw, 4), []
    zero = _function(tf, lambda i: tf.zeros([], tf.int64), "int64")
    more = {"shard_func_other_args": [], "shard_func": zero}
    load = {"reader_func_other_args": [], "reader_func": _reader(tf), **_kinds(tf)}
    old, new = str(_path("old")), str(_path("new"))
    raw.SaveDataset(input_dataset=numbers, path=old, **more)
    found += _elements(tf, raw, raw.LoadDataset(path=old, **load))
    made = raw.SaveDatasetV2(input_dataset=numbers, path=new, **more, **_kinds(tf))
    found += _elements(tf, raw, made)
    found += _elements(tf, raw, raw.LoadDataset(path=new, **load))
    kept = raw.SnapshotDatasetV2(
        input_dataset=numbers, path=str(_path("kept")), **more, **load
    )
    return [*found, *_elements(tf, raw, kept), *_elements(tf, raw, kept)]


@row("DummyMemoryCache DummySeedGenerator")
def stand_ins_of_graphs(tf, raw):
    """Datasets of graphs have no cache and no source of seeds of their own."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        numbers = {"input_dataset": _range(tf, raw, 5), **_kinds(tf)}
        cached = tf.raw_ops.CacheDatasetV2(
            **numbers, filename="", cache=raw.DummyMemoryCache()
        )
        shuffled = tf.raw_ops.ShuffleDatasetV3(
            **numbers,
            buffer_size=_long(tf, 5),
            seed=_long(tf, 3),
            seed2=_long(tf, 4),
            seed_generator=raw.DummySeedGenerator(),
        )
        found = []
        for data in (cached, shuffled):
            iterator = raw.IteratorV2(shared_name="", container="", **_kinds(tf))
            session.run(raw.MakeIterator(dataset=data, iterator=iterator))
            following = raw.IteratorGetNext(iterator=iterator, **_kinds(tf))
            found += [session.run(following) for _ in range(5)]
        return found


@row("GeneratorDataset")
def generated(tf, raw):
    count = tf.Variable(_long(tf, 0))

    def following(state):
        return count.assign_add(state, read_value=True)

    begin = tf.function(lambda: _long(tf, 3)).get_concrete_function()
    following = _function(tf, following, "int64")
    end = _function(tf, lambda state: state, "int64")
    data = raw.GeneratorDataset(
        init_func_other_args=[],
        next_func_other_args=[count.handle],
        finalize_func_other_args=[],
        init_func=begin,
        next_func=following,
        finalize_func=end,
        **_kinds(tf),
    )
    return _elements(tf, raw, data, most=3)


@formula("SnapshotDatasetReader")
def snapshots(tf, raw):
    zero = _function(tf, lambda i: tf.zeros([], tf.int64), "int64")
    kept = tf.raw_ops.SnapshotDatasetV2(
        input_dataset=_range(tf, raw, 4),
        path=str(_path("snapshot")),
        shard_func_other_args=[],
        shard_func=zero,
        reader_func_other_args=[],
        reader_func=_reader(tf),
        **_kinds(tf),
    )
    _elements(tf, raw, kept)
    (shard,) = _path("snapshot").glob("**/*.shard")
    made = raw.SnapshotDatasetReader(
        shard_dir=str(shard), start_index=_long(tf, 0), version=2, **_kinds(tf)
    )
    return list(zip(_elements(tf, raw, made), range(4), strict=True))


@row("DeleteIterator")
def deleted(tf, raw):
    """What is gone gives no more."""
    kinds = _kinds(tf)
    handle, deleter = tf.raw_ops.AnonymousIteratorV2(**kinds)
    raw.MakeIterator(dataset=_range(tf, raw, 5), iterator=handle)
    found = raw.IteratorGetNext(iterator=handle, **kinds)
    raw.DeleteIterator(handle=handle, deleter=deleter)
    try:
        raw.IteratorGetNext(iterator=handle, **kinds)
    except tf.errors.OpError as error:
        found.append(type(error).__name__)
    return found
