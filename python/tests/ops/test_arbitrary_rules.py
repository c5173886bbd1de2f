"""Where several rules would do, ops follow TensorFlow's."""

import headrace as tf
import numpy as np
import pytest

R = tf.raw_ops


@pytest.mark.parametrize(
    "shape, sizes, made",
    [
        ([0, 2], [-1, 0], [2, 0]),
        ([0, 3, 4], [-1, 0], [12, 0]),
        ([0, 3, 4], [5, -1, 0], [5, 2, 0]),
        ([0], [-1, 0], [1, 0]),
        ([2, 0, 3], [4, -1, 0], [4, 1, 0]),
        ([2, 0, 3], [-1, 12, 0], [0, 12, 0]),
        ([4, 0], [0, -1, 3], [0, 1, 3]),
        ([2, 0, 3], [-1, 5], [0, 5]),
    ],
)
def test_the_missing_size_of_what_is_empty(shape, sizes, made):
    assert tf.reshape(tf.zeros(shape), sizes).shape == made
    anyhow = tf.function(
        tf.reshape,
        input_signature=[tf.TensorSpec(None)] * 1 + [tf.TensorSpec(None, tf.int32)],
    )
    assert anyhow(tf.zeros(shape), tf.constant(sizes)).shape == made


def test_a_threshold_of_sparse_sums_counts_sums_alone():
    a = tf.SparseTensor([[0], [1], [2], [3]], [0.0, 0.5, -3.0, 0.1], [6])
    b = tf.SparseTensor([[1], [3], [4], [5]], [0.3, -0.1, 0.2, 0.0], [6])
    made = tf.sparse.add(a, b, threshold=1.0)
    assert made.indices[:, 0].numpy().tolist() == [0, 2, 4, 5]
    np.testing.assert_allclose(made.values, [0, -3, 0.2, 0], atol=1e-7)


@pytest.mark.parametrize("name", ["Sum", "Max"])
@pytest.mark.parametrize("keep", [False, True])
def test_sparse_reductions_over_no_axis(name, keep):
    values = tf.constant([1.0, 2.0, 3.0])
    given = {
        "input_indices": tf.constant([[0, 1], [1, 0], [1, 2]], tf.int64),
        "input_shape": tf.constant([2, 3], tf.int64),
        "reduction_axes": tf.constant([], tf.int32),
        "keep_dims": keep,
    }
    whole = [[0, 1, 0], [2, 0, 3]]
    with tf.GradientTape() as tape:
        tape.watch(values)
        made = getattr(R, "SparseReduce" + name)(input_values=values, **given)
    assert made.numpy().tolist() == whole
    if name == "Sum":
        down = tf.reshape(tf.range(6.0), [2, 3])
        slope = tape.gradient(made, values, output_gradients=down)
        assert slope.numpy().tolist() == [1, 3, 5]
    sparse = getattr(R, f"SparseReduce{name}Sparse")(input_values=values, **given)
    assert sparse[1].numpy().tolist() == [1, 2, 3]
    tensor = tf.SparseTensor(given["input_indices"], values, given["input_shape"])
    reduce = getattr(tf.sparse, "reduce_" + name.lower())
    assert reduce(tensor, axis=[]).numpy().tolist() == whole
    assert reduce(tensor).numpy() == (6 if name == "Sum" else 3)


def test_strings_scattered_to_one_place_are_joined():
    places, words = [[1], [1], [0], [1]], [b"a", b"b", b"c", b"d"]
    assert tf.scatter_nd(places, words, [3]).numpy().tolist() == [b"c", b"abd", b""]


@pytest.mark.parametrize(
    "matrix", [[[-1, 0], [0, 1]], [[0, 1, 0], [-1, 0, 0], [0, 0, -2]], [[np.nan]]]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_real_root(matrix, dtype):
    assert np.isnan(tf.linalg.sqrtm(tf.constant(matrix, dtype))).all()


def test_real_roots_of_turns():
    half = np.sqrt(0.5)
    made = tf.linalg.sqrtm(tf.constant([[0, 1], [-1, 0]], tf.float64))
    np.testing.assert_allclose(made, [[half, half], [-half, half]])
    complex_root = tf.linalg.sqrtm(tf.constant([[-4]], tf.complex128))
    np.testing.assert_allclose(complex_root, [[2j]], atol=1e-15)


@pytest.mark.parametrize(
    "color, slopes",
    [
        ([0.5, 0.5, 0.5], [[0, 0, 0], [2, 0, -2], [1, 0, 0]]),
        ([0.5, 0.5, 1.0], [[1 / 3, -1 / 3, 0], [0, -1, 0.5], [0, 0, 1]]),
        ([0.5, 1.0, 0.5], [[-1 / 3, 0, 1 / 3], [0, 0.5, -1], [0, 1, 0]]),
        ([0.0, 0.5, 0.0], [[-1 / 3, 0, 1 / 3], [0, 0, 0], [0, 1, 0]]),
        ([-1.0, -1.0, 0.5], [[1 / 9, -1 / 9, 0], [0, 0, -4], [0, 0, 1]]),
        ([-0.5, -1.0, 0.0], [[0, 0, 0], [0, 0, 0], [0, 0, 1]]),
    ],
)
def test_slopes_of_colours_at_ties(color, slopes):
    x = tf.constant(color, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        made = tf.image.rgb_to_hsv(x)
    np.testing.assert_allclose(tape.jacobian(made, x), slopes, atol=1e-12)


def test_paddings_of_diagonals_may_be_vectors_of_one():
    made = tf.linalg.diag_part([[1.0, 2], [3, 4]], k=(-1, 1), padding_value=[7.0])
    assert made.numpy().tolist() == [[7, 2], [1, 4], [3, 7]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Padding must be scalar"):
        tf.linalg.diag_part([[1.0, 2], [3, 4]], k=(-1, 1), padding_value=[7.0, 8.0])


def test_areas_of_one_pixel_between_corners():
    made = R.ResizeArea(images=[[[[1.0], [2.0]]]], size=[3, 4], align_corners=True)
    np.testing.assert_allclose(made[0, :, :, 0], [[1, 1, 1, 2]] * 3, rtol=1e-6)


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
def test_slopes_of_double_images_are_sums_of_doubles(method):
    x = tf.zeros([1, 40, 40, 1], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        made = tf.image.resize(x, [7, 9], method)
    down = tf.fill(made.shape, 1 / 3)
    slope = tape.gradient(made, x, output_gradients=down).numpy()
    assert slope.dtype == np.float64
    assert (slope != slope.astype(np.float32)).any()


# --- Asking for gradients that nobody has.


def _slope(x, call):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = call(x)
    return tape.gradient(y, x)


def _suppressed(x):
    return R.NonMaxSuppressionV5(
        boxes=x,
        scores=[0.9],
        max_output_size=1,
        iou_threshold=0.5,
        score_threshold=0.1,
        soft_nms_sigma=0.5,
    ).selected_scores


@pytest.mark.parametrize(
    "name, x, call",
    [
        ("NonMaxSuppressionV5", [[0.0, 0, 1, 1]], _suppressed),
        (
            "DecodeCSV",
            [1.0],
            lambda x: R.DecodeCSV(records=["2"], record_defaults=[x])[0],
        ),
        (
            "StatelessShuffle",
            [1.0],
            lambda x: tf.random.experimental.stateless_shuffle(x, [1, 2]),
        ),
        (
            "SparseBincount",
            [1.0],
            lambda x: R.SparseBincount(
                indices=tf.constant([[0]], tf.int64),
                values=[1],
                dense_shape=tf.constant([1], tf.int64),
                size=2,
                weights=x,
            ),
        ),
    ],
)
def test_no_entry(name, x, call):
    with pytest.raises(LookupError, match="no entry for: " + name):
        _slope(tf.constant(x), call)


def test_a_gradient_that_is_prevented():
    with pytest.raises(LookupError, match="explicitly disabled. Reason: here"):
        _slope(tf.constant(1.0), lambda x: R.PreventGradient(input=x, message="here"))


@pytest.mark.parametrize(
    "call",
    [
        tf.image.hsv_to_rgb,
        lambda x: R.DrawBoundingBoxes(images=x[None, None], boxes=tf.zeros([1, 1, 4])),
    ],
)
def test_ops_that_let_nothing_through(call):
    assert _slope(tf.constant([[0.1, 0.2, 0.3]]), call) is None


# --- What is refused.

_INDICES, _SIZES = tf.constant([[0, 1]], tf.int64), tf.constant([2, 2], tf.int64)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: R.BroadcastArgs(s0=1, s1=[2]), r"In\[0\] must be a vector"),
        (lambda: R.BroadcastTo(input=1.0, shape=2), "shape must be a vector"),
        (
            lambda: R.SparseSegmentSumWithNumSegments(
                data=[1.0], indices=[0], segment_ids=[0], num_segments=[1]
            ),
            "num_segments should be a scalar",
        ),
        (
            lambda: R.SparseSplit(
                split_dim=tf.constant([0], tf.int64),
                indices=_INDICES,
                values=[1.0],
                shape=_SIZES,
                num_split=1,
            ),
            "axis should be a scalar",
        ),
        (
            lambda: R.QuantizeAndDequantizeV2(
                input=[1.0], input_min=0.0, input_max=[1.0], range_given=True
            ),
            "input_max must be a scalar",
        ),
        (
            lambda: R.QuantizeAndDequantizeV3(
                input=[1.0], input_min=0.0, input_max=1.0, num_bits=[8]
            ),
            "num_bits must be a scalar",
        ),
        (
            lambda: R.QuantizedConcat(
                concat_dim=[0],
                values=[tf.bitcast(tf.constant([1], tf.uint8), tf.quint8)] * 2,
                input_mins=[0.0] * 2,
                input_maxes=[1.0] * 2,
            ),
            "should be a scalar integer",
        ),
        (
            lambda: R.RaggedTensorToTensor(
                shape=[[-1, -1]],
                values=[1],
                default_value=0,
                row_partition_tensors=[[0, 1]],
                row_partition_types=["ROW_SPLITS"],
            ),
            "must be at most rank 1",
        ),
        (
            lambda: R.UnsortedSegmentJoin(inputs=["a"], segment_ids=0, num_segments=1),
            "cannot have rank 0",
        ),
        *(
            (
                lambda name=name, more=more: getattr(R, name + "CandidateSampler")(
                    true_classes=[[0, 4]],
                    num_true=2,
                    num_sampled=3,
                    unique=True,
                    **more,
                ),
                r"out of range \[0, ",
            )
            for name, more in (
                ("All", {}),
                ("Uniform", {"range_max": 4}),
                ("LogUniform", {"range_max": 4}),
                ("FixedUnigram", {"range_max": 4, "unigrams": [0.1, 0.2, 0.3, 0.4]}),
            )
        ),
    ],
)
def test_refusals(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()


def test_a_rank_that_is_too_large_is_out_of_range():
    with pytest.raises(tf.errors.OutOfRangeError, match="Invalid segment_id rank 2"):
        R.UnsortedSegmentJoin(inputs=["a"], segment_ids=[[0]], num_segments=1)


# --- Gradients where no size is known before the call.

_A = np.random.RandomState(2).randn(2, 4, 3)
_B = np.random.RandomState(3).randn(2, 4, 2)
_REGULAR = _A[:, :3] @ _A[:, :3].transpose(0, 2, 1) + 2 * np.eye(3)


@pytest.mark.parametrize(
    "call, inputs",
    [
        (tf.linalg.sqrtm, [_REGULAR]),
        (tf.linalg.lstsq, [_A, _B]),
        (tf.linalg.lstsq, [_A.transpose(0, 2, 1), _B[:, :3]]),
        (tf.linalg.tridiagonal_solve, [_A.transpose(0, 2, 1) + 3, _B]),
        (
            lambda d, x: R.TridiagonalMatMul(
                superdiag=d[:, :1], maindiag=d[:, 1:2], subdiag=d[:, 2:], rhs=x
            ),
            [_A.transpose(0, 2, 1), _B],
        ),
        (
            lambda a, b: tf.linalg.banded_triangular_solve(a, b, lower=False),
            [_A[:, :2] + 3, _B[:, :3]],
        ),
        (
            lambda a, b: tf.linalg.banded_triangular_solve(a, b, adjoint=True),
            [_A[:, :2] + 3, _B[:, :3]],
        ),
    ],
)
def test_slopes_of_matrices_of_unknown_sizes(call, inputs):
    inputs = [tf.constant(x) for x in inputs]
    specs = [tf.TensorSpec(None, tf.float64)] * len(inputs)

    def slopes(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = call(*inputs)
            y = tf.reduce_sum(y * tf.cos(y))
        return tape.gradient(y, inputs)

    anyhow = tf.function(slopes, input_signature=specs)(*inputs)
    for made, want in zip(anyhow, slopes(*inputs)):
        np.testing.assert_allclose(made, want, rtol=1e-9, atol=1e-12)
    theory, numeric = tf.test.compute_gradient(call, inputs)
    for made, want in zip(theory, numeric):
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5)
