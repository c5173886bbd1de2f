"""What kernels and shape rules refuse, in TensorFlow 2.21's words; and what lists,
extremes along a dimension, factors and texts of both byte orders give."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
raw = tf.raw_ops
f32 = tf.float32


def ones(*shape):
    return tf.ones(shape)


def i64(value):
    return tf.constant(value, tf.int64)


def some(value):
    return tf.constant(value)


def listed(value, shape):
    return raw.TensorListFromTensor(tensor=value, element_shape=some(shape))


def pushed(*values):
    made = raw.EmptyTensorList(element_shape=-1, max_num_elements=-1, element_dtype=f32)
    for value in values:
        made = raw.TensorListPushBack(input_handle=made, tensor=some(value))
    return made


def crossed(**given):
    usual = {"indices": [i64([[0, 0]])], "values": [i64([5])], "shapes": [i64([1, 1])]}
    return raw.SparseCrossV2(**{**usual, "dense_inputs": [], "sep": "_", **given})


def gathered(handle, indices, shape=-1):
    return raw.TensorListGather(
        input_handle=handle,
        indices=indices,
        element_shape=some(shape),
        element_dtype=f32,
    )


def joined(handle, shape=-1):
    return raw.TensorListConcatV2(
        input_handle=handle,
        element_shape=some(shape),
        leading_dims=i64([]),
        element_dtype=f32,
    )


def reserved(n):
    return raw.TensorListReserve(element_shape=-1, num_elements=n, element_dtype=f32)


JPEG = tf.io.encode_jpeg(np.zeros([2, 2, 3], np.uint8)).numpy()
PNG = tf.io.encode_png(np.zeros([2, 2, 3], np.uint8)).numpy()
ROWS = i64([[0, 0]])
REFUSED = [
    # Segments.
    (
        lambda: tf.math.segment_sum(ones(4, 4), [0, 1, 2, 0]),
        "id 1 out of range .0, 1., pos",
    ),
    (lambda: tf.math.segment_sum(ones(4, 4), [0, 1, 0, 1]), "ids are not increasing"),
    (lambda: tf.math.segment_sum(ones(4, 4), [0, 0, 0, -1]), "ids must be >= 0"),
    (
        lambda: tf.sparse.segment_sum(ones(4, 4), [0, 1, 2, 3], [-1, 0, 0, 1]),
        r"Segment id -1 out of range \[0, 2\), possibly",
    ),
    (
        lambda: raw.SparseSegmentSumGrad(
            grad=ones(3, 4), indices=[8, 3], segment_ids=[0, 1], output_dim0=4
        ),
        r"Index 8 out of range \[0, 4\)",
    ),
    (
        lambda: tf.math.unsorted_segment_max(ones(2, 2), [[0, 1], [0, 5]], 4),
        r"segment_ids\[1,1\] = 5 is out of range \[0, 4\)",
    ),
    (
        lambda: tf.math.unsorted_segment_sum(ones(3, 5), i64([0, 1, 2]), 2**62),
        "Encountered overflow when multiplying",
    ),
    (
        lambda: tf.math.segment_sum(ones(2, 8), i64([0, 2**62])),
        "Encountered overflow when multiplying",
    ),
    (
        lambda: tf.sparse.segment_mean(ones(2, 8), i64([9]), i64([2**63 - 1])),
        "Encountered overflow when multiplying|out of range",
    ),
    # Counts.
    (
        lambda: raw.RaggedBincount(
            splits=i64([0, 2]), values=[0, 1], size=3, weights=[[1.0], [2.0], [3.0]]
        ),
        "Input indices and weights must have the same size",
    ),
    (
        lambda: raw.RaggedBincount(
            splits=i64(np.zeros(0)), values=[0], size=1, weights=[1.0]
        ),
        "Splits must be non-empty",
    ),
    # Transforms and factors.
    (lambda: tf.signal.rfft2d(ones(6, 4), [6, -2]), r"fft_length\[1\] must >= 0"),
    (
        lambda: raw.Eig(input=ones(2, 2), Tout=tf.complex128),
        "Invalid output dtype complex128: that of float is complex64",
    ),
    # Windows.
    (
        lambda: tf.nn.conv3d(ones(1, 2, 2, 2, 1), ones(1, 0, 1, 1, 1), [1] * 5, "SAME"),
        "filter must not have zero elements",
    ),
    (
        lambda: tf.nn.depthwise_conv2d(
            ones(1, 2, 2, 1), ones(1, 1, 1, 0), [1] * 4, "SAME"
        ),
        "filter must not have zero elements",
    ),
    (
        lambda: tf.nn.max_pool2d(
            ones(1, 4, 4, 1), 2, 2, [[0, 0], [1, 0], [0, 3], [0, 0]]
        ),
        "Right padding 3 needs to be smaller than the window size 2",
    ),
    (
        lambda: raw.MaxPoolGradWithArgmax(
            input=ones(1, 2, 2, 1),
            grad=ones(1, 1, 1, 1),
            argmax=i64([[[[0, 1]]]]),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        ),
        r"Expected argmax shape to be \[1,1,1,1\], but got \[1,1,1,2\]",
    ),
    (
        lambda: tf.nn.max_pool_with_argmax(ones(1, 2, 2, 1), [1, 0, 2, 1], 2, "SAME"),
        "ksize must be a positive int32 value, got:0",
    ),
    (
        lambda: raw.AvgPoolGrad(
            orig_input_shape=[1, 4, 4, 2],
            grad=ones(1, 2, 2, 2),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 2],
            padding="VALID",
        ),
        "AvgPoolGrad over channels",
    ),
    # Lists.
    (lambda: gathered(pushed(1.0, [1.0, 2.0]), [0, 1]), "ranks during merge: 0 vs. 1"),
    (
        lambda: gathered(pushed([1.0], [1.0, 2.0]), [0, 1]),
        r"during merge: \[1\] vs. \[2\]",
    ),
    (
        lambda: gathered(pushed(1.0), [-1]),
        "Trying to gather element -1 in a list with 1",
    ),
    (lambda: joined(pushed([1.0, 2.0], 1.0)), "scalar shape at index 1 but requires"),
    (
        lambda: joined(reserved(2)),
        "only uninitialized tensors but element_shape_except",
    ),
    (
        lambda: raw.TensorListSplit(
            tensor=[1.0, 2.0], element_shape=some(np.int32([])), lengths=i64([1, 1])
        ),
        "requires element_shape to be at least of rank 1, but saw: ..",
    ),
    (
        lambda: raw.TensorListSplit(tensor=[1.0], element_shape=[-1], lengths=i64(1)),
        r"Expected lengths to be a vector, received shape: \[\]",
    ),
    (
        lambda: raw.EmptyTensorList(
            element_shape=[[2]], max_num_elements=-1, element_dtype=f32
        ),
        "Shape must be at most rank 1 but is rank 2",
    ),
    (
        lambda: raw.TensorListResize(input_handle=pushed(1.0), size=[1, 2]),
        "Shape must be rank 0 but is rank 1",
    ),
    # Sparse tensors.
    (
        lambda: raw.SparseTensorDenseAdd(
            a_indices=i64([[-1, 0]]), a_values=[1.0], a_shape=i64([2, 2]), b=ones(2, 2)
        ),
        r"invalid index on dimension 0: a_indices\(0,0\) = -1",
    ),
    (
        lambda: raw.SparseTensorDenseAdd(
            a_indices=i64([[0, 0]]),
            a_values=[1.0, 2.0],
            a_shape=i64([2, 2]),
            b=ones(2, 2),
        ),
        "Dimensions 1 and 2 are not compatible",
    ),
    (
        lambda: raw.SparseReorder(
            input_indices=i64([[0, 0]]), input_values=[1, 2], input_shape=i64([4, 5])
        ),
        r"Number of elements in indices \(1\) and values \(2\) do not match",
    ),
    (
        lambda: raw.SparseSplit(
            split_dim=i64(-3),
            indices=ROWS,
            values=[1.0],
            shape=i64([2, 2]),
            num_split=1,
        ),
        r"axis should be in range \[-2, 2\), got -3",
    ),
    (
        lambda: v1.sparse_to_dense([[1], [10]], [5], [-1.0, 1.0], 0.0, False),
        r"Indices are not valid \(out of bounds\).  Shape: \[5\]",
    ),
    (
        lambda: crossed(indices=[i64([[0]])]),
        "Expected D2 of index to be 2 got 1 at pos",
    ),
    (
        lambda: crossed(values=[i64(5)]),
        r"values should be a vector but received shape \[\]",
    ),
    (lambda: crossed(values=[i64([5, 6])]), "Expected size of values to be 1 got 2"),
    (lambda: crossed(sep=["_"]), "Input separator should be a scalar"),
    # Images.
    (lambda: tf.io.decode_bmp(JPEG), "Trying to decode JPEG format using DecodeBmp op"),
    (lambda: tf.io.decode_bmp(PNG), "Use `decode_png` or `decode_image` instead"),
    (
        lambda: tf.io.decode_and_crop_jpeg(PNG, [0, 0, 1, 1]),
        "JPEG only, but detected PNG",
    ),
    (
        lambda: tf.image.crop_and_resize(ones(1, 1, 1, 1), ones(1, 4), [[0]], [1, 1]),
        "box_indices must be rank 1",
    ),
    # Arrays and windows.
    (lambda: tf.unravel_index([1], [0, 2]), "cannot contain a dim of zero"),
    (
        lambda: tf.broadcast_to([1, 2], [2, 1]),
        "Unable to broadcast tensor of shape .2.",
    ),
    (lambda: tf.constant(1)[0], "Attempting to slice scalar input"),
    (lambda: raw.NthElement(input=ones(3), n=[1]), "N must be scalar but has rank 1"),
    (lambda: raw.UniqueV2(x=[[1]], axis=i64([3])), "axis expects to be in the range"),
    (
        lambda: raw.DataFormatVecPermute(
            x=[0, 1, 2, 3], src_format="12", dst_format="21"
        ),
        "Source format must be of length 4 or 5",
    ),
    (
        lambda: raw.MaxPoolGradWithArgmax(
            input=ones(1, 2, 2, 1),
            grad=ones(1, 1, 1, 2),
            argmax=i64([[[[1]]]]),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        ),
        r"Expected grad shape to be \[1,1,1,1\], but got \[1,1,1,2\]",
    ),
    (
        lambda: tf.zeros([2**40, 2**40]),
        "Encountered overflow when multiplying 1099511627776",
    ),
]


@pytest.mark.parametrize("way", ["eager", "traced"])
@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_words(call, words, way):
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=words):
        (tf.function(call) if way == "traced" else call)()


def test_words_of_graphs():
    with tf.Graph().as_default():
        for call, words in (
            (lambda: tf.split(ones(3), [-1, -2]), "Split size at index 1 must be >= 0"),
            (lambda: tf.split(ones(3), [-1, -1]), "size_splits can only have one -1"),
            (lambda: tf.linalg.diag(1), "Shape must be at least rank 1 but is rank 0"),
            (lambda: tf.linalg.set_diag(1, 1), "Shape must be at least rank 2 but is"),
            (lambda: tf.linalg.tensor_diag_part(ones()), "even and non-zero rank"),
            (lambda: tf.expand_dims([1, 2], [0, 1]), "a tensor with a single value"),
        ):
            with pytest.raises(ValueError, match=words):
                call()


def test_lists_join_what_was_never_set_like_the_others():
    made = raw.TensorListSetItem(
        input_handle=reserved(3), index=1, item=some([[1.0, 2.0], [3.0, 4.0]])
    )
    tensor, lengths = joined(made)
    assert tensor.shape == [6, 2] and lengths.numpy().tolist() == [2, 2, 2]


def test_rows_say_no_more_of_a_list_than_its_shape():
    @tf.function
    def shapes(x):
        made = raw.TensorListPushBack(input_handle=listed(x, [-1]), tensor=ones(4))
        read = raw.TensorListGetItem(
            input_handle=made, index=3, element_shape=-1, element_dtype=f32
        )
        assert read.shape.as_list() == [None]
        return read

    assert shapes(ones(3, 3)).shape == [4]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_extremes_along_a_dimension(axis):
    x = np.random.RandomState(0).permutation(24).reshape(4, 3, 2).astype("f")
    k = 2
    with tf.GradientTape(persistent=True) as tape:
        t = tf.constant(x)
        tape.watch(t)
        low = tf.math.approx_min_k(t, k, reduction_dimension=axis)
        high = tf.math.approx_max_k(t, k, reduction_dimension=axis)
    order = np.argsort(x, axis)
    for found, places in (
        (low, np.take(order, range(k), axis)),
        (high, np.take(np.flip(order, axis), range(k), axis)),
    ):
        assert found.indices.numpy().tolist() == places.tolist()
        assert (found.values.numpy() == np.take_along_axis(x, places, axis)).all()
        slope = np.zeros_like(x)
        np.put_along_axis(slope, places, 1, axis)
        assert (tape.gradient(found.values, t).numpy() == slope).all()


@pytest.mark.parametrize(
    ("n", "k", "size"),  # how many TensorFlow's hands out before it aggregates
    [(100, 10, 100), (129, 1, 128), (500, 10, 256), (5000, 10, 384), (5000, 50, 1280)],
)
def test_extremes_that_are_not_aggregated(n, k, size):
    x = np.random.RandomState(0).permutation(2 * n).reshape(2, n).astype("f")
    values, _ = tf.math.approx_max_k(x, k, aggregate_to_topk=False)
    assert values.shape == [2, size]
    assert (values.numpy() == np.flip(np.sort(x), -1)[:, :size]).all()
    assert tf.math.approx_max_k(
        np.arange(3000.0, dtype="f"), 10, aggregate_to_topk=False
    )[0].shape == [2048]


def test_factors_of_complex_matrices():
    a = np.array([[1 + 2j, 3], [4j, 5 - 1j], [1, 1]])
    q, r = tf.linalg.qr(a)
    np.testing.assert_allclose(q[0, 0], -0.21320071635561044 - 0.42640143271122083j)
    np.testing.assert_allclose(r[0, 1], 5.543218625245871j, atol=1e-14)
    for shape in ((3, 2), (2, 3), (3, 3), (1, 4)):
        a = np.random.RandomState(0).randn(2, *shape) @ np.eye(shape[1])
        a = a + 1j * np.random.RandomState(1).randn(2, *shape)
        for full in (False, True):
            q, r = tf.linalg.qr(a, full_matrices=full)
            np.testing.assert_allclose(q @ r, a, atol=1e-13)
            unit = np.broadcast_to(
                np.eye(q.shape[-1]), tf.matmul(q, q, adjoint_a=True).shape
            )
            np.testing.assert_allclose(
                tf.matmul(q, q, adjoint_a=True), unit, atol=1e-13
            )
    with tf.Graph().as_default(), v1.Session():
        told, measured = tf.test.compute_gradient(lambda x: tf.linalg.qr(x)[1], [a[0]])
    np.testing.assert_allclose(told[0], measured[0], atol=1e-4)


@pytest.mark.parametrize(
    ("encoding", "text", "wanted"),
    [
        ("UTF-16", b"\x00\x2a\x00\x2b", "*+"),
        ("UTF-16", b"\xff\xfe\x2a\x00\x2b\x00", "*+"),
        ("UTF-16", b"\xfe\xff\x00\x2a\x00\x2b", "*+"),
        ("UTF-32", b"\x00\x00\x00\x2a", "*"),
        ("UTF-32", b"\xff\xfe\x00\x00\x2a\x00\x00\x00", "*"),
        ("UTF-16LE", b"\xff\xfe\x2a\x00", "\ufeff*"),
    ],
)
def test_byte_orders(encoding, text, wanted):
    found, starts = tf.strings.unicode_decode_with_offsets(text, encoding)
    assert "".join(map(chr, found.numpy())) == wanted
    assert starts.numpy()[0] == 0


def test_control_characters_are_left_out_with_what_is_wrong():
    found = tf.strings.unicode_transcode(
        [b"a\x00b\x01c\xff"],
        "UTF-8",
        "UTF-8",
        errors="ignore",
        replace_control_characters=True,
    )
    assert found.numpy().tolist() == [b"abc"]


def test_static_shapes_of_sets():
    with tf.Graph().as_default():
        x = v1.placeholder(tf.int32, [2, None])
        made = tf.sets.union(x, x)
        assert made.indices.shape.as_list() == [None, 2]
        assert made.dense_shape.shape.as_list() == [2]
        sparse = v1.sparse_placeholder(tf.int32, [None, 3, 4])
        assert tf.sets.intersection(sparse, sparse).indices.shape.as_list() == [None, 3]


def test_sparse_tensors_known_in_part():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def shape(n):
        made = tf.SparseTensor([[0, 2]], [1], [n, tf.constant(3, tf.int64)])
        assert made.shape.as_list() == [None, 3]
        return made.dense_shape

    assert shape(5).numpy().tolist() == [5, 3]

    @tf.function(
        input_signature=[tf.TensorSpec([2], tf.int64), tf.TensorSpec(None, tf.int64)]
    )
    def shapes(two, any_rank):
        for sizes, known in (
            ([any_rank[0], any_rank[1]], [None, None]),
            (tf.concat([two[:1], [7]], 0), [None, 7]),
            (tf.stack([two[1], any_rank[0], 4]), [None, None, 4]),
        ):
            places = tf.zeros([1, len(known)], tf.int64)
            made = tf.sparse.reorder(tf.SparseTensor(places, [1], sizes))
            assert made.shape.as_list() == made.get_shape().as_list() == known
        return made.dense_shape

    assert shapes([5, 6], [8, 9]).numpy().tolist() == [6, 8, 4]
    spec = tf.SparseTensorSpec([2, None], tf.float32)
    assert spec._batch(3) == tf.SparseTensorSpec([3, 2, None], tf.float32)
    assert spec._unbatch() == tf.SparseTensorSpec([None], tf.float32)
    value = tf.SparseTensor([[0, 1]], [1.0], [2, 4])
    again = spec._from_tensor_list(spec._to_tensor_list(value))
    assert again.values.numpy().tolist() == [1.0] and again.shape == [2, 4]
    with pytest.raises(ValueError, match="Dimensions 2 and 1 are not compatible"):
        tf.SparseTensor([[0], [1]], [1.0], [4])


def test_what_is_refused_at_the_run_alone():
    with tf.Graph().as_default(), v1.Session() as session:
        made = tf.math.segment_max(ones(4, 3), [0, 1])
        assert made.shape.as_list() == [None, 3]
        words = "same size as dimension 0"
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(made)
        for pool in (tf.nn.max_pool2d, tf.nn.avg_pool2d):
            made = pool(ones(3, 4, 4, 5), [1, -1, 2, 1], 2, "SAME")
            with pytest.raises(tf.errors.InvalidArgumentError, match="1,-1,2,1"):
                session.run(made)
    for pool in (tf.nn.max_pool2d, tf.nn.avg_pool2d):
        with pytest.raises(tf.errors.InvalidArgumentError, match="1,2,0,1"):
            pool(ones(3, 4, 4, 5), [1, 2, 0, 1], 2, "SAME")


def test_sparse_tensors_too_large_to_be_dense_are_sorted():
    places = np.zeros([3, 6])
    places[:, 5] = [7, 9, 1]
    made = tf.sparse.reorder(tf.SparseTensor(i64(places), [0, 1, 2], [4096] * 6))
    assert made.values.numpy().tolist() == [2, 0, 1]
    assert made.indices.numpy()[:, 5].tolist() == [1, 7, 9]


def test_weights_of_any_shape_are_counted():
    for weights in ([1.0, 2.0, 4.0, 8.0], [[1.0, 2.0], [4.0, 8.0]], [[[1.0, 2, 4, 8]]]):
        made = raw.RaggedBincount(
            splits=i64([0, 3, 4]), values=[0, 1, 1, 0], size=2, weights=weights
        )
        assert made.numpy().tolist() == [[1, 6], [8, 0]]


def test_slopes_that_nobody_has_written():
    def slope(function, *shape):
        x = tf.random.normal(shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = function(x, full_matrices=True)
        return tape.gradient(made[1], x)

    for wrap in (lambda f: f, tf.function):
        with pytest.raises(NotImplementedError, match="nrows > ncols and full_matr"):
            wrap(slope)(tf.linalg.qr, 5, 2)
        with pytest.raises(NotImplementedError, match="abs.m - n. > 1"):
            wrap(slope)(tf.linalg.svd, 5, 2)
    assert slope(tf.linalg.qr, 2, 5).shape == [2, 5]


def test_sessions_give_sparse_values():
    with tf.Graph().as_default(), v1.Session() as session:
        value = session.run(tf.SparseTensor([[0, 1]], [1.0], [2, 4]))
    assert isinstance(value, v1.SparseTensorValue) and value.indices.tolist() == [
        [0, 1]
    ]


def test_texts_of_ragged_values():
    value = v1.ragged.constant_value([[b"ab", b"c"], [b"d"]])
    assert tf.strings.unicode_decode(value, "UTF-8").to_list() == [
        [[97, 98], [99]],
        [[100]],
    ]
    assert tf.strings.bytes_split(value).to_list() == [[[b"a", b"b"], [b"c"]], [[b"d"]]]
