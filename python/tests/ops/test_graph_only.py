"""Ops that TensorFlow's package for CPUs knows without a kernel: their shapes and
gradients in graphs are its, and so is the refusal to run them."""

import headrace as tf
import numpy as np
import pytest
import rows

raw = tf.raw_ops


def _place(shape, dtype=tf.float32):
    return tf.compat.v1.placeholder(dtype, shape)


def _ints(shape):
    return _place(shape, tf.int32)


def _handle():
    return _place([], tf.resource)


def _shapes(made):
    flat = [] if isinstance(made, tf.Operation) else tf.nest.flatten(made)
    return [x.shape.as_list() if x.shape.rank is not None else None for x in flat]


def _stats():
    return raw.BoostedTreesMakeStatsSummary(
        node_ids=_ints([4]),
        gradients=_place([4, 1]),
        hessians=_place([4, 1]),
        bucketized_features_list=[_ints([4])] * 2,
        max_splits=5,
        num_buckets=6,
    )


_RNN = {"input": [5, 4, 3], "input_h": [2, 4, 7], "input_c": [2, 4, 7], "params": [99]}


def _rnn(op="CudnnRNN", **more):
    inputs = {k: _place(s) for k, s in _RNN.items()}
    if op == "CudnnRNNV3":
        inputs["sequence_lengths"] = _ints([4])
    return getattr(raw, op)(**inputs, **more), inputs


_CASES = [
    (lambda: _stats(), [[2, 5, 6, 2]]),
    (
        lambda: raw.BoostedTreesAggregateStats(
            node_ids=_ints([4]),
            gradients=_place([4, 1]),
            hessians=_place([4, 2]),
            feature=_ints([4, 3]),
            max_splits=5,
            num_buckets=6,
        ),
        [[5, 3, 7, 3]],
    ),
    (
        lambda: raw.BoostedTreesAggregateStats(
            node_ids=_ints(None),
            gradients=_place(None),
            hessians=_place(None),
            feature=_ints(None),
            max_splits=5,
            num_buckets=6,
        ),
        [[5, None, 7, None]],
    ),
    (
        lambda: raw.BoostedTreesBucketize(
            float_values=[_place([4]), _place([4])], bucket_boundaries=[_place([3])] * 2
        ),
        [[4], [4]],
    ),
    (
        lambda: raw.BoostedTreesCalculateBestGainsPerFeature(
            node_id_range=_ints([2]),
            stats_summary_list=[_place([5, 4, 2])] * 2,
            l1=_place([]),
            l2=_place([]),
            tree_complexity=_place([]),
            min_node_weight=_place([]),
            max_splits=5,
        ),
        [[None]] * 6 + [[None, 1]] * 4,
    ),
    (
        lambda: raw.BoostedTreesGetEnsembleStates(tree_ensemble_handle=_handle()),
        [[], [], [], [], [2]],
    ),
    (
        lambda: raw.BoostedTreesMakeQuantileSummaries(
            float_values=[_place([4])] * 2,
            example_weights=_place([4]),
            epsilon=_place([]),
        ),
        [[None, 4]] * 2,
    ),
    (
        lambda: raw.BoostedTreesTrainingPredict(
            tree_ensemble_handle=_handle(),
            cached_tree_ids=_ints([4]),
            cached_node_ids=_ints([4]),
            bucketized_features=[_ints([4])] * 2,
            logits_dimension=3,
        ),
        [[4, 3], [4], [4]],
    ),
    (
        lambda: raw.CTCLossV2(
            inputs=_place([5, 4, 3]),
            labels_indices=_place([6, 2], tf.int64),
            labels_values=_ints([6]),
            sequence_length=_ints([4]),
        ),
        [[4], [5, 4, 3]],
    ),
    (lambda: _rnn()[0], [[5, 4, 7], [2, 4, 7], [2, 4, 7], None]),
    (
        lambda: _rnn(direction="bidirectional")[0],
        [[5, 4, 14], [2, 4, 7], [2, 4, 7], None],
    ),
    (lambda: _rnn(rnn_mode="gru")[0], [[5, 4, 7], [2, 4, 7], [], None]),
    (lambda: _rnn("CudnnRNNV3")[0], [[5, 4, 7], [2, 4, 7], [2, 4, 7], None, None]),
    (
        lambda: raw.CudnnRNNParamsToCanonical(
            num_layers=1, num_units=2, input_size=3, params=_place([9]), num_params=2
        ),
        [[None, None]] * 2 + [[None]] * 2,
    ),
    (lambda: raw.NcclBroadcast(input=_place([2, 3]), shape=[2, 3]), [[2, 3]]),
]


@pytest.mark.parametrize("case", range(len(_CASES)))
def test_shapes(case):
    make, wanted = _CASES[case]
    with tf.Graph().as_default():
        assert _shapes(make()) == wanted


_BAD = [
    (
        lambda: raw.BoostedTreesBucketize(
            float_values=[_place([])], bucket_boundaries=[_place([3])]
        ),
        "Shape must be rank 1 but is rank 0",
    ),
    (
        lambda: raw.BoostedTreesCreateEnsemble(
            tree_ensemble_handle=_handle(),
            stamp_token=_place([7], tf.int64),
            tree_ensemble_serialized=_place([], tf.string),
        ),
        "Shape must be rank 0 but is rank 1",
    ),
    (
        lambda: raw.BoostedTreesCenterBias(
            tree_ensemble_handle=_handle(),
            mean_gradients=_place([4, 1]),
            mean_hessians=_place([9, 1]),
            l1=_place([]),
            l2=_place([]),
        ),
        "must be equal, but are 9 and 4",
    ),
    (
        lambda: raw.CTCLossV2(
            inputs=_place([5, 4, 3]),
            labels_indices=_place([6, 2], tf.int64),
            labels_values=_ints([6]),
            sequence_length=_ints([9]),
        ),
        "Dimensions must be equal, but are 9 and 4",
    ),
]


@pytest.mark.parametrize("make, text", _BAD)
def test_shapes_that_do_not_fit(make, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        make()


def test_gradients_of_recurrent_layers():
    for op, back in [
        ("CudnnRNN", "CudnnRNNBackprop"),
        ("CudnnRNNV2", "CudnnRNNBackpropV2"),
        ("CudnnRNNV3", "CudnnRNNBackpropV3"),
    ]:
        with tf.Graph().as_default():
            made, inputs = _rnn(op)
            given = [inputs[k] for k in _RNN]
            found = tf.compat.v1.gradients(made.output, given)
            assert {x.op.type for x in found} >= {back}
            assert _shapes(found) == list(_RNN.values())
            made, inputs = _rnn(op, is_training=False)
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
                tf.compat.v1.gradients(made.output, [inputs["input"]])


def test_gradients_of_nccl():
    with tf.Graph().as_default():
        x = _place([2, 3])
        how = {"num_devices": 1, "shared_name": "a"}
        total = raw.NcclAllReduce(input=x, reduction="sum", **how)
        back = tf.compat.v1.gradients(total, [x])[0].op
        assert back.type == "NcclAllReduce"
        assert back.get_attr("shared_name") == b"a_grad"
        most = raw.NcclAllReduce(input=x, reduction="max", **how)
        with pytest.raises(LookupError, match='except for reduction="sum"'):
            tf.compat.v1.gradients(most, [x])
        one = raw.NcclReduce(input=[x, x], reduction="sum")
        assert tf.compat.v1.gradients(one, [x])[0].shape == [2, 3]
        sent = raw.NcclBroadcast(input=x, shape=[2, 3])
        assert tf.compat.v1.gradients(sent, [x])[0].op.type == "NcclReduce"


def test_other_gradients():
    with tf.Graph().as_default():
        x = _place([5, 4, 3])
        loss = raw.CTCLossV2(
            inputs=x,
            labels_indices=_place([6, 2], tf.int64),
            labels_values=_ints([6]),
            sequence_length=_ints([4]),
        ).loss
        assert tf.compat.v1.gradients(loss, [x])[0].op.type == "Mul"
        v = _place([4, 1])
        summary = raw.BoostedTreesMakeStatsSummary(
            node_ids=_ints([4]),
            gradients=v,
            hessians=v,
            bucketized_features_list=[_ints([4])],
            max_splits=5,
            num_buckets=6,
        )
        with pytest.raises(LookupError, match="No gradient defined"):
            tf.compat.v1.gradients(summary, [v])


def test_none_of_them_runs():
    with pytest.raises(tf.errors.NotFoundError) as e:
        raw.BoostedTreesEnsembleResourceHandleOp()
    assert "Could not find device for node: {{node BoostedTrees" in e.value.message
    assert "<no registered kernels>" in e.value.message
    with pytest.raises(tf.errors.NotFoundError, match="op CTCLossV2:"):
        raw.CTCLossV2(
            inputs=tf.zeros([2, 1, 3]),
            labels_indices=tf.zeros([0, 2], tf.int64),
            labels_values=tf.zeros([0], tf.int32),
            sequence_length=[2],
        )
    with pytest.raises(tf.errors.NotFoundError, match="op NcclAllReduce:"):
        raw.NcclAllReduce(input=[1.0], reduction="sum", num_devices=1, shared_name="a")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = _stats()
        fed = {x: np.zeros(x.shape.as_list()) for x in made.op.inputs}
        with pytest.raises(tf.errors.OpError, match="BoostedTreesMakeStatsSummary"):
            session.run(made, fed)


def test_graphs_hold_them():
    with tf.Graph().as_default() as graph:
        _rnn("CudnnRNNV3")
        _stats()
        tf.identity(1.0, name="one")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert session.run("one:0") == 1.0


def test_ops_that_always_fail():
    with pytest.raises(tf.errors.InvalidArgumentError, match="not pinned"):
        raw.CheckPinned(tensor=[1.0])
    for scheme, text in [
        ("", "SetOption"),
        ("file", "SetOption"),
        ("ram", "SetOption"),
        ("foo", "File system scheme 'foo' not found to set configuration"),
    ]:
        with pytest.raises(tf.errors.UnimplementedError, match=text):
            raw.FileSystemSetConfiguration(scheme=scheme, key="a", value="b")


def test_their_list_is_whole():
    from headrace._load import _headrace

    assert set(rows.EXCUSED) <= set(_headrace.op_names())
