"""Rows of datasets as graphs: nodes and elements as TensorFlow 2.21 has them. Its
fingerprints are other numbers, of the same pipelines."""

import numpy as np
from rows import formula
from rows_of_data import _elements, _kinds, _range


def _nodes(tf, serialized):
    graph = tf.compat.v1.GraphDef.FromString(serialized.numpy())
    return tf.constant(["{}({})".format(n.name, ",".join(n.input)) for n in graph.node])


_BATCHED = [
    "Const/_0()",
    "Const/_1()",
    "Const/_2()",
    "RangeDataset/_3(Const/_0,Const/_1,Const/_2)",
    "Const/_4()",
    "Const/_5()",
    "BatchDatasetV2/_6(RangeDataset/_3,Const/_4,Const/_5)",
    "dataset(BatchDatasetV2/_6)",
]


def _batched(tf, raw, n):
    return tf.raw_ops.BatchDatasetV2(
        input_dataset=_range(tf, raw, n),
        batch_size=tf.constant(2, tf.int64),
        drop_remainder=False,
        **_kinds(tf, tf.int64, shapes=[[None]]),
    )


@formula("DatasetToGraph DatasetToGraphV2 DatasetFromGraph")
def datasets_there_and_back(tf, raw):
    made = _batched(tf, raw, 5)
    pairs = []
    for op in (raw.DatasetToGraph, raw.DatasetToGraphV2):
        graph = op(input_dataset=made)
        pairs += [_nodes(tf, graph), np.array([n.encode() for n in _BATCHED], object)]
        back = raw.DatasetFromGraph(graph_def=graph)
        rows = _elements(tf, raw, back, tf.int64, shapes=[[None]])
        pairs += [np.concatenate([np.ravel(x) for x in rows]), np.arange(5)]
    return pairs


@formula("DatasetFingerprint")
def fingerprints_of_pipelines(tf, raw):
    def number(n):
        return raw.DatasetFingerprint(input_dataset=_batched(tf, raw, n)).numpy()

    return [number(5) == number(5), np.array(True), number(5) == number(6), False]


@formula("AssertPrevDataset")
def checked_pipelines(tf, raw):
    def checked(*wanted):
        made = raw.AssertPrevDataset(
            input_dataset=_range(tf, raw, 3), transformations=wanted, **_kinds(tf)
        )
        try:
            return np.array([int(x) for x in _elements(tf, raw, made)])
        except tf.errors.InvalidArgumentError:
            return np.array([-1])

    return [
        checked('name: "RangeDataset"'),
        np.arange(3),
        checked(),
        np.arange(3),
        checked('name: "MapDataset"'),
        np.array([-1]),
    ]
