"""Datasets as graphs: what comes back, what is refused, what is checked of a pipeline.
Nodes and errors are those of TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

raw = tf.raw_ops
_Data = tf.data.Dataset


def _graph(dataset, **more):
    text = raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor, **more).numpy()
    return tf.compat.v1.GraphDef.FromString(text)


def _back(dataset):
    """The elements of a dataset that was made of the dataset's graph."""
    text = raw.DatasetToGraphV2(input_dataset=dataset._variant_tensor)
    made = raw.DatasetFromGraph(graph_def=text)
    flat = tf.nest.flatten(dataset.element_spec)
    kinds = {
        "output_types": [s.dtype for s in flat],
        "output_shapes": [s.shape for s in flat],
    }
    iterator = raw.AnonymousIteratorV3(**kinds)
    raw.MakeIterator(dataset=made, iterator=iterator)
    found = []
    while True:
        try:
            next_ = raw.IteratorGetNext(iterator=iterator, **kinds)
        except tf.errors.OutOfRangeError:
            return found
        found.append([x.numpy() for x in next_])


def _same(dataset):
    wanted = [[np.asarray(x) for x in tf.nest.flatten(e)] for e in dataset]
    found = _back(dataset)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        for x, y in zip(f, w, strict=True):
            np.testing.assert_array_equal(x, y)


def test_pipelines_there_and_back():
    numbers = _Data.range(10)
    shift = tf.constant(3, tf.int64)
    _same(numbers.map(lambda x: x * 2).batch(3))
    _same(numbers.map(lambda x: x + shift).filter(lambda x: x % 2 == 0))
    _same(_Data.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]}))
    _same(_Data.zip((numbers, numbers.skip(1))).repeat(2).take(7))
    _same(numbers.flat_map(lambda x: _Data.range(x).map(lambda y: y + x)))
    _same(numbers.window(3).flat_map(lambda w: w.batch(3)))
    _same(numbers.shuffle(5, seed=3, reshuffle_each_iteration=False))
    _same(numbers.cache().interleave(lambda x: _Data.from_tensors(x)))
    _same(numbers.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s)))
    _same(numbers.padded_batch(4).prefetch(2))
    _same(numbers.map(lambda x: tf.cond(x > 3, lambda: x, lambda: -x)))


def test_state_of_functions_is_copied():
    variable = tf.Variable(3, dtype=tf.int64)
    dataset = _Data.range(2).map(lambda x: x + variable)
    text = _graph(dataset).SerializeToString()
    variable.assign(100)
    made = raw.DatasetFromGraph(graph_def=text)
    kinds = {"output_types": [tf.int64], "output_shapes": [[]]}
    iterator = raw.AnonymousIteratorV3(**kinds)
    raw.MakeIterator(dataset=made, iterator=iterator)
    assert raw.IteratorGetNext(iterator=iterator, **kinds)[0].numpy() == 3
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(3), tf.range(3) * 10), -1
    )
    _same(_Data.range(4).map(lambda x: table.lookup(tf.cast(x, tf.int32))))


def test_nodes():
    variable = tf.Variable(3, dtype=tf.int64)
    graph = _graph(_Data.range(3).map(lambda x: x + variable))
    assert [n.name for n in graph.node] == [
        "Const/_0",
        "Const/_1",
        "Const/_2",
        "RangeDataset/_3",
        "VarHandleOp/_4",
        "Const/_5",
        "AssignVariableOp/_6",
        "Identity/_7",
        "MapDataset/_8",
        "dataset",
    ]
    assert list(graph.node[7].input) == ["VarHandleOp/_4", "^AssignVariableOp/_6"]
    assert graph.node[9].op == "_Retval"
    assert graph.versions.producer == 2474
    (function,) = graph.library.function
    assert {n.op for n in function.node_def} >= {"ReadVariableOp", "AddV2"}


@pytest.mark.parametrize(
    "make, op",
    [
        (lambda x: tf.random.uniform([]), "RandomUniform"),
        (lambda x: tf.cond(x > 1, lambda: tf.random.uniform([]), lambda: 0.0), None),
        (lambda x: tf.py_function(lambda y: y, [x], tf.int64), None),
    ],
)
def test_functions_with_state(make, op):
    dataset = _Data.range(3).map(make)
    text = "Failed to serialize the input pipeline graph: " + (op or "")
    for refused in (
        lambda d: raw.DatasetToGraph(input_dataset=d),
        lambda d: raw.DatasetToGraph(input_dataset=d, stateful_whitelist=[op or "X"]),
        lambda d: raw.DatasetToGraphV2(input_dataset=d, external_state_policy=2),
    ):
        with pytest.raises(tf.errors.FailedPreconditionError, match=text):
            refused(dataset._variant_tensor)
    raw.DatasetToGraph(input_dataset=dataset._variant_tensor, allow_stateful=True)
    for policy in (0, 1):
        assert len(_graph(dataset, external_state_policy=policy).node) == 6


def test_functions_without_state():
    def checked(x):
        tf.debugging.assert_greater(x, tf.constant(-1, tf.int64))
        tf.print(x)
        return tf.random.stateless_uniform([], [1, 2])

    for dataset in (
        _Data.range(3).map(checked),
        _Data.range(3).flat_map(_Data.range),
        _Data.random(seed=1).take(2),
    ):
        raw.DatasetToGraph(input_dataset=dataset._variant_tensor)


def test_what_cannot_be_written():
    queue = tf.queue.FIFOQueue(2, [tf.float32])
    dataset = _Data.range(3).map(lambda x: queue.dequeue())
    with pytest.raises(tf.errors.OpError, match="cannot be written as a graph"):
        _graph(dataset)
    window = next(iter(_Data.range(3).window(2)))
    with pytest.raises(tf.errors.UnimplementedError, match="no op made"):
        _graph(window)
    with pytest.raises(tf.errors.InvalidArgumentError):
        raw.DatasetToGraph(input_dataset=tf.constant(1.0))


def test_a_dataset_that_comes_twice_is_written_once():
    dataset = _Data.range(2)
    for _ in range(40):
        dataset = dataset.concatenate(dataset).take(2)
    assert len(_graph(dataset).node) < 200


def test_bad_graphs():
    graph = tf.compat.v1.GraphDef()
    graph.node.add(name="a", op="NoOp")
    none = "FetchOutputs node : not found"
    for text in (b"", b"xx", graph.SerializeToString()):
        with pytest.raises(tf.errors.NotFoundError, match=none):
            raw.DatasetFromGraph(graph_def=text)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar"):
        raw.DatasetFromGraph(graph_def=[b"", b""])
    graph.node.add(name="b", op="_Retval", input=["missing"])
    with pytest.raises(tf.errors.OpError):
        raw.DatasetFromGraph(graph_def=graph.SerializeToString())
    graph = _graph(_Data.range(3))
    graph.node[-1].input[0] = "Const/_0"
    with pytest.raises(tf.errors.InvalidArgumentError):
        raw.DatasetFromGraph(graph_def=graph.SerializeToString())
    text = _graph(_Data.range(3).map(lambda x: x + 1)).SerializeToString()
    for n in range(0, len(text), 7):
        with pytest.raises(tf.errors.OpError):
            raw.DatasetFromGraph(graph_def=text[:n])


def test_fingerprints():
    def number(dataset):
        variant = dataset._variant_tensor
        return raw.DatasetFingerprint(input_dataset=variant).numpy()

    numbers = _Data.range(3)
    assert number(numbers) == number(_Data.range(3))
    assert number(numbers) != number(_Data.range(4))
    one = number(numbers.map(lambda x: x + 1))
    assert one == number(numbers.map(lambda x: x + 1))
    assert one != number(numbers.map(lambda x: x + 2))
    number(numbers.map(lambda x: tf.random.uniform([])))


def _walked(dataset, *wanted):
    made = raw.AssertPrevDataset(
        input_dataset=dataset._variant_tensor,
        transformations=tf.constant(wanted, tf.string, shape=[len(wanted)]),
        output_types=[tf.int64],
        output_shapes=[[None]],
    )
    kinds = {"output_types": [tf.int64], "output_shapes": [[None]]}
    iterator = raw.AnonymousIteratorV3(**kinds)
    raw.MakeIterator(dataset=made, iterator=iterator)
    return raw.IteratorGetNext(iterator=iterator, **kinds)[0].numpy().tolist()


def test_what_comes_before():
    dataset = _Data.range(4).repeat(2).batch(2)
    assert _walked(dataset) == [0, 1]
    for wanted in (
        ['name: "BatchDataset"'],
        ['name: "BatchDatasetV2"', 'name: "RepeatDataset"', 'name: "RangeDataset"'],
        ['name: "BatchDataset" attr { key: "parallel_copy" value { b: false } }'],
    ):
        assert _walked(dataset, *wanted) == [0, 1]


@pytest.mark.parametrize(
    "wanted, text",
    [
        (
            ["BatchDataset"],
            "at offset 0: Couldn't parse transformation 'BatchDataset'.",
        ),
        (
            ['name: "Batch"'],
            (
                "at offset 0: Asserted transformation matching 'Batch', but found "
                "'BatchDatasetV2'."
            ),
        ),
        (
            ['name: "BatchDataset"', 'name: "MapDataset"'],
            (
                "at offset 1: Asserted transformation matching 'MapDataset', but found "
                "'RangeDataset'."
            ),
        ),
        (
            ['name: "BatchDataset"', 'name: "RangeDataset"', 'name: "X"'],
            "Asserted previous 3 transformations but encountered only 2.",
        ),
        (
            ['name: "BatchDataset" attr { key: "parallel_copy" value { b: true } }'],
            (
                "Asserted attribute 'parallel_copy' having a value of 'b: true', but found "
                "value of 'b: false'."
            ),
        ),
        (
            ['name: "BatchDataset" attr { key: "foo" value { i: 1 } }'],
            (
                "Asserted attribute 'foo' having a value of 'i: 1', but found no such "
                "attribute defined."
            ),
        ),
    ],
)
def test_what_does_not_come_before(wanted, text):
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        _walked(_Data.range(4).batch(2), *wanted)
    assert text in e.value.message
