"""Rows of datasets under the names that they had while they were experimental, and
of kinds that newer programs do not make."""

import pathlib
import tempfile

import numpy as np
from rows import formula, row
from rows_of_data import _elements, _files, _function, _kinds, _long, _range


@row(
    "ExperimentalMapAndBatchDataset ExperimentalScanDataset"
    " ExperimentalTakeWhileDataset ExperimentalGroupByWindowDataset"
)
def experimental_functions(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 5), "other_arguments": []}
    square = _function(tf, lambda i: i * i + 1, "int64")
    add = _function(tf, lambda s, i: (s + i, s * 10), "int64", "int64")
    two = _long(tf, 2)

    def first_of(key, window):
        del key
        return tf.raw_ops.TakeDataset(
            input_dataset=window, count=_long(tf, 2), **_kinds(tf)
        )

    both = raw.ExperimentalMapAndBatchDataset(
        **numbers,
        f=square,
        **_kinds(tf, shapes=[[None]]),
        batch_size=two,
        num_parallel_calls=two,
        drop_remainder=False,
    )
    groups = raw.ExperimentalGroupByWindowDataset(
        input_dataset=_range(tf, raw, 8),
        key_func_other_arguments=[],
        reduce_func_other_arguments=[],
        window_size_func_other_arguments=[],
        key_func=_function(tf, lambda i: i % 2, "int64"),
        reduce_func=_function(tf, first_of, "int64", "variant"),
        window_size_func=_function(tf, lambda k: k + 2, "int64"),
        **_kinds(tf),
    )
    small = _function(tf, lambda i: i < 3, "int64")
    found = [
        raw.ExperimentalScanDataset(
            **numbers, initial_state=[two], f=add, **_kinds(tf)
        ),
        raw.ExperimentalTakeWhileDataset(**numbers, predicate=small, **_kinds(tf)),
        groups,
    ]
    return [
        *(_elements(tf, raw, d) for d in found),
        _elements(tf, raw, both, "int64", shapes=[[None]]),
    ]


@row(
    "ExperimentalDirectedInterleaveDataset ExperimentalUniqueDataset"
    " ExperimentalIgnoreErrorsDataset ExperimentalUnbatchDataset"
    " ExperimentalDenseToSparseBatchDataset"
    " ExperimentalMaxIntraOpParallelismDataset ExperimentalPrivateThreadPoolDataset"
    " ExperimentalSleepDataset SleepDataset ExperimentalLatencyStatsDataset"
    " LatencyStatsDataset ExperimentalBytesProducedStatsDataset"
    " BytesProducedStatsDataset NonSerializableDataset OptimizeDataset"
    " ExperimentalNonSerializableDataset"
)
def experimental_transformations(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 3), **_kinds(tf)}
    again = raw.TensorSliceDataset(
        components=[_long(tf, [3, 1, 3, 2, 1])], output_shapes=[[]]
    )
    directed = raw.ExperimentalDirectedInterleaveDataset(
        selector_input_dataset=raw.TensorSliceDataset(
            components=[_long(tf, [1, 0, 0, 1, 1])], output_shapes=[[]]
        ),
        data_input_datasets=[_range(tf, raw, 3), _range(tf, raw, 9, 7)],
        **_kinds(tf),
    )
    batches = raw.BatchDatasetV2(
        input_dataset=_range(tf, raw, 5),
        batch_size=_long(tf, 2),
        drop_remainder=False,
        **_kinds(tf, shapes=[[None]]),
    )
    tagged = [
        getattr(raw, name)(tag="a", **numbers)
        for name in (
            "LatencyStatsDataset",
            "ExperimentalLatencyStatsDataset",
            "BytesProducedStatsDataset",
            "ExperimentalBytesProducedStatsDataset",
        )
    ]
    slow = {"sleep_microseconds": _long(tf, 1), **numbers}
    plain = [
        directed,
        raw.ExperimentalUniqueDataset(input_dataset=again, **_kinds(tf)),
        raw.ExperimentalIgnoreErrorsDataset(**numbers),
        raw.ExperimentalUnbatchDataset(input_dataset=batches, **_kinds(tf)),
        raw.ExperimentalMaxIntraOpParallelismDataset(
            max_intra_op_parallelism=_long(tf, 1), **numbers
        ),
        raw.ExperimentalPrivateThreadPoolDataset(num_threads=_long(tf, 2), **numbers),
        raw.SleepDataset(**slow),
        raw.ExperimentalSleepDataset(**slow),
        *tagged,
        raw.NonSerializableDataset(**numbers),
        raw.ExperimentalNonSerializableDataset(**numbers),
        raw.OptimizeDataset(optimizations=tf.constant([], tf.string), **numbers),
    ]
    sparse = raw.ExperimentalDenseToSparseBatchDataset(
        input_dataset=again,
        batch_size=_long(tf, 2),
        row_shape=tf.constant([], tf.int64),
        **_kinds(tf, "variant", shapes=[[3]]),
    )
    (rows, *_) = _elements(tf, raw, sparse, "variant", shapes=[[3]])
    return [
        *(_elements(tf, raw, d) for d in plain),
        raw.DeserializeSparse(serialized_sparse=rows, dtype=tf.int64),
    ]


@row("SlidingWindowDataset ExperimentalSlidingWindowDataset")
def sliding_windows(tf, raw):
    def of(op, count, size, shift, stride, **more):
        made = op(
            input_dataset=_range(tf, raw, count),
            window_size=_long(tf, size),
            window_shift=_long(tf, shift),
            window_stride=_long(tf, stride),
            **_kinds(tf, shapes=[[None]]),
            **more,
        )
        return _elements(tf, raw, made, "int64", shapes=[[None]])

    op = raw.SlidingWindowDataset
    return [
        of(op, 7, 3, 2, 1),
        of(op, 7, 2, 1, 2),
        of(op, 7, 3, 2, 1, drop_remainder=False),
        of(op, 6, 3, 2, 1, drop_remainder=False),
        of(op, 6, 2, 4, 1, drop_remainder=False),
        of(raw.ExperimentalSlidingWindowDataset, 7, 3, 2, 1),
    ]


@row("RebatchDataset ExperimentalRebatchDataset")
def batches_for_replicas(tf, raw):
    kinds = _kinds(tf, shapes=[[None]])
    batches = raw.BatchDatasetV2(
        input_dataset=_range(tf, raw, 10),
        batch_size=_long(tf, 6),
        drop_remainder=False,
        **kinds,
    )
    return [
        _elements(
            tf,
            raw,
            op(input_dataset=batches, num_replicas=_long(tf, n), **kinds),
            "int64",
            shapes=[[None]],
        )
        for op in (raw.RebatchDataset, raw.ExperimentalRebatchDataset)
        for n in (2, 4)
    ]


@row(
    "ParallelInterleaveDataset ExperimentalParallelInterleaveDataset"
    " ParallelInterleaveDatasetV3 LegacyParallelInterleaveDatasetV2"
)
def older_interleaving(tf, raw):
    def several(i):
        return tf.data.Dataset.range(i * 10, i * 10 + 4)._variant_tensor

    numbers = {"input_dataset": _range(tf, raw, 2), "other_arguments": []}
    numbers.update(f=_function(tf, several, "int64"), **_kinds(tf))
    numbers.update(cycle_length=_long(tf, 2), block_length=_long(tf, 2))
    ahead = {
        "buffer_output_elements": _long(tf, 1),
        "prefetch_input_elements": _long(tf, 1),
    }
    return [
        _elements(tf, raw, d)
        for d in (
            raw.ParallelInterleaveDataset(**numbers, **ahead, sloppy=False),
            raw.ExperimentalParallelInterleaveDataset(**numbers, **ahead, sloppy=False),
            raw.LegacyParallelInterleaveDatasetV2(
                **numbers, **ahead, deterministic="true"
            ),
            raw.ParallelInterleaveDatasetV3(
                **numbers, num_parallel_calls=_long(tf, 2), deterministic="true"
            ),
        )
    ]


@row(
    "ThreadPoolHandle ThreadPoolDataset ExperimentalThreadPoolHandle"
    " ExperimentalThreadPoolDataset WrapDatasetVariant UnwrapDatasetVariant"
)
def wrapped_datasets(tf, raw):
    numbers = {"input_dataset": _range(tf, raw, 3), **_kinds(tf)}
    pools = [
        op(num_threads=2, display_name="pool")
        for op in (raw.ThreadPoolHandle, raw.ExperimentalThreadPoolHandle)
    ]
    wrapped = raw.WrapDatasetVariant(input_handle=_range(tf, raw, 2))
    return [
        _elements(tf, raw, d)
        for d in (
            raw.ThreadPoolDataset(thread_pool=pools[0], **numbers),
            raw.ExperimentalThreadPoolDataset(thread_pool=pools[1], **numbers),
            raw.UnwrapDatasetVariant(input_handle=wrapped),
        )
    ]


@row("SparseTensorSliceDataset")
def rows_of_sparse_tensors(tf, raw):
    made = raw.SparseTensorSliceDataset(
        indices=_long(tf, [[0, 1], [2, 0], [2, 3]]),
        values=[1.0, 2.0, 3.0],
        dense_shape=_long(tf, [4, 4]),
    )
    shapes = [[None, 1], [None], [1]]
    return _elements(tf, raw, made, "int64", "float32", "int64", shapes=shapes)


@row("MatchingFilesDataset ExperimentalMatchingFilesDataset")
def names_of_files(tf, raw):
    with tempfile.TemporaryDirectory() as folder:
        for name in "bac":
            pathlib.Path(folder, name).write_text(name)
        patterns = [f"{folder}/c", f"{folder}/[ab]", f"{folder}/none"]
        found = [
            _elements(tf, raw, op(patterns=patterns), "string")
            for op in (raw.MatchingFilesDataset, raw.ExperimentalMatchingFilesDataset)
        ]
    return [[x.numpy().rpartition(b"/")[2] for x in names] for names in found]


@formula("ExperimentalMapDataset ExperimentalRandomDataset FixedLengthRecordDataset")
def what_tensorflow_cannot_walk(tf, raw):
    """Its kernels of these are for GPUs alone, or do not fit their ops."""
    mapped = raw.ExperimentalMapDataset(
        input_dataset=_range(tf, raw, 3),
        other_arguments=[],
        f=_function(tf, lambda i: i * i + 1, "int64"),
        **_kinds(tf),
    )
    seeds = {"seed": _long(tf, 3), "seed2": _long(tf, 4)}
    made = [
        op(**seeds, **_kinds(tf))
        for op in (raw.ExperimentalRandomDataset, raw.RandomDataset)
    ]
    _, _, fixed, _ = _files(tf)
    sizes = {"header_bytes": 1, "record_bytes": 2, "footer_bytes": 1, "buffer_size": 16}
    sizes = {k: _long(tf, v) for k, v in sizes.items()}
    records = [
        raw.FixedLengthRecordDataset(filenames=[fixed], **sizes),
        raw.FixedLengthRecordDatasetV2(filenames=[fixed], compression_type="", **sizes),
    ]
    return [
        *zip(_elements(tf, raw, mapped), [1, 2, 5], strict=True),
        *zip(*(_elements(tf, raw, d, most=3) for d in made), strict=True),
        *zip(*(_elements(tf, raw, d, "string") for d in records), strict=True),
    ]


@row("ExperimentalCSVDataset")
def files_by_old_names(tf, raw):
    _, table, _, _ = _files(tf)
    lines = raw.ExperimentalCSVDataset(
        filenames=[table],
        compression_type="",
        buffer_size=_long(tf, 16),
        header=True,
        field_delim=",",
        use_quote_delim=True,
        na_value="",
        select_cols=np.zeros([0], np.int64),
        record_defaults=[tf.constant([9]), tf.constant([1.0]), tf.constant(["z"])],
        output_shapes=[[], [], []],
    )
    return _elements(tf, raw, lines, "int32", "float32", "string")
