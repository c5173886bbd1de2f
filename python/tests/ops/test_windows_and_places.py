"""Pools with gaps and borders, searches and repeats of empty and unknown shapes, sizes
of averages, bins, fingerprints: with values of TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
ROWS = np.arange(14.0).reshape(1, 7, 2).astype("f") * np.array([1, -1], "f")
PLANE = (np.arange(24.0).reshape(1, 4, 6, 1) % 7).astype("f")
UNKNOWN = tf.TensorSpec(None, tf.int32)


def test_pools_with_gaps():
    largest = tf.nn.pool(ROWS, [3], "MAX", dilations=[2])
    assert largest.numpy().tolist() == [[[8.0, -1.0], [10.0, -3.0], [12.0, -5.0]]]
    mean = tf.nn.pool(ROWS, [2], "AVG", dilations=[3])
    assert mean.numpy().tolist() == [
        [[3.0, -4.0], [5.0, -6.0], [7.0, -8.0], [9.0, -10.0]]
    ]
    want = [[5.0, 6.0, 5.0], [6.0, 5.0, 6.0]]

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 1])])
    def traced(x):
        return tf.nn.pool(x, [2, 2], "MAX", dilations=[2, 3])

    for found in (traced(PLANE), tf.nn.pool(PLANE, [2, 2], "MAX", dilations=[2, 3])):
        assert found.numpy()[0, :, :, 0].tolist() == want
    for bad, error in (
        ({"strides": [2], "dilations": [2]}, "strides > 1` not supported in conj"),
        ({"padding": "SAME", "dilations": [2]}, "'SAME' padding is not implemented"),
        ({"dilations": [0]}, "must be positive"),
        ({"dilations": [1, 2]}, "should be 1. Received: .* length 2"),
    ):
        with pytest.raises(ValueError, match=error):
            tf.nn.pool(ROWS, [3], "MAX", **bad)


def test_borders_of_pools_of_rows():
    want = [[[2.0, -1.0], [6.0, -3.0], [10.0, -7.0], [12.0, -11.0]]]
    border = [[0, 0], [1, 1], [0, 0]]
    assert tf.nn.max_pool1d(ROWS, 3, 2, border).numpy().tolist() == want
    assert tf.nn.max_pool(ROWS, 3, 2, border).numpy().tolist() == want
    with pytest.raises(ValueError, match="list of 3 pairs"):
        tf.nn.max_pool1d(ROWS, 3, 2, border[:2])


@pytest.mark.parametrize("side", ["left", "right"])
def test_searches_of_nothing(side):
    def search(n, m):
        return tf.searchsorted(tf.ones([2, n]), tf.ones([2, m]), side).numpy().tolist()

    assert search(0, 3) == [[0, 0, 0], [0, 0, 0]]
    assert search(3, 0) == [[], []]


@pytest.mark.parametrize(
    ("array", "repeats", "axis"),
    [
        ([[1, 2], [3, 4]], 2, -1),
        ([[1, 2], [3, 4]], [2], 0),
        ([[1, 2], [3, 4]], [1, 3], -2),
        ([1, 2, 3], [0, 2, 1], None),
    ],
)
def test_repeats_of_unknown_rank(array, repeats, axis):
    traced = tf.function(
        lambda x, n: tf.repeat(x, n, axis), input_signature=[UNKNOWN, UNKNOWN]
    )
    assert (
        traced(array, repeats).numpy().tolist()
        == np.repeat(array, repeats, axis).tolist()
    )


def test_of_unknown_rank_and_axis():
    turn = tf.function(tf.linalg.matrix_transpose, input_signature=[UNKNOWN])
    assert turn([[[1, 2, 3], [4, 5, 6]]]).numpy().tolist() == [[[1, 4], [2, 5], [3, 6]]]
    mask = tf.function(
        lambda axis: tf.boolean_mask([[1, 2], [3, 4]], [True, False], axis),
        input_signature=[UNKNOWN],
    )
    assert mask(0).numpy().tolist() == [[1, 2]] and mask(1).numpy().tolist() == [
        [1],
        [3],
    ]
    assert tf.boolean_mask([1, 2], [True, False], tf.constant(0)).numpy().tolist() == [
        1
    ]


def test_units_of_any_shape():
    assert tf.eye(2, batch_shape=[]).numpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert tf.eye(1, 2, batch_shape=[], dtype=tf.int32).numpy().tolist() == [[1, 0]]
    n = tf.constant(2)
    assert tf.eye(n, 1, batch_shape=tf.constant([3], tf.int64)).shape == [3, 2, 1]


def test_norms_of_complex_matrices():
    a = np.array([[3 + 4j, 1], [0, 2j]])
    sizes = [float(tf.linalg.norm(a, n, axis=[-2, -1])) for n in (1, 2, np.inf)]
    np.testing.assert_allclose(sizes, [5.0, 5.116672736016926, 6.0])
    unit = tf.linalg.normalize(a, 2, axis=[0, 1])[0]
    np.testing.assert_allclose(unit[0, 0], 0.5863185227545645 + 0.7817580303394194j)


def test_average_losses():
    average = tf.nn.compute_average_loss
    assert float(average([1.0, 2.0], global_batch_size=0)) == 0.0
    assert float(average(np.zeros([0]))) == 0.0
    assert float(average([1.0, 2.0], [2.0, 3.0], 2)) == 4.0
    for size, kind, error in (
        (-1, tf.errors.InvalidArgumentError, "global_batch_size must be non-negative"),
        (1.5, TypeError, "global_batch_size must be an integer"),
        ([1], ValueError, "global_batch_size must be scalar"),
    ):
        with pytest.raises(kind, match=error):
            average([1.0, 2.0], global_batch_size=size)
    with pytest.raises(ValueError, match="at least rank 1"):
        average(3.0)


def test_words_about_arguments():
    for call, error in (
        (
            lambda: v1.nn.dropout([1.0], keep_prob=[0.1, 0.2]),
            "`keep_prob` must be a float",
        ),
        (lambda: tf.nn.dropout([1.0], rate=[0.1, 0.2]), "`rate` must be a scalar"),
        (lambda: tf.nn.conv_transpose([1.0], 2, None, 1), "tensor or sized collection"),
        (lambda: tf.nn.conv_transpose([1.0], 2, [1, 2], 1), "of length 2"),
        (
            lambda: tf.nn.weighted_cross_entropy_with_logits([1.0], [[2.0, 1]], 1.0),
            "must have the same shape, received",
        ),
        (lambda: tf.nn.max_pool(np.zeros([3, 4], "f"), 2, 2, "SAME"), "of rank 2"),
    ):
        with pytest.raises(ValueError, match=error):
            call()


def test_bins_and_fingerprints():
    values = [[-1.0, 0, 1.5, 2, 5, 15]]
    bins = tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5)
    assert bins.numpy().tolist() == [[0, 0, 1, 2, 4, 4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must > 0"):
        tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=0)
    assert tf.fingerprint(["a", "bc"]).numpy().tolist() == [
        [227, 117, 223, 182, 101, 66, 69, 179],
        [119, 129, 82, 223, 68, 160, 90, 83],
    ]


def test_monotone_parts():
    made, parts = tf.nn.isotonic_regression(tf.constant([3, 2, 2, 1, 4]))
    assert made.dtype == tf.float64
    assert made.numpy().tolist() == [3.0, 2.25, 2.25, 2.25, 2.25]
    assert parts.numpy().tolist() == [0, 1, 1, 1, 1]
    equal = tf.nn.isotonic_regression(tf.constant([3.0, 2.0, 2.0]))[1]
    assert equal.numpy().tolist() == [0, 1, 2]  # equal neighbours stay apart


def test_empty_arrays_in_lists_keep_their_sizes():
    rows = [np.zeros((0, 3)), np.zeros((0, 3))]
    assert tf.constant(rows).shape == [2, 0, 3] and tf.stack(rows).shape == [2, 0, 3]
    assert tf.constant([np.zeros((2, 0, 3), "i4")]).shape == [1, 2, 0, 3]
    assert tf.constant([[], []]).shape == [2, 0]


def test_quantized_zeros_and_ones():
    for dtype in (tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32):
        for make, value in ((tf.zeros, 0), (tf.ones, 1)):
            made = make([2], dtype)
            assert made.dtype == dtype
            assert tf.cast(made, tf.int32).numpy().tolist() == [value, value]


def test_diagonals_of_truths_are_padded_by_numbers():
    made = tf.linalg.diag([True], k=1, padding_value=5)
    assert made.numpy().tolist() == [[True, True], [True, True]]
    part = tf.linalg.diag_part([[False, False]], k=(0, 1), padding_value=5)
    assert part.dtype == tf.bool


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_even_spaces_of_unknown_shape(axis):
    ends = np.array([0.0, 1, 2]), np.array([5.0, 5, 5])
    want = np.linspace(*ends, 4, axis=axis)
    for shape in (None, [None]):
        spec = tf.TensorSpec(shape, tf.float64)
        traced = tf.function(
            lambda a, b, n: tf.linspace(a, b, n, axis=axis),
            input_signature=[spec, spec, tf.TensorSpec([], tf.int32)],
        )
        np.testing.assert_allclose(traced(*ends, 4), want)
    np.testing.assert_allclose(tf.linspace(*ends, 4, axis=axis), want)
