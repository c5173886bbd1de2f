"""Static shapes of traced ops: sizes that are known stay known. As TensorFlow's."""

import headrace as tf
import pytest

N = None
X, IMAGES = (N, 4, 3), (N, 8, 8, 3)
L = tf.keras.layers


def at(x, i):
    return tf.shape(x)[i]


CASES = {
    "repeat": (lambda x: tf.repeat(x, 2, axis=1), X, (N, 8, 3)),
    "repeat, last": (lambda x: tf.repeat(x, [2], axis=-1), X, (N, 4, 6)),
    "tensordot": (lambda x: tf.tensordot(x, tf.ones((3, 7)), 1), X, (N, 4, 7)),
    "outer": (lambda x: tf.tensordot(x, tf.ones((3, 7)), 0), X, (N, 4, 3, 3, 7)),
    "frame": (lambda x: tf.signal.frame(x, 4, 2), (N, 20), (N, 9, 4)),
    "padded frame": (
        lambda x: tf.signal.frame(x, 4, 2, pad_end=True),
        (N, 20),
        (N, 10, 4),
    ),
    "overlap": (lambda x: tf.signal.overlap_and_add(x, 2), (N, 5, 4), (N, 12)),
    "stft": (lambda x: tf.signal.stft(x, 16, 8), (N, 64), (N, 7, 9)),
    "mdct": (lambda x: tf.signal.mdct(x, 8), (N, 32), (N, 7, 4)),
    "rfft": (tf.signal.rfft, X, (N, 4, 2)),
    "longer rfft": (lambda x: tf.signal.rfft(x, [10]), X, (N, 4, 6)),
    "sort": (lambda x: tf.sort(x, axis=1, direction="DESCENDING"), X, X),
    "argsort": (lambda x: tf.argsort(x, axis=1), X, X),
    "linspace": (lambda x: tf.linspace(x, x + 1, 5, axis=-1), (N, 3), (N, 3, 5)),
    "meshgrid": (lambda x: tf.meshgrid(x, tf.range(3.0))[0], (4,), (3, 4)),
    "product of sizes": (
        lambda x: tf.reshape(x, [-1, at(x, 1) * at(x, 2)]),
        X,
        (N, 12),
    ),
    "slices of a shape": (
        lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [2], [6]], 0)),
        X,
        (N, 2, 6),
    ),
    "unstacked shape": (
        lambda x: tf.zeros(tf.stack([*tf.unstack(tf.shape(x))[:2], 5])),
        X,
        (N, 4, 5),
    ),
    "gathered sizes": (
        lambda x: tf.zeros(tf.gather(tf.shape(x), [2, 0, 1])),
        X,
        (3, N, 4),
    ),
    "resize": (lambda x: tf.image.resize(x, [at(x, 1) * 2, 5]), IMAGES, (N, 16, 5, 3)),
    "resize with pad": (
        lambda x: tf.image.resize_with_pad(x, 4, 6),
        IMAGES,
        (N, 4, 6, 3),
    ),
    "kept aspect": (
        lambda x: tf.image.resize(x, [4, 5], preserve_aspect_ratio=True),
        IMAGES,
        (N, 4, 4, 3),
    ),
    "central crop": (
        lambda x: tf.image.central_crop(x, 0.5),
        (N, N, N, 3),
        (N, N, N, 3),
    ),
    "to yuv": (tf.image.rgb_to_yuv, IMAGES, IMAGES),
    "to grey": (tf.image.rgb_to_grayscale, IMAGES, (N, 8, 8, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_static_shape(name):
    f, given, expected = CASES[name]
    made = tf.function(f, input_signature=[tf.TensorSpec(given)])
    found = made.get_concrete_function().structured_outputs.shape
    assert found.as_list() == list(expected)


@pytest.mark.parametrize(
    "layer, given, expected",
    [
        (L.UpSampling1D(2), (4, 3), (8, 3)),
        (L.UpSampling2D(2), (4, 4, 2), (8, 8, 2)),
        (L.UpSampling2D((2, 3), "channels_first"), (2, 4, 4), (2, 8, 12)),
        (L.UpSampling3D(2), (4, 4, N, 2), (8, 8, N, 2)),
    ],
)
def test_static_shape_of_layers(layer, given, expected):
    assert layer(tf.keras.Input(given)).shape.as_list() == [None, *expected]


def test_a_shape_that_grows_without_end_is_given_up():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(sizes):
        for _ in range(60):
            sizes = tf.concat([sizes, sizes[:0]], 0)
            sizes = sizes[: tf.shape(sizes)[0]]
        return tf.zeros(sizes)

    assert f.get_concrete_function().structured_outputs.shape.rank is None
    assert f([2, 3]).shape == (2, 3)


ROWS = tf.RaggedTensorSpec([2, N, 3], tf.int32, 1)


@pytest.mark.parametrize(
    ("dense", "spec", "shape"),
    [
        (lambda r: r.to_tensor(), ROWS, (2, N, 3)),
        (lambda r: r.to_tensor(shape=[N, 5, N]), ROWS, (2, 5, 3)),
        (lambda r: r.to_tensor(shape=[4, N, N]), ROWS, (4, N, 3)),
        (lambda r: r.to_tensor(), tf.RaggedTensorSpec([N, N, N]), (N, N, N)),
        (
            lambda v: tf.RaggedTensor.from_uniform_row_length(v, 2).to_tensor(),
            tf.TensorSpec([6, N]),
            (3, 2, N),
        ),
        (
            lambda t: tf.RaggedTensor.from_tensor(t).to_tensor(),
            tf.TensorSpec([2, N]),
            (2, N),
        ),
    ],
)
def test_dense_tensors_of_ragged_ones(dense, spec, shape):
    made = tf.function(dense, input_signature=[spec]).get_concrete_function()
    assert made.structured_outputs.shape.as_list() == list(shape)


def test_captured_sizes_are_known_within_bodies():
    """What is known of a shape around a loop, branch or function is known in it."""
    shapes = {}

    def note(what, x, sizes, rows):
        fixed = (
            tf.zeros(sizes),
            tf.zeros(rows),
            tf.reshape(x, sizes),
            tf.fill(rows, 1.0),
        )
        shapes[what] = [tuple(t.shape) for t in fixed]
        return x

    @tf.function
    def f(x):
        sizes = tf.shape(x)
        rows = tf.stack([sizes[1], 7])
        tf.while_loop(
            lambda i: i < 2, lambda i: (note("loop", x, sizes, rows), i + 1)[1:], [0]
        )
        tf.cond(x[0, 0] > 0, lambda: note("branch", x, sizes, rows), lambda: x)
        tf.function(lambda: note("call", x, sizes, rows))()

        @tf.function
        def outer():
            return tf.cond(x[0, 0] > 0, lambda: note("deep", x, sizes, rows), lambda: x)

        return outer()

    f.get_concrete_function(tf.TensorSpec([2, None]))
    want = [(2, None), (None, 7), (2, None), (None, 7)]
    assert shapes == dict.fromkeys(["loop", "branch", "call", "deep"], want)
