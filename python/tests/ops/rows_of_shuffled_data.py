"""Rows of datasets that are read by number, in parts, or that parse what they read.
Values are TensorFlow 2.21's."""

import pathlib
import tempfile

import numpy as np
from rows import formula
from rows_of_data import _elements, _function, _kinds, _long, _range
from rows_of_more_data import _dataset, _numbers


def _seeds(tf, raw, fresh):
    return raw.AnonymousSeedGenerator(
        seed=_long(tf, 5), seed2=_long(tf, 6), reshuffle=fresh
    )[0]


def shuffled(tf, raw, dataset, fresh=False):
    return raw.GlobalShuffleDataset(
        input_dataset=dataset,
        seed=_long(tf, 5),
        seed2=_long(tf, 6),
        seed_generator=_seeds(tf, raw, fresh),
        reshuffle_each_iteration=fresh,
        **_kinds(tf),
    )


@formula("GlobalShuffleDataset")
def shuffled_by_number(tf, raw):
    made = shuffled(tf, raw, _range(tf, raw, 10))
    order = np.array([5, 9, 7, 4, 2, 3, 6, 0, 1, 8])
    pairs = [_numbers(tf, raw, made), order, _numbers(tf, raw, made), order]
    made = shuffled(tf, raw, _range(tf, raw, 10), True)
    pairs += [_numbers(tf, raw, made), np.array([7, 1, 4, 6, 0, 3, 5, 2, 9, 8])]
    pairs += [_numbers(tf, raw, made), np.array([4, 7, 2, 0, 8, 9, 6, 1, 5, 3])]
    return [*pairs, raw.DatasetCardinality(input_dataset=made), np.array(10)]


def flat(tf, raw, map_func=None, index_map=None, count=9):
    return raw.IndexFlatMapDataset(
        input_dataset=_range(tf, raw, 3),
        map_func_other_args=[],
        index_map_func_other_args=[],
        output_cardinality=_long(tf, count),
        map_func=_function(
            tf, map_func or (lambda x: tf.range(x * 10, x * 10 + 3)), tf.int64
        ),
        index_map_func=_function(
            tf, index_map or (lambda x: (x // 3, x % 3)), tf.int64
        ),
        **_kinds(tf),
    )


@formula("IndexFlatMapDataset")
def rows_by_number(tf, raw):
    wanted = np.array([0, 1, 2, 10, 11, 12, 20, 21, 22])
    pairs = []
    for count in (9, -2, 20):
        pairs += [_numbers(tf, raw, flat(tf, raw, count=count)), wanted]
    made = flat(tf, raw)
    pairs += [raw.DatasetCardinality(input_dataset=made), np.array(9)]
    pairs += [_numbers(tf, raw, flat(tf, raw, lambda x: x)), np.arange(9) // 3]
    mixed = _numbers(tf, raw, shuffled(tf, raw, made))
    return [*pairs, np.sort(mixed), wanted, np.array(mixed[0] != 0), np.array(True)]


@formula("WeightedFlatMapDataset")
def parts_by_weight(tf, raw):
    def made(counts, weights):
        inputs = [_range(tf, raw, 100 * i + n, 100 * i) for i, n in enumerate(counts)]
        weights = [tf.constant(w, tf.float64) for w in weights]
        return raw.WeightedFlatMapDataset(
            input_datasets=inputs, weights=weights, **_kinds(tf)
        )

    pairs = []
    for counts, weights, wanted in (
        ((5, 5), (0.5, 0.5), [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]),
        ((5, 5), (0.25, 0.75), [0, 100, 101, 102, 103, 104]),
        ((10, 5), (2, 1), [0, 1, 2, 3, 4, 100, 101]),
        ((3, 3, 3), (0.2, 0.3, 0.5), [0, 100, 200, 201, 202]),
    ):
        found = made(counts, weights)
        pairs += [_numbers(tf, raw, found), np.array(wanted)]
        pairs += [raw.DatasetCardinality(input_dataset=found), np.array(len(wanted))]
    return pairs


@formula("AutoShardDataset ExperimentalAutoShardDataset")
def parts_of_workers(tf, raw):
    folder = pathlib.Path(tempfile.mkdtemp())
    files = [str(folder / f"f{i}") for i in range(4)]
    for i, file in enumerate(files):
        with tf.io.TFRecordWriter(file) as writer:
            for k in range(2):
                writer.write(f"{i}-{k}")
    records = tf.data.TFRecordDataset(files)
    names = tf.data.Dataset.list_files(str(folder / "*"), shuffle=False)
    mixed = names.interleave(tf.data.TFRecordDataset, cycle_length=2)
    behind = names.flat_map(tf.data.TFRecordDataset)

    def part(dataset, policy, op=raw.AutoShardDataset):
        made = op(
            input_dataset=_dataset(dataset),
            num_workers=_long(tf, 2),
            index=_long(tf, 1),
            auto_shard_policy=policy,
            **_kinds(tf, tf.string),
        )
        return tf.stack(_elements(tf, raw, made, tf.string))

    def texts(given):
        return np.array([t.encode() for t in given.split()], object)

    odd = "1-0 1-1 3-0 3-1"
    every = "0-0 0-1 1-0 1-1 2-0 2-1 3-0 3-1"
    pairs = []
    for dataset, policy, wanted in (
        (records, 0, odd),
        (records, 1, odd),
        (records, 2, "0-1 1-1 2-1 3-1"),
        (records, -1, every),
        (mixed, 1, "1-0 3-0 1-1 3-1"),
        (mixed, 2, "1-0 1-1 3-0 3-1"),
        (behind, 0, odd),
        (records.concatenate(records), 1, f"{odd} {odd}"),
    ):
        pairs += [part(dataset, policy), texts(wanted)]
    numbers = tf.data.Dataset.range(7)
    for op in (raw.AutoShardDataset, raw.ExperimentalAutoShardDataset):
        made = op(
            input_dataset=_dataset(numbers),
            num_workers=_long(tf, 3),
            index=_long(tf, 1),
            **_kinds(tf),
        )
        pairs += [_numbers(tf, raw, made), np.array([1, 4])]
    return pairs


def examples(tf):
    feature = tf.train.Feature
    features = {
        "a": feature(int64_list=tf.train.Int64List(value=[1, 2])),
        "b": feature(float_list=tf.train.FloatList(value=[0.5])),
        "r": feature(bytes_list=tf.train.BytesList(value=[b"x", b"y"])),
    }
    made = tf.train.Example(features=tf.train.Features(feature=features))
    texts = [made.SerializeToString()] * 3
    return _dataset(tf.data.Dataset.from_tensor_slices(texts).batch(2))


def parsed(tf, op, **more):
    given = {
        "input_dataset": examples(tf),
        "num_parallel_calls": _long(tf, 2),
        "dense_defaults": [_long(tf, []), tf.constant([], tf.float32)],
        "sparse_keys": ["r"],
        "dense_keys": ["b", "a"],
        "sparse_types": [tf.string],
        "dense_shapes": [[], [2]],
        "output_types": [tf.int64, tf.float32, tf.variant],
        "output_shapes": [[None, 2], [None], [3]],
    }
    given["dense_defaults"] = given["dense_defaults"][::-1]
    return op(**given | more)


@formula("ParseExampleDataset ParseExampleDatasetV2 ExperimentalParseExampleDataset")
def parsed_batches(tf, raw):
    pairs = []
    types, shapes = [tf.int64, tf.float32, tf.variant], [[None, 2], [None], []]
    for op in (
        raw.ParseExampleDataset,
        raw.ParseExampleDatasetV2,
        raw.ExperimentalParseExampleDataset,
    ):
        made = parsed(tf, op)
        found = _elements(tf, raw, made, *types, shapes=[[None, 2], [None], [3]])
        pairs += [found[0], np.int64([[1, 2]] * 2), found[1], np.float32([0.5] * 2)]
        pairs += [found[3], np.int64([[1, 2]]), found[4], np.float32([0.5])]
        sparse = raw.DeserializeSparse(serialized_sparse=found[5], dtype=tf.string)
        pairs += [sparse[0], np.int64([[0, 0], [0, 1]])]
        pairs += [
            sparse[1],
            np.array([b"x", b"y"], object),
            sparse[2],
            np.int64([1, 2]),
        ]
    for op in (raw.ParseExampleDataset, raw.ParseExampleDatasetV2):
        made = parsed(
            tf,
            op,
            sparse_keys=[],
            sparse_types=[],
            ragged_keys=["r"],
            ragged_value_types=[tf.string],
            ragged_split_types=[tf.int32],
            output_shapes=shapes,
        )
        found = _elements(tf, raw, made, *types, shapes=shapes)
        ragged = raw.RaggedTensorFromVariant(
            encoded_ragged=found[2],
            input_ragged_rank=1,
            output_ragged_rank=1,
            Tvalues=tf.string,
            Tsplits=tf.int32,
        )
        pairs += [ragged[0][0], np.int32([0, 2, 4])]
        pairs += [ragged[1], np.array([b"x", b"y"] * 2, object)]
    return pairs


@formula("SnapshotDataset")
def first_snapshots(tf, raw):
    pairs = []
    for compression in ("", "GZIP", "SNAPPY"):
        folder = pathlib.Path(tempfile.mkdtemp()) / "s"
        for more in ({}, {}, {"mode": "read"}, {"mode": "passthrough"}):
            made = raw.SnapshotDataset(
                input_dataset=_range(tf, raw, 5),
                path=str(folder),
                compression=compression,
                **_kinds(tf),
                **more,
            )
            pairs += [_numbers(tf, raw, made), np.arange(5)]
        found = [p for p in folder.rglob("*.snapshot") if p.is_file()]
        pairs += [np.array(len(found)), np.array(1)]
    return pairs


@formula("SnapshotNestedDatasetReader")
def datasets_of_datasets(tf, raw):
    """TensorFlow 2.21 ends when its iterator is asked."""
    made = raw.SnapshotNestedDatasetReader(
        inputs=[_range(tf, raw, 3), _range(tf, raw, 5)], **_kinds(tf, tf.variant)
    )
    found = _elements(tf, raw, made, tf.variant)
    pairs = [raw.DatasetCardinality(input_dataset=made), np.array(2)]
    for dataset, wanted in zip(found, (3, 5), strict=True):
        pairs += [_numbers(tf, raw, dataset), np.arange(wanted)]
    return pairs
