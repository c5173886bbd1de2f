"""Arguments of unusual kinds: what is one tensor where a list is usual, truth values,
numbers beyond the range of a type, images of odd ranks."""

import headrace as tf
import numpy as np
import pytest

DOUBLE = tf.constant([1.5], tf.float64)
SPARSE = tf.sparse.from_dense([[1.0, 0.0]])


@pytest.mark.parametrize(
    "source, target, expected",
    [
        (tf.float32, tf.int32, [2147483520, -2147483648]),
        (tf.float64, tf.int32, [2147483647, -2147483648]),
        (tf.float32, tf.uint8, [255, 0]),
        (tf.float16, tf.int32, [65504, -65504]),
        (tf.float64, tf.uint32, [4294967295, 0]),
        (tf.float64, tf.int64, [9223372036854774784, -(2**63)]),
        (tf.float32, tf.uint64, [18446742974197923840, 0]),
    ],
)
def test_saturate_cast_keeps_what_the_type_holds(source, target, expected):
    x = tf.constant([1e30, -1e30], source)
    assert tf.saturate_cast(x, target).numpy().tolist() == expected


def test_bright_integers_saturate():
    image = tf.constant([[[2**30, 1]]])
    bright = tf.image.adjust_brightness(image, 1.0)
    assert bright.numpy().tolist() == [[[2147483520, 2147483520]]]


@pytest.mark.parametrize("x", [[DOUBLE], np.array([1.5]), [np.float64(1.5)]])
def test_defaults_do_not_narrow_data(x):
    """NextAfter is of float32 by default; the next double is another number."""
    made = tf.math.nextafter(x, 2.0)
    assert made.dtype == tf.float64
    assert made.numpy().ravel().tolist() == [np.nextafter(1.5, 2.0)]
    assert tf.math.nextafter([1.5], 2.0).dtype == tf.float32


@pytest.mark.parametrize("dtype", [tf.uint8, tf.int8, tf.int16, tf.uint32, tf.bfloat16])
def test_truth_is_no_small_number(dtype):
    for value in (True, [True], [np.bool_(True)]):
        with pytest.raises(TypeError, match="Cannot convert"):
            tf.constant(value, dtype)
    assert tf.constant([1, True], dtype).numpy().tolist() == [1, 1]


def test_truth_as_numbers():
    for dtype in (tf.int32, tf.int64, tf.float32, tf.float64):
        assert tf.constant([True, False], dtype).numpy().tolist() == [1, 0]
    with pytest.raises(TypeError):
        tf.constant([np.bool_(True)], tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.add(tf.constant([1], tf.uint8), True)


@pytest.mark.parametrize(
    "values",
    [tf.constant([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])],
)
def test_add_n_of_the_parts_of_a_tensor(values):
    assert tf.add_n(values).numpy().tolist() == [4, 6]
    assert tf.add_n(iter([tf.constant(1.0), 2.0])).numpy() == 3
    for nothing in ([], 5):
        with pytest.raises(ValueError, match="iterable"):
            tf.add_n(nothing)


def test_tuple_keeps_the_structure():
    x = tf.constant([1.0])
    assert tf.tuple(x) is x
    assert tf.tuple({"a": x}) == {"a": x}
    assert isinstance(tf.tuple((x, None)), tuple)
    assert isinstance(tf.tuple([x]), list)


def test_stack_of_what_is_no_list():
    assert tf.stack(tf.constant(1)).numpy() == 1
    assert tf.stack(5).numpy() == 5
    assert tf.stack(tf.zeros([0, 3])).shape == [0, 3]
    assert tf.stack(tf.constant([[1, 2]]), axis=1).numpy().tolist() == [[1], [2]]


@pytest.mark.parametrize("axis", [0.5, "a", None, [0, 1]])
def test_concat_of_one_checks_the_axis(axis):
    with pytest.raises((TypeError, ValueError)):
        tf.concat([[1, 2]], axis)


def test_sparse_tensors_alone():
    assert tf.concat([SPARSE], 0) is SPARSE
    zeros = tf.zeros_like(SPARSE, tf.float64)
    assert zeros.dtype == tf.float64 and zeros.numpy().tolist() == [[0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="divide by zero"):
        tf.math.divide(SPARSE, 0.0)


@pytest.mark.parametrize("norm", [2, tf.constant(2), tf.constant(2.0, tf.float64)])
def test_clip_by_norm_of_any_type(norm):
    assert np.allclose(tf.clip_by_norm([3.0, 4.0], norm), [1.2, 1.6])


def test_negative_norms_clip_to_zero():
    assert tf.clip_by_norm([3.0, 4.0], -1.0).numpy().tolist() == [0, 0]


def test_axes_out_of_range():
    logits = tf.zeros([2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.nn.softmax_cross_entropy_with_logits(logits, logits, axis=2)
    for axis in (1, -2):
        with pytest.raises(ValueError, match="out of bounds"):
            tf.repeat([1, 2], 2, axis)
    with pytest.raises(TypeError, match="must be an int"):
        tf.repeat([1, 2], 2, tf.constant(0))
    with pytest.raises(ValueError, match="out of bounds"):
        tf.nn.isotonic_regression([1.0], axis=1)
    for shape in (0, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a vector"):
            tf.broadcast_to(2.0, shape)


def test_isotonic_regression_has_names():
    made = tf.nn.isotonic_regression([1.0, 2.0, 0.0])
    assert made.output.numpy().tolist() == [1.5, 1.5, 0]
    assert made.segments.numpy().tolist() == [0, 0, 1]
    assert tf.nn.isotonic_regression(2.0).output.numpy() == 2


@pytest.mark.parametrize(
    "loss, weight, expected",
    [
        ([1.0, 2.0], [1.0, 0.0], 0.5),
        ([1.0, 2.0], [[1.0], [0.0]], 0.5),
        ([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.0], 1.5),
        ([[1.0, 2.0], [3.0, 4.0]], [[1.0], [0.0]], 1.5),
        ([[1, 2, 3], [4, 5, 6]], 2.5, 25.5),
        ([[[1.0], [2.0]], [[2.0], [3.0]]], [[1.0, 0.0], [2.0, 2.0]], 5.5),
    ],
)
def test_average_losses_of_weights_of_other_ranks(loss, weight, expected):
    assert tf.nn.compute_average_loss(loss, weight).numpy() == expected


def test_regularization_losses_are_floating():
    assert tf.nn.scale_regularization_loss([1, 2]).dtype == tf.float64
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    assert tf.nn.sigmoid(ragged).to_list() == tf.math.sigmoid(ragged).to_list()
    assert tf.nn.tanh(ragged).to_list() == tf.math.tanh(ragged).to_list()
    assert tf.nn.swish(ragged).to_list() == tf.nn.silu(ragged).to_list()


@pytest.mark.parametrize("x", [tf.constant([1]), tf.constant([1j])])
def test_dropout_is_of_floating_numbers(x):
    for rate in (0, 0.5):
        with pytest.raises(ValueError, match="floating point"):
            tf.nn.dropout(x, rate)


@pytest.mark.parametrize(
    "name", ["flip_left_right", "flip_up_down", "transpose", "rot90"]
)
def test_images_have_three_or_four_dimensions(name):
    with pytest.raises(ValueError, match="must have either 3 or 4 dimensions"):
        getattr(tf.image, name)(tf.zeros([1, 2, 1, 4, 3]))
    with pytest.raises(ValueError, match="at least three-dimensional"):
        getattr(tf.image, name)(tf.zeros([4, 3]))


def test_images_of_too_few_dimensions():
    for shape in ([], [3]):
        x = tf.zeros(shape)
        for similar in (tf.image.ssim, tf.image.ssim_multiscale):
            with pytest.raises(ValueError, match="rank at least 3"):
                similar(x, x, 1.0)
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.image.sobel_edges(x)
    half = tf.image.per_image_standardization(tf.ones([2, 1, 2], tf.float16))
    assert half.dtype == tf.float32


def test_matrices_of_integers():
    assert tf.linalg.matrix_rank([[1, 2], [3, 4]]).numpy() == 2
    for function in (tf.linalg.matrix_rank, tf.linalg.pinv):
        with pytest.raises(TypeError, match="float"):
            function(tf.constant([[1, 2], [3, 4]]))


def test_crosses_of_numbers():
    made = tf.sparse.cross([SPARSE, tf.constant([[1.0, 3.0]])])
    assert made.values.numpy().tolist() == [b"1_X_1", b"1_X_3"]
    with pytest.raises(ValueError, match="Unexpected dtype"):
        tf.ragged.cross([tf.ragged.constant([[1.0]])])


def test_ragged_rows():
    assert tf.ragged.stack([tf.constant([1, 2])]).to_list() == [[1, 2]]
    assert isinstance(tf.ragged.stack([tf.ones([2, 3])]), tf.RaggedTensor)
    ragged = tf.ragged.constant([[1, 2], [3]])
    for count in (0, -1):
        with pytest.raises(ValueError, match=">=1"):
            tf.split(ragged, count)
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
        tf.ragged.segment_ids_to_row_splits([0, 1], -1)
    assert tf.reduce_sum(ragged, True).numpy().tolist() == [3, 3]


MATRIX = tf.constant([[1.5, -2.0, 0.5], [0.25, 3.0, 1.0]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.sort(x, 0),
        lambda x: tf.argsort(x, -2, "DESCENDING"),
        lambda x: tf.nn.softmax(x, 0),
        lambda x: tf.nn.log_softmax(x, -2),
        lambda x: tf.nn.softmax_cross_entropy_with_logits(x, x, 0),
        lambda x: tf.signal.frame(x, 2, 1),
        lambda x: tf.signal.frame(x, 3, 2, pad_end=True),
        lambda x: tf.signal.frame(x, 1, 1, axis=0),
        lambda x: tf.signal.fftshift(x),
        lambda x: tf.signal.ifftshift(x, [-1]),
        lambda x: tf.nn.isotonic_regression(x, axis=0).output,
        lambda x: tf.tensordot(x, x, [[0], [-2]]),
        lambda x: tf.tensordot(x, tf.transpose(x), 1),
        lambda x: tf.repeat(x, [1, 2, -3], -1),
    ],
)
def test_ranks_that_only_the_run_knows(function):
    """The same as of a known rank."""
    expected = function(MATRIX)
    traced = tf.function(function, input_signature=[tf.TensorSpec(None)])
    np.testing.assert_array_equal(traced(MATRIX), expected)


@pytest.mark.parametrize(
    "function",
    [
        tf.reduce_sum,
        tf.reduce_mean,
        tf.reduce_max,
        tf.math.reduce_std,
        lambda x: tf.reduce_any(x > 0),
        lambda x: tf.reduce_sum(x, keepdims=True),
    ],
)
def test_ragged_reductions_of_unknown_rank(function):
    ragged = tf.ragged.constant([[1.5, -2.0], [], [0.25]])
    spec = tf.RaggedTensorSpec(None, tf.float32, ragged_rank=1)
    traced = tf.function(function, input_signature=[spec])
    np.testing.assert_array_equal(traced(ragged), function(ragged))


def test_counts_to_repeat():
    assert tf.repeat([1, 2, 3], [1, -2, 3]).numpy().tolist() == [1, 3, 3, 3]
    with pytest.raises(TypeError, match="must be of type integer"):
        tf.repeat([1, 2], 2.5)
    with pytest.raises(ValueError):
        tf.repeat([1, 2], [[1, 2]])


def test_names_are_text():
    with tf.Graph().as_default():
        for call in (tf.abs, tf.identity):
            with pytest.raises(TypeError, match="argument 'name', got 3"):
                call(1.0, 3)
