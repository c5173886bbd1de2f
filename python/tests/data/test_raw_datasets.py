"""Datasets that only tf.raw_ops makes: what they refuse, in TensorFlow's words, states of
their iterators, and walks in the middle of pipelines."""

import headrace as tf
import numpy as np
import pytest

raw = tf.raw_ops
Invalid, Precondition = (
    tf.errors.InvalidArgumentError,
    tf.errors.FailedPreconditionError,
)
KINDS = {"output_types": [tf.int64], "output_shapes": [[]]}


def _long(values):
    return tf.constant(values, tf.int64)


def _function(f):
    return tf.function(f).get_concrete_function(tf.TensorSpec([], tf.int64))


class Made(tf.data.Dataset):
    """A dataset of whole numbers of a variant."""

    def __init__(self, variant, spec=None):
        self._spec = spec or tf.TensorSpec([], tf.int64)
        super().__init__(variant)

    @property
    def element_spec(self):
        return self._spec


def _variant(dataset):
    return dataset._variant_tensor


def _list(variant, spec=None):
    return list(Made(variant, spec).as_numpy_iterator())


def _shuffled(dataset, fresh=False, seeds=(5, 6)):
    generator = raw.AnonymousSeedGenerator(
        seed=_long(seeds[0]), seed2=_long(seeds[1]), reshuffle=fresh
    )[0]
    return raw.GlobalShuffleDataset(
        input_dataset=_variant(dataset),
        seed=_long(seeds[0]),
        seed2=_long(seeds[1]),
        seed_generator=generator,
        reshuffle_each_iteration=fresh,
        **KINDS,
    )


NUMBERS = tf.data.Dataset.range(6)


@pytest.mark.parametrize(
    "dataset",
    [
        tf.data.Dataset.from_tensor_slices(np.arange(6)),
        tf.data.Dataset.from_tensors(np.int64(3)),
        NUMBERS.map(lambda x: x * 2),
        NUMBERS.map(lambda x: x * 2, num_parallel_calls=2),
        NUMBERS.repeat(2),
        NUMBERS.take(3),
        NUMBERS.skip(2),
        NUMBERS.concatenate(tf.data.Dataset.range(7, 9)),
        NUMBERS.prefetch(1),
        NUMBERS.cache(),
        NUMBERS.shard(3, 1),
        NUMBERS.with_options(tf.data.Options()),
        tf.data.Dataset.zip((NUMBERS, NUMBERS)).map(lambda x, y: x + y),
        NUMBERS.batch(4).map(lambda x: x[-1]),
        tf.data.experimental.from_list([1, 2, 3]).map(lambda x: tf.cast(x, tf.int64)),
    ],
)
def test_what_can_be_read_by_number(dataset):
    inorder = list(dataset.as_numpy_iterator())
    found = _list(_shuffled(dataset))
    assert sorted(found) == sorted(inorder)
    assert found == _list(_shuffled(dataset))
    if len(set(inorder)) > 4:
        assert found != inorder


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        (
            NUMBERS.filter(lambda x: x > 2),
            "FilterDataset does not support random access",
        ),
        (NUMBERS.shuffle(3), "Shuffle.* does not support random access"),
        (NUMBERS.repeat(), r"`repeat\(-1\)` does not support random access of tf.data"),
        (NUMBERS.batch(2).unbatch(), "does not support random access"),
    ],
)
def test_what_must_be_walked_along(dataset, text):
    with pytest.raises(
        Precondition, match="compatible with random access. Got: .*" + text
    ):
        _shuffled(dataset)


def test_nothing_to_shuffle():
    with pytest.raises(
        Invalid, match="non-empty finite cardinality. Got cardinality 0"
    ):
        _shuffled(tf.data.Dataset.range(0))


def test_errors_of_functions_read_by_number():
    def check(x):
        with tf.control_dependencies([tf.debugging.assert_less(x, _long(4))]):
            return tf.identity(x)

    iterator = iter(Made(_shuffled(NUMBERS.map(check))))
    found, failed = [], 0
    for _ in range(6):
        try:
            found.append(int(next(iterator)))
        except Invalid:
            failed += 1
    assert (sorted(found), failed) == ([0, 1, 2, 3], 2)


def _flat(index_map, map_func=lambda x: tf.range(x * 10, x * 10 + 3), count=9):
    return raw.IndexFlatMapDataset(
        input_dataset=_variant(tf.data.Dataset.range(3)),
        map_func_other_args=[],
        index_map_func_other_args=[],
        output_cardinality=_long(count),
        map_func=_function(map_func),
        index_map_func=_function(index_map),
        **KINDS,
    )


@pytest.mark.parametrize(
    ("index_map", "text"),
    [
        (
            lambda x: x,
            "expected to return two int values representing the element index",
        ),
        (lambda x: (x, x * 5), "offset 5, but the input element has 3 elements"),
        (lambda x: (x, x - 1), "offset -1, but the input element has 3 elements"),
        (lambda x: (1 - x, x * 0), "goes back from element 1 to 0"),
    ],
)
def test_refusals_of_places(index_map, text):
    with pytest.raises(Invalid, match=text):
        _list(_flat(index_map))


def test_an_element_that_is_not_there():
    assert _list(_flat(lambda x: (x * 2, x * 0))) == [0, 20]
    beyond = Made(_flat(lambda x: (x * 2, x * 0)))
    with pytest.raises(Invalid, match=r"returns element \d+, but the input has 3"):
        _list(_shuffled(beyond))
    with pytest.raises(Invalid, match="output_cardinality must be at least -2, got -3"):
        _flat(lambda x: (x, x), count=-3)


def _weighted(inputs, weights):
    return raw.WeightedFlatMapDataset(
        input_datasets=[_variant(d) for d in inputs],
        weights=[tf.constant(w, tf.float64) for w in weights],
        **KINDS,
    )


def test_refusals_of_weights():
    two = [NUMBERS, NUMBERS]
    for inputs, weights, text in (
        (two, (0.5, 0), "must be greater than 0.0. Input 1 has a weight of 0"),
        (two, (-1, 1), "must be greater than 0.0. Input 0 has a weight of -1"),
        (two, (1, np.nan), "Input 1 has a weight of nan"),
        (two, (1, np.inf), "Input 1 has a weight of inf"),
        (two, (1, 1, 1), "same size. Got 2 datasets and 3 weights"),
        ([NUMBERS, NUMBERS.repeat()], (1, 1), "Input 1 has INFINITE cardinality"),
        (
            [NUMBERS.filter(lambda x: x > 0), NUMBERS],
            (1, 1),
            "Input 0 has UNKNOWN cardinality",
        ),
        (
            [NUMBERS, NUMBERS.map(lambda x: tf.cast(x, tf.int32))],
            (1, 1),
            "input 1 has elements of other types",
        ),
        (two, ([1, 2], 1), "`weights` must be scalars"),
    ):
        with pytest.raises(Invalid, match=text):
            _weighted(inputs, weights)


@pytest.mark.parametrize(
    "make",
    [
        lambda: _shuffled(NUMBERS, True),
        lambda: _flat(lambda x: (x // 3, x % 3)),
        lambda: _weighted([NUMBERS, NUMBERS.map(lambda x: x + 100)], (1, 0.5)),
        lambda: raw.FilterByLastComponentDataset(
            input_dataset=_variant(NUMBERS.map(lambda x: (x, x % 2 == 0))), **KINDS
        ),
        lambda: raw.LatencyStatsDataset(
            input_dataset=_variant(NUMBERS), tag="t", **KINDS
        ),
    ],
)
def test_places_of_iterators(make, tmp_path):
    dataset = Made(make())
    whole = list(dataset.as_numpy_iterator())
    for taken in range(0, len(whole) + 1, 2):
        iterator = iter(dataset)
        first = [int(next(iterator)) for _ in range(taken)]
        place = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "place"))
        rest = [int(x) for x in iterator]
        again = iter(dataset)
        tf.train.Checkpoint(iterator=again).restore(place)
        assert [int(x) for x in again] == rest
        assert sorted(first + rest) == sorted(int(x) for x in whole)


def test_refusals_of_assertions():
    def checked(*names):
        return raw.AssertNextDataset(
            input_dataset=_variant(NUMBERS), transformations=list(names), **KINDS
        )

    with pytest.raises(
        Invalid, match="matching Map at offset 0 but encountered Prefetch"
    ):
        _list(checked("Map"))
    with pytest.raises(
        Invalid, match="Asserted next 9 transformations but encountered"
    ):
        _list(checked(*["Map"] * 9))
    with pytest.raises(Invalid, match="transformations must be a vector"):
        raw.AssertNextDataset(
            input_dataset=_variant(NUMBERS), transformations="Map", **KINDS
        )
    with pytest.raises(Invalid, match="last component must be a truth value"):
        raw.FilterByLastComponentDataset(input_dataset=_variant(NUMBERS), **KINDS)


def _shard(dataset, count, index, policy=0, dtype=tf.int64):
    return raw.AutoShardDataset(
        input_dataset=_variant(dataset),
        num_workers=_long(count),
        index=_long(index),
        auto_shard_policy=policy,
        **KINDS | {"output_types": [dtype]},
    )


def test_refusals_of_shards(tmp_path):
    for arguments, text in (
        ((0, 0), "num_workers must be greater than zero"),
        ((2, 2), "index must be between 0 and 1"),
        ((2, -1), "index must be between 0 and 1"),
        ((2, 0, 4), "auto_shard_policy is invalid"),
        ((2, 0, -2), "auto_shard_policy is invalid"),
    ):
        with pytest.raises(Invalid, match=text):
            _shard(NUMBERS, *arguments)
    with pytest.raises(
        tf.errors.NotFoundError, match="unshardable source dataset: Range"
    ):
        _shard(NUMBERS, 2, 0, 1)
    (tmp_path / "a").write_text("1\n2\n")
    lines = tf.data.TextLineDataset([str(tmp_path / "a")]).map(tf.strings.to_number)
    spec = tf.TensorSpec([], tf.float32)
    with pytest.raises(Invalid, match="only has 1 file"):
        _list(_shard(lines, 2, 1, 1, tf.float32), spec)
    assert _list(_shard(lines, 2, 1, 2, tf.float32), spec) == [2.0]
    # All shards together are the dataset, each element once.
    parts = [_list(_shard(NUMBERS.repeat(2), 4, i)) for i in range(4)]
    assert sorted(x for part in parts for x in part) == sorted([*range(6)] * 2)


def test_places_in_shards_of_files(tmp_path):
    files = [str(tmp_path / f"f{i}") for i in range(5)]
    for i, file in enumerate(files):
        with open(file, "w", encoding="utf-8") as out:
            out.write(f"{i}0\n{i}1\n")
    names = tf.data.Dataset.from_tensor_slices(files)
    spec = tf.TensorSpec([], tf.string)
    for lines in (
        tf.data.TextLineDataset(files),
        names.flat_map(tf.data.TextLineDataset),
        names.interleave(tf.data.TextLineDataset, cycle_length=2).repeat(2),
    ):
        dataset = Made(_shard(lines, 2, 1, 1, tf.string), spec)
        whole = list(dataset.as_numpy_iterator())
        assert {x[:1] for x in whole} == {b"1", b"3"}
        for taken in range(len(whole)):
            iterator = iter(dataset)
            for _ in range(taken):
                next(iterator)
            place = tf.train.Checkpoint(i=iterator).save(str(tmp_path / "place"))
            again = iter(dataset)
            tf.train.Checkpoint(i=again).restore(place)
            assert [x.numpy() for x in again] == whole[taken:]


def _parsed(**more):
    text = tf.train.Example(
        features=tf.train.Features(
            feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))}
        )
    ).SerializeToString()
    given = {
        "input_dataset": _variant(tf.data.Dataset.from_tensors([text])),
        "num_parallel_calls": _long(1),
        "dense_defaults": [_long([])],
        "sparse_keys": [],
        "dense_keys": ["a"],
        "sparse_types": [],
        "dense_shapes": [[]],
        "output_types": [tf.int64],
        "output_shapes": [[None]],
    } | more
    made = raw.ParseExampleDatasetV2(**given)
    spec = tf.TensorSpec(given["output_shapes"][0], given["output_types"][0])
    return _list(made, spec)


def test_refusals_of_parsed_datasets():
    assert [x.tolist() for x in _parsed()] == [[1]]
    assert [x.tolist() for x in _parsed(num_parallel_calls=_long(-1))] == [[1]]
    bad = tf.data.Dataset.from_tensors(["zz"])
    for more, text in (
        (
            {"num_parallel_calls": _long(0)},
            "num_parallel_calls must be greater than zero",
        ),
        ({"num_parallel_calls": _long(-2)}, "num_parallel_calls must be greater than"),
        ({"dense_keys": []}, "== len.dense_keys. but got: 1 vs. 0"),
        ({"dense_shapes": []}, "len.dense_shapes. == len.dense_keys. but got: 0 vs. 1"),
        (
            {"sparse_keys": ["b"]},
            "len.sparse_keys. == len.sparse_types. but got: 1 vs. 0",
        ),
        (
            {"ragged_keys": ["b"]},
            "len.ragged_keys. == len.ragged_value_types. but got: 1",
        ),
        (
            {"sparse_keys": ["a"], "sparse_types": [tf.int64]},
            "Duplicate key not allowed: a",
        ),
        ({"deterministic": "x"}, "Unrecognized determinism policy: x"),
        (
            {"dense_keys": ["z"]},
            "Feature: z .data type: int64. is required but could not",
        ),
        ({"output_shapes": [[7]]}, r"return value 0 .expected \[7\], got \[1\]"),
        ({"output_types": [tf.float32]}, "return value 0 .expected float, got int64"),
        (
            {"output_types": [tf.int64] * 2, "output_shapes": [[], []]},
            "Expected len.output_types. == 1 but got: 2",
        ),
        (
            {"input_dataset": _variant(bad)},
            "Could not parse example input, value: 'zz'",
        ),
        ({"input_dataset": _variant(NUMBERS)}, "of a dataset of serialized ones"),
    ):
        with pytest.raises(Invalid, match=text):
            _parsed(**more)


def test_what_is_told_of_filters_and_texts():
    aggregator = raw.StatsAggregatorHandle(shared_name="told")

    def told(dataset, spec=None):
        kinds = {
            "output_types": [d.dtype for d in tf.nest.flatten(dataset.element_spec)]
        }
        kinds["output_shapes"] = [[]]
        made = raw.BytesProducedStatsDataset(
            input_dataset=_variant(dataset), tag="bytes", **kinds
        )
        made = raw.SetStatsAggregatorDataset(
            input_dataset=made,
            stats_aggregator=aggregator,
            tag="",
            counter_prefix="",
            **kinds,
        )
        _list(made, spec)
        text = raw.StatsAggregatorSummary(iterator=aggregator).numpy()
        return {v.tag: v for v in tf.compat.v1.Summary.FromString(text).value}

    found = told(NUMBERS.filter(lambda x: x > 3).prefetch(2))
    assert found["FilterDataset::filtered_elements"].simple_value == 2
    assert found["FilterDataset::dropped_elements"].simple_value == 4
    texts = tf.data.Dataset.from_tensor_slices(["abc" * 100])
    assert told(texts, tf.TensorSpec([], tf.string))["bytes"].histo.max >= 300
    # Without an aggregator nothing is told, and handles of others are refused.
    iterator = raw.AnonymousIteratorV3(**KINDS)
    with pytest.raises(
        Invalid, match="resource of the wrong type|using the wrong type"
    ):
        raw.StatsAggregatorSummary(iterator=iterator)
    with pytest.raises(Invalid, match="wrong type"):
        raw.IteratorGetDevice(resource=aggregator)


def _snapshot(path, **more):
    return raw.SnapshotDataset(
        input_dataset=_variant(NUMBERS), path=str(path), **KINDS | more
    )


def test_modes_of_snapshots(tmp_path):
    whole = list(range(6))
    with pytest.raises(tf.errors.NotFoundError, match="Metadata file does not exist"):
        _list(_snapshot(tmp_path, mode="read"))
    assert _list(_snapshot(tmp_path, mode="passthrough")) == whole
    assert list(tmp_path.rglob("*.snapshot")) == []
    for _ in range(2):
        made = _snapshot(tmp_path, mode="write", snapshot_name="n")
        assert _list(made) == whole
    assert len(list((tmp_path / "custom-n").rglob("*.snapshot"))) == 2
    # What has a name is read whatever the pipeline.
    other = raw.SnapshotDataset(
        input_dataset=_variant(tf.data.Dataset.range(2)),
        path=str(tmp_path),
        snapshot_name="n",
        **KINDS,
    )
    assert _list(other) == whole
    for more, text in (
        (
            {"mode": "foo"},
            "mode must be either 'auto', 'read', 'write', or 'passthrough'",
        ),
        ({"compression": "zz"}, "compression must be either '', 'GZIP' or 'SNAPPY'"),
        ({"pending_snapshot_expiry_seconds": 0}, "must be at least 1 second"),
        ({"num_writer_threads": 0}, "num_writer_threads must be at least 1"),
        ({"snapshot_name": "../x"}, "must be a plain name"),
    ):
        with pytest.raises(Invalid, match=text):
            _snapshot(tmp_path, **more)


def test_places_in_snapshots(tmp_path):
    for taken in range(6):
        folder = tmp_path / str(taken)
        for _ in range(2):  # written, then read
            iterator = iter(Made(_snapshot(folder)))
            first = [int(next(iterator)) for _ in range(taken)]
            place = tf.train.Checkpoint(i=iterator).save(str(tmp_path / "place"))
            again = iter(Made(_snapshot(folder)))
            tf.train.Checkpoint(i=again).restore(place)
            assert first + [int(x) for x in again] == list(range(6))
    # A run that was cut short is not read.
    next(iter(Made(_snapshot(tmp_path / "cut"))))
    assert _list(_snapshot(tmp_path / "cut")) == list(range(6))
    with pytest.raises(Invalid, match="elements of other types"):
        kinds = {"output_types": [tf.int32], "mode": "read"}
        _list(_snapshot(tmp_path / "cut", **kinds), tf.TensorSpec([], tf.int32))
