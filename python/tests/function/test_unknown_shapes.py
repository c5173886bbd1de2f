"""What a trace could not check, the run checks: shape rules run again on real shapes."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
raw = tf.raw_ops
WRONG = (tf.errors.InvalidArgumentError, ValueError)


def f32(shape):
    return np.ones(shape, np.float32)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


NO_BYTES = np.array([], object)
# op, arguments whose shapes do not fit it
CASES = {
    "dynamic_partition": (
        lambda a, c: tf.dynamic_partition(a, c, 2),
        [f32([3]), np.zeros(2000, np.int32)],
    ),
    "unique of a matrix": (lambda x: tf.unique(x)[0], [f32([2, 2])]),
    "unique of a scalar": (lambda x: tf.unique(x)[0], [f32([])]),
    "non_max_suppression": (
        lambda b, s: tf.image.non_max_suppression(b, s, 3),
        [f32([0, 4]), f32([3])],
    ),
    "NonMaxSuppressionV2": (
        lambda b, s: raw.NonMaxSuppressionV2(
            boxes=b, scores=s, max_output_size=3, iou_threshold=0.5
        ),
        [f32([0, 4]), f32([3])],
    ),
    "NonMaxSuppressionV4": (
        lambda b, s: raw.NonMaxSuppressionV4(
            boxes=b,
            scores=s,
            max_output_size=3,
            iou_threshold=0.5,
            score_threshold=0.0,
        )[0],
        [f32([0, 4]), f32([3])],
    ),
    "scalars in a row": (
        lambda b, s: tf.image.non_max_suppression(b, s, 3),
        [f32([2]), f32([2])],
    ),
    "decode_png": (lambda x: tf.io.decode_png(x), [NO_BYTES]),
    "decode_jpeg": (lambda x: tf.io.decode_jpeg(x), [NO_BYTES]),
    "decode_and_crop_jpeg": (
        lambda x: tf.io.decode_and_crop_jpeg(x, [0, 0, 1, 1]),
        [NO_BYTES],
    ),
    "decode_gif": (lambda x: tf.io.decode_gif(x), [NO_BYTES]),
    "decode_bmp": (lambda x: tf.io.decode_bmp(x), [NO_BYTES]),
    "decode_image": (lambda x: tf.io.decode_image(x), [NO_BYTES]),
    "decode_wav": (lambda x: tf.audio.decode_wav(x)[0], [NO_BYTES]),
    "StringSplit": (
        lambda x, d: raw.StringSplit(input=x, delimiter=d)[1],
        [np.array(["a b"], object), NO_BYTES],
    ),
    "SparseReshape": (
        lambda i, s, n: raw.SparseReshape(input_indices=i, input_shape=s, new_shape=n)[
            0
        ],
        [np.int64(1), i64(2, 3), i64(3, 2)],
    ),
    "ctc_greedy_decoder": (
        lambda x, n: tf.nn.ctc_greedy_decoder(x, n)[1],
        [f32([4]), i32(2)],
    ),
    "CTCBeamSearchDecoder": (
        lambda x, n: raw.CTCBeamSearchDecoder(
            inputs=x, sequence_length=n, beam_width=2, top_paths=1
        )[3],
        [f32([4]), i32(2)],
    ),
    "RaggedTensorToTensor": (
        lambda s, v, d, p: raw.RaggedTensorToTensor(
            shape=s,
            values=v,
            default_value=d,
            row_partition_tensors=[p],
            row_partition_types=["ROW_SPLITS"],
        ),
        [i64(2, 2), f32([3]), f32([]), np.int64(3)],
    ),
    "RaggedFillEmptyRows": (
        lambda v, x, n, d: raw.RaggedFillEmptyRows(
            value_rowids=v, values=x, nrows=n, default_value=d
        )[1],
        [np.int64(0), f32([3]), np.int64(2), f32([])],
    ),
    "multinomial": (
        lambda x: raw.Multinomial(logits=x, num_samples=2),
        [f32([3])],
    ),
    "stateless_multinomial": (
        lambda x, s: raw.StatelessMultinomial(logits=x, num_samples=2, seed=s),
        [f32([3]), i32(1, 2)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_function_of_unknown_ranks(name):
    op, arguments = CASES[name]
    tensors = [tf.constant(a) for a in arguments]
    specs = [tf.TensorSpec(None, t.dtype) for t in tensors]
    traced = tf.function(op, input_signature=specs)
    for _ in range(3):  # the plan for any shapes, then one for these
        with pytest.raises(WRONG):
            traced(*tensors)


@pytest.mark.parametrize("name", CASES)
def test_function_of_known_ranks(name):
    op, arguments = CASES[name]
    tensors = [tf.constant(a) for a in arguments]
    specs = [tf.TensorSpec([None] * t.shape.rank, t.dtype) for t in tensors]
    with pytest.raises(WRONG):
        tf.function(op, input_signature=specs)(*tensors)


@pytest.mark.parametrize("name", CASES)
def test_session(name):
    op, arguments = CASES[name]
    with tf.Graph().as_default():
        holders = [v1.placeholder(tf.as_dtype(np.asarray(a).dtype)) for a in arguments]
        out = op(*holders)
        with v1.Session() as session, pytest.raises(WRONG):
            session.run(out, dict(zip(holders, arguments, strict=True)))


@pytest.mark.parametrize("name", CASES)
def test_loop_and_branch(name):
    op, arguments = CASES[name]
    tensors = [tf.constant(a) for a in arguments]

    def turn(i, *args):
        one = tf.maximum(1, tf.minimum(tf.size(op(*args)), 1))
        return (i + one, *args)

    def loop(*args):
        shapes = [tf.TensorShape([]), *[tf.TensorShape(None)] * len(args)]
        return tf.while_loop(
            lambda i, *_: i < 2, turn, [0, *args], shape_invariants=shapes
        )[0]

    def branch(*args):
        return tf.cond(tf.size(args[0]) < 100_000, lambda: op(*args), lambda: op(*args))

    specs = [tf.TensorSpec(None, t.dtype) for t in tensors]
    for f in (loop, branch):
        with pytest.raises(WRONG):
            tf.function(f, input_signature=specs)(*tensors)


@pytest.mark.parametrize("name", CASES)
def test_frames(name):
    """What lies in a frame of TensorFlow 1's loops is run node by node."""
    op, arguments = CASES[name]
    with tf.Graph().as_default():
        holders = [v1.placeholder(tf.as_dtype(np.asarray(a).dtype)) for a in arguments]
        inside = [raw.Enter(data=h, frame_name="frame") for h in holders]
        out = raw.Exit(data=op(*inside))
        with v1.Session() as session, pytest.raises(WRONG):
            session.run(out, dict(zip(holders, arguments, strict=True)))


def test_frames_of_what_fits():
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32)
        out = raw.Exit(data=tf.unique(raw.Enter(data=x, frame_name="frame"))[0])
        with v1.Session() as session:
            assert session.run(out, {x: [1.0, 1.0]}).tolist() == [1.0]


def test_a_claimed_shape_is_not_believed():
    """A chain is fused with a product whose operands turn out not to fit."""

    def f(a, b):
        y = tf.matmul(a, b)
        y.set_shape([2, 5])
        return tf.nn.relu(y) * 2.0

    specs = [tf.TensorSpec([None, None])] * 2
    traced = tf.function(f, input_signature=specs)
    for _ in range(3):
        with pytest.raises(WRONG):
            traced(tf.ones([2, 3]), tf.ones([4, 5]))
    assert traced(tf.ones([2, 3]), tf.ones([3, 5])).numpy().tolist() == [[6.0] * 5] * 2


def test_unknown_values_of_known_shapes():
    """A rule that looks at a value sees it at the run."""
    spec = tf.TensorSpec([1], tf.int32)
    f = tf.function(lambda axis: tf.reverse(tf.ones([3, 4]), axis), [spec])
    with pytest.raises(WRONG):
        f(tf.constant([7]))
    assert f(tf.constant([1])).shape == [3, 4]
    split = tf.function(
        lambda axis: tf.raw_ops.Split(axis=axis, value=tf.ones([4, 3]), num_split=2)[0],
        [tf.TensorSpec([], tf.int32)],
    )
    assert split(0).shape == [2, 3]
    with pytest.raises(WRONG):
        split(1)


def test_what_fits_still_runs():
    f = tf.function(
        lambda b, s: tf.image.non_max_suppression(b, s, 3),
        input_signature=[tf.TensorSpec(None), tf.TensorSpec(None)],
    )
    b = tf.constant([[0.0, 0, 1, 1], [0, 0, 1, 1.01], [2, 2, 3, 3]])
    for n in (3, 2, 3, 3):
        kept = [0, 2] if n == 3 else [0]
        assert f(b[:n], tf.constant([0.9, 0.8, 0.7])[:n]).numpy().tolist() == kept
