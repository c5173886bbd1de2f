"""Rows of datasets that TensorFlow has beside the common ones, of iterators of several
devices and of packed elements. Values are TensorFlow 2.21's where it draws them."""

import pathlib
import tempfile

import numpy as np
from rows import formula, old_graph
from rows_of_data import _elements, _function, _kinds, _long, _range


def _numbers(tf, raw, dataset, *types, **more):
    """All elements, which are scalars, in one array."""
    return np.array([np.array(x) for x in _elements(tf, raw, dataset, *types, **more)])


def _dataset(tensors):
    return tensors._variant_tensor


@formula("SamplingDataset")
def sampled_elements(tf, raw):
    def draw(rate, seed, seed2):
        return _numbers(
            tf,
            raw,
            raw.SamplingDataset(
                input_dataset=_range(tf, raw, 30),
                rate=rate,
                seed=_long(tf, seed),
                seed2=_long(tf, seed2),
                **_kinds(tf),
            ),
        )

    return [
        draw(0.4, 1, 2),
        np.array([2, 3, 5, 7, 9, 10, 11, 12, 20, 24]),
        draw(0.4, 87654321, 7),
        np.array([2, 3, 6, 11, 13, 14, 15, 17, 19, 22, 24, 25]),
        draw(0.4, 0, 5),
        np.array([1, 7, 8, 11, 14, 16, 20, 22, 29]),
        draw(1.5, 1, 2),
        np.arange(30),
        len(draw(-0.5, 1, 2)),
        np.array(0),
    ]


@formula("ChooseFastestDataset ExperimentalChooseFastestDataset")
def one_of_several(tf, raw):
    pairs = []
    for op in (raw.ChooseFastestDataset, raw.ExperimentalChooseFastestDataset):
        both = [_range(tf, raw, 5), _range(tf, raw, 5)]
        made = op(input_datasets=both, num_experiments=2, **_kinds(tf))
        pairs += [_numbers(tf, raw, made), np.arange(5)]
        pairs += [raw.DatasetCardinality(input_dataset=made), np.array(5)]
    return pairs


@formula("ChooseFastestBranchDataset")
def one_of_several_branches(tf, raw):
    kinds = _kinds(tf, tf.int64, shapes=[[None]])

    def batch(dataset, size):
        return tf.raw_ops.BatchDatasetV2(
            input_dataset=dataset, batch_size=size, drop_remainder=False, **kinds
        )

    branch = _function(tf, batch, tf.variant, tf.int64, shapes=[[], []])
    made = raw.ChooseFastestBranchDataset(
        input_dataset=_range(tf, raw, 20),
        ratio_numerator=_long(tf, 2),
        ratio_denominator=_long(tf, 1),
        other_arguments=[_long(tf, 2), _long(tf, 2)],
        num_elements_per_branch=2,
        branches=[branch, branch],
        other_arguments_lengths=[1, 1],
        **kinds,
    )
    found = _elements(tf, raw, made, tf.int64, shapes=[[None]])
    count = raw.DatasetCardinality(input_dataset=made)
    return [tf.stack(found), np.arange(20).reshape(10, 2), count, np.array(10)]


@formula("ParallelFilterDataset")
def filtered_in_parallel(tf, raw):
    """TensorFlow 2.21 refuses to run the op itself."""
    even = _function(tf, lambda x: x % 2 == 0, tf.int64)
    pairs = []
    for calls, order in ((2, "default"), (-1, "true"), (5, "false")):
        made = raw.ParallelFilterDataset(
            input_dataset=_range(tf, raw, 7),
            other_arguments=[],
            num_parallel_calls=_long(tf, calls),
            predicate=even,
            deterministic=order,
            **_kinds(tf),
        )
        pairs += [_numbers(tf, raw, made), np.array([0, 2, 4, 6])]
    return pairs


@formula("GroupByReducerDataset ExperimentalGroupByReducerDataset")
def reduced_by_key(tf, raw):
    one, state = [tf.int64], [tf.int64, tf.int64]
    functions = {
        "key_func": _function(tf, lambda x: x % 3, *one),
        "init_func": _function(tf, lambda key: (key * 100, _long(tf, 0)), *one),
        "reduce_func": _function(tf, lambda s, n, x: (s + x, n + 1), *state, *one),
        "finalize_func": _function(tf, lambda s, n: s * 10 + n, *state),
    }
    functions.update({f"{name}_other_arguments": [] for name in list(functions)})
    pairs = []
    for op in (raw.GroupByReducerDataset, raw.ExperimentalGroupByReducerDataset):
        made = op(input_dataset=_range(tf, raw, 10, 1), **functions, **_kinds(tf))
        wanted = np.array([(0 + 18) * 10 + 3, (100 + 12) * 10 + 3, (200 + 15) * 10 + 3])
        pairs += [_numbers(tf, raw, made), wanted]
    return pairs


@formula("DatasetToTFRecord ExperimentalDatasetToTFRecord")
def written_records(tf, raw):
    folder = pathlib.Path(tempfile.mkdtemp())
    records = tf.data.Dataset.from_tensor_slices(["a", "bc", ""])
    pairs = []
    for op in (raw.DatasetToTFRecord, raw.ExperimentalDatasetToTFRecord):
        for kind in ("", "GZIP", "ZLIB"):
            path = str(folder / f"records{kind}")
            op(
                input_dataset=_dataset(records),
                filename=path,
                compression_type=kind,
            )
            found = list(tf.data.TFRecordDataset(path, kind))
            pairs += [tf.stack(found), np.array([b"a", b"bc", b""], object)]
    return pairs


@formula("InitializeTableFromDataset")
def tables_of_datasets(tf, raw):
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], _long(tf, [1, 2])))
    kinds = {"key_dtype": tf.string, "value_dtype": tf.int64}
    table, empty = raw.AnonymousHashTable(**kinds), raw.AnonymousHashTable(**kinds)
    raw.InitializeTableFromDataset(table_handle=table, dataset=_dataset(pairs))
    raw.InitializeTableFromDataset(table_handle=empty, dataset=_dataset(pairs.take(0)))
    asked = {"keys": ["b", "z"], "default_value": _long(tf, -1)}
    return [
        raw.LookupTableFindV2(table_handle=table, **asked),
        np.array([2, -1]),
        raw.LookupTableSizeV2(table_handle=empty),
        np.array(0),
    ]


@formula(
    "AnonymousMultiDeviceIterator AnonymousMultiDeviceIteratorV3 MultiDeviceIterator"
    " MultiDeviceIteratorInit MultiDeviceIteratorGetNextFromShard"
    " MultiDeviceIteratorToStringHandle MultiDeviceIteratorFromStringHandle"
    " DeleteMultiDeviceIterator"
)
def iterators_of_several_devices(tf, raw):
    kinds = _kinds(tf)
    kept = kinds | {"devices": ["/cpu:0", "/cpu:0"]}
    first, deleter = raw.AnonymousMultiDeviceIterator(**kept)
    named = {"shared_name": "of_several", "container": ""}
    handles = [
        first,
        raw.AnonymousMultiDeviceIteratorV3(**kept),
        raw.MultiDeviceIterator(**kept, **named),
    ]
    pairs = []
    for handle in handles:
        number = raw.MultiDeviceIteratorInit(
            dataset=_range(tf, raw, 5),
            multi_device_iterator=handle,
            max_buffer_size=_long(tf, 2),
        )
        text = raw.MultiDeviceIteratorToStringHandle(multi_device_iterator=handle)
        again = raw.MultiDeviceIteratorFromStringHandle(string_handle=text, **kinds)

        def take(shard, again=again, number=number):
            return raw.MultiDeviceIteratorGetNextFromShard(
                multi_device_iterator=again,
                shard_num=shard,
                incarnation_id=number,
                **kinds,
            )

        order = [0, 0, 1, 1, 0]
        pairs += [tf.stack([take(s)[0] for s in order]), np.array([0, 2, 1, 3, 4])]
        for shard in (1, 0):
            try:
                take(shard)
            except tf.errors.OutOfRangeError as error:
                pairs += [np.array("End of sequence" in str(error)), np.array(True)]
    raw.DeleteMultiDeviceIterator(
        multi_device_iterator=first, iterators=[], deleter=deleter
    )
    return pairs


@formula("CompressElement UncompressElement")
def packed_elements(tf, raw):
    given = [tf.constant([1, 2]), tf.constant("abc"), tf.zeros([0, 3])]
    packed = raw.CompressElement(components=given)
    found = raw.UncompressElement(
        compressed=packed,
        output_types=[tf.int32, tf.string, tf.float32],
        output_shapes=[[2], [], [None, 3]],
    )
    wanted = [np.int32([1, 2]), np.array(b"abc", object), np.zeros([0, 3], np.float32)]
    return [x for pair in zip(found, wanted, strict=True) for x in pair]


@formula("CompositeTensorVariantFromComponents CompositeTensorVariantToComponents")
def composite_variants(tf, raw):
    parts = [tf.constant([1, 2, 3]), _long(tf, [0, 2, 3])]
    # A TypeSpecProto of the class RAGGED_TENSOR_SPEC.
    metadata = b"\x0a\x02\x08\x03"
    encoded = raw.CompositeTensorVariantFromComponents(
        components=parts, metadata=metadata
    )
    found = raw.CompositeTensorVariantToComponents(
        encoded=encoded, metadata=metadata, Tcomponents=[tf.int32, tf.int64]
    )
    return [found[0], np.int32([1, 2, 3]), found[1], np.array([0, 2, 3])]


@formula("TileGrad RandomCrop")
def what_became_python(tf, raw):
    """Graphs that TensorFlow of today refuses."""
    tiled = np.arange(24, dtype=np.float32).reshape(4, 6)
    image = np.arange(60, dtype=np.int32).reshape(4, 5, 3)
    crop = {"T": tf.int32, "seed": 3, "seed2": 4}
    tile = {"T": tf.float32}
    nodes = [("a", "TileGrad", [tiled, np.int32([2, 3])], tile)]
    found = old_graph(tf, raw, 2, nodes, [["a:0"]])
    pairs = [found[0], tiled.reshape(2, 2, 3, 2).sum((0, 2))]
    nodes = [
        ("b", "RandomCrop", [image, np.int64([2, 3])], crop),
        ("c", "RandomCrop", [image, np.int64([4, 5])], crop),
        ("d", "RandomCrop", [image, np.int64([0, 2])], crop),
    ]
    part, whole, none = old_graph(tf, raw, 7, nodes, [["b:0", "c:0", "d:0"]])
    part = np.array(part)
    y, x = int(part[0, 0, 0]) // 15, int(part[0, 0, 0]) % 15 // 3
    pairs += [part, image[y : y + 2, x : x + 3], whole, image]
    return [*pairs, np.array(np.array(none).shape), np.array([0, 2, 3])]


@formula("RecordInput")
def records_without_end(tf, raw):
    folder = pathlib.Path(tempfile.mkdtemp())
    for i in range(3):
        with tf.io.TFRecordWriter(str(folder / f"part{i}")) as writer:
            for k in range(4):
                writer.write(f"{i}-{k}")
    made = []
    for _ in range(2):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            records = raw.RecordInput(
                file_pattern=str(folder / "part*"),
                file_buffer_size=5,
                file_shuffle_shift_ratio=0.5,
                batch_size=8,
            )
            drawn = np.concatenate([session.run(records) for _ in range(3)])
        made.append(drawn.tolist())
    every = sorted(f"{i}-{k}".encode() for i in range(3) for k in range(4))
    # Two rounds, each in an order of its own, which the seed alone decides.
    return [
        np.array(sorted(made[0][:12]) == every and sorted(made[0][12:]) == every),
        np.array(True),
        np.array(made[0][:12] != made[0][12:] and made[0][:12] != every),
        np.array(True),
        np.array(made[0] == made[1]),
        np.array(True),
    ]


@formula("MutableDenseHashTableV2 AnonymousMutableDenseHashTable LookupTableRemoveV2")
def tables_in_buckets(tf, raw):
    def fill(make, **more):
        table = make(
            empty_key=_long(tf, -10),
            deleted_key=_long(tf, -11),
            value_dtype=tf.int64,
            initial_num_buckets=8,
            **more,
        )
        for key, value in ((7, 70), (15, 1), (23, 2), (31, 3)):
            raw.LookupTableInsertV2(
                table_handle=table, keys=_long(tf, [key]), values=_long(tf, [value])
            )
        return table

    pairs = []
    for table in (
        fill(raw.AnonymousMutableDenseHashTable),
        fill(raw.MutableDenseHashTableV2, shared_name="in_buckets"),
    ):
        kinds = {"Tkeys": tf.int64, "Tvalues": tf.int64}
        keys, values = raw.LookupTableExportV2(table_handle=table, **kinds)
        buckets = [15, -10, 23, -10, -10, 31, -10, 7]
        pairs += [keys, np.array(buckets)[:, None]]
        pairs += [values, np.array([1, 0, 2, 0, 0, 3, 0, 70])[:, None]]
        raw.LookupTableRemoveV2(table_handle=table, keys=_long(tf, [7, 99]))
        asked = {"keys": _long(tf, [23, 7]), "default_value": _long(tf, -1)}
        pairs += [raw.LookupTableFindV2(table_handle=table, **asked), np.array([2, -1])]
        pairs += [raw.LookupTableSizeV2(table_handle=table), np.array(3)]
    keys = _long(tf, [[1, 2], [3, 4]])
    table = raw.AnonymousMutableDenseHashTable(
        empty_key=_long(tf, [0, 0]),
        deleted_key=_long(tf, [-1, -1]),
        value_dtype=tf.float32,
        value_shape=[3],
    )
    raw.LookupTableInsertV2(table_handle=table, keys=keys, values=tf.ones([2, 3]))
    found = raw.LookupTableFindV2(
        table_handle=table,
        keys=_long(tf, [[3, 4], [9, 9]]),
        default_value=tf.zeros([3]),
    )
    return [*pairs, found, np.float32([[1, 1, 1], [0, 0, 0]])]
