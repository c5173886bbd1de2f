"""Sparse matrices in compressed rows."""

import csr_cases
import headrace as tf
import numpy as np
import pytest
import recorded
from csr_cases import BATCH, PLACES, csr, of_dense, parts, values

R = tf.raw_ops
SIZES = [3, 4]
OTHER = np.array([[0, 0], [0, 1], [1, 3]], np.int64)
X = np.array([1.0, 2, 3], np.float32)
Y = np.array([10.0, 20, 30], np.float32)
W = np.arange(1.0, 13, dtype=np.float32).reshape(3, 4)


def dense(matrix, kind="float32"):
    return R.CSRSparseMatrixToDense(sparse_input=matrix, type=kind)


def add(a, b, alpha=1.0, beta=1.0):
    return R.SparseMatrixAdd(a=a, b=b, alpha=alpha, beta=beta)


@pytest.mark.parametrize("name", recorded.names(csr_cases))
def test_as_recorded(name):
    # Sums of complex numbers cancel here and there.
    recorded.check(csr_cases, name, tf, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["matmul", "sparse_matmul", "cholesky", "transpose"])
def test_traced(name):
    made = tf.function(lambda: getattr(csr_cases, "case_" + name)(tf))()
    want = getattr(csr_cases, "case_" + name)(tf)
    for a, b in zip(tf.nest.flatten(made), tf.nest.flatten(want), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("places", [[[2, 0], [0, 1]], [[1, 0, 0], [0, 0, 1]]])
def test_rows_out_of_order(places):
    sizes = [2, 3, 4][-len(places[0]) :]
    sizes[0] = 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        csr(tf, places, values(tf, 2), sizes)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        R.DenseToCSRSparseMatrix(dense_input=tf.zeros(sizes), indices=places)


@pytest.mark.parametrize("order", [[0, 1, 2, -1], [0, 1, 2, 4], [0, 2**31 - 1, 2, 3]])
def test_cholesky_of_no_permutation(order):
    m = of_dense(tf, csr_cases.SPD)
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch index 0"):
        R.SparseMatrixSparseCholesky(input=m, permutation=order, type="float32")


def test_cholesky_of_nothing():
    m = csr(tf, [], values(tf, 0), [0, 0])
    order = tf.constant([], tf.int32)
    made = R.SparseMatrixSparseCholesky(input=m, permutation=order, type="float32")
    np.testing.assert_array_equal(parts(tf, made)[0][0], [0])
    assert R.SparseMatrixOrderingAMD(input=m).shape == [0]


def _random(sizes, share, kind, seed=0):
    random = np.random.RandomState(seed)
    x = random.randn(*sizes) * (random.rand(*sizes) < share)
    return (x * (1 + 0.5j) if kind.startswith("c") else x).astype(kind)


@pytest.mark.parametrize("kind", csr_cases.KINDS)
@pytest.mark.parametrize("n", [1, 3, 8, 17, 31, 64, 75, 130])
def test_products_of_many_widths(kind, n):
    a, b = _random([37, 50], 0.2, kind), _random([50, n], 1, kind)
    made = R.SparseMatrixMatMul(a=of_dense(tf, a, kind), b=b)
    tolerance = 1e-4 if kind in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(made, a @ b, rtol=tolerance, atol=tolerance)
    flags = {"transpose_b": True, "transpose_output": True}
    turned = R.SparseMatrixMatMul(a=of_dense(tf, a, kind), b=b.T.copy(), **flags)
    np.testing.assert_array_equal(turned, np.transpose(made))


@pytest.mark.parametrize("inner, share", [(70, 0.3), (70, 0.01), (20000, 0.0005)])
def test_sparse_products_of_many_sizes(inner, share):
    a, b = (
        _random([300, inner], share, "float64"),
        _random([inner, 900], share, "float64"),
    )
    for x, y in ((a, b), (b.T, a.T)):
        made = R.SparseMatrixSparseMatMul(
            a=of_dense(tf, x, "float64"), b=of_dense(tf, y, "float64"), type="float64"
        )
        np.testing.assert_allclose(dense(made, "float64"), x @ y, atol=1e-10)
        rows, columns, _ = (p.numpy() for p in parts(tf, made, "float64")[0])
        for row in np.split(columns, rows[1:-1]):
            assert (np.diff(row) > 0).all()


def test_empty_products():
    m = csr(tf, PLACES, X, SIZES)
    y = R.SparseMatrixMatMul(a=m, b=tf.zeros([4, 0]))
    assert y.shape == [3, 0]
    none = csr(tf, [], values(tf, 0), [0, 2, 2])
    assert dense(none).shape == [0, 2, 2]
    assert R.SparseMatrixMatMul(a=none, b=tf.zeros([0, 2, 5])).shape == [0, 2, 5]


def test_add():
    a, b = csr(tf, PLACES, X, SIZES), csr(tf, OTHER, Y, SIZES)
    row_ptrs, columns, x = parts(tf, add(a, b, 2.0, -1.0))[0]
    np.testing.assert_array_equal(row_ptrs, [0, 2, 3, 5])
    np.testing.assert_array_equal(columns, [0, 1, 3, 0, 2])
    np.testing.assert_array_equal(x, [-10, -18, -30, 4, 6])
    # What cancels stays a place.
    np.testing.assert_array_equal(parts(tf, add(a, a, 1.0, -1.0))[0][2], [0, 0, 0])
    unordered = csr(tf, [[0, 2], [0, 1], [0, 1]], X, SIZES)
    _, columns, x = parts(tf, add(unordered, a))[0]
    np.testing.assert_array_equal(columns, [1, 2, 0, 2])
    np.testing.assert_array_equal(x, [6, 1, 2, 3])


def test_add_of_batches():
    a = csr(tf, BATCH, values(tf, 4), [3, 3, 4])
    b = csr(tf, [[0, 0, 0], [2, 1, 1]], Y[:2], [3, 3, 4])
    np.testing.assert_array_equal(dense(add(a, b)), dense(a) + dense(b))


def test_add_refuses():
    a = csr(tf, PLACES, X, SIZES)
    for b, alpha in [
        (csr(tf, PLACES, X, [3, 5]), 1.0),
        (csr(tf, PLACES, X.astype("float64"), SIZES), 1.0),
        (csr(tf, BATCH, values(tf, 4), [3, 3, 4]), 1.0),
        (a, [1.0]),
        (tf.stack([a]), 1.0),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            add(a, b, alpha)


def test_scale():
    a, b = csr(tf, PLACES, X, SIZES), csr(tf, BATCH, values(tf, 4), [3, 3, 4])
    np.testing.assert_array_equal(dense(R.SparseMatrixMul(a=a, b=3.0)), 3 * dense(a))
    each = np.array([2.0, 3, 4], np.float32).reshape(3, 1, 1)
    made = R.SparseMatrixMul(a=b, b=each)
    np.testing.assert_array_equal(dense(made), dense(b) * each)
    for by in ([2.0], [[2.0]], each, np.ones([3, 4], np.float32)):
        with pytest.raises(tf.errors.UnimplementedError, match="scalar"):
            R.SparseMatrixMul(a=a, b=by)
    with pytest.raises(tf.errors.InvalidArgumentError):
        R.SparseMatrixMul(a=b, b=each[:2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        R.SparseMatrixMul(a=a, b=tf.constant(2.0, tf.float64))


def _dense_softmax(m):
    there = dense(m) != 0
    weights = np.where(there, np.exp(dense(m)), 0)
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)


def test_softmax():
    for m in (
        csr(tf, PLACES, X, SIZES),
        csr(tf, BATCH, values(tf, 4), [3, 3, 4]),
        csr(tf, [], values(tf, 0), [0, 4]),
    ):
        y = R.SparseMatrixSoftmax(logits=m, type="float32")
        np.testing.assert_allclose(dense(y), _dense_softmax(m), rtol=1e-6)
    m = csr(tf, PLACES, X, SIZES)
    with pytest.raises(tf.errors.InvalidArgumentError):
        R.SparseMatrixSoftmax(logits=m, type="float64")


def test_softmax_gradient_where_places_differ():
    y = R.SparseMatrixSoftmax(logits=csr(tf, PLACES, X, SIZES), type="float32")
    dy = csr(tf, [[0, 0], [2, 2], [2, 1]], Y, SIZES)
    dx = R.SparseMatrixSoftmaxGrad(softmax=y, grad_softmax=dy, type="float32")
    p = dense(y).numpy()
    g = np.where(p != 0, dense(dy), 0)
    want = p * (g - (p * g).sum(-1, keepdims=True))
    np.testing.assert_allclose(dense(dx), want, rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        other = csr(tf, PLACES, X, [4, 4])
        R.SparseMatrixSoftmaxGrad(softmax=y, grad_softmax=other, type="float32")


def test_zeros():
    for sizes in ([2, 3], [2, 2, 3], [0, 0], [0, 2, 2]):
        m = R.SparseMatrixZeros(dense_shape=sizes, type="complex64")
        np.testing.assert_array_equal(dense(m, "complex64"), np.zeros(sizes))
    for sizes in ([2], [2, 2, 2, 2], [-1, 2], [2, -1, 2], [2**40, 2], [2**31, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            R.SparseMatrixZeros(dense_shape=sizes, type="float32")


def test_too_wide_to_transpose():
    m = csr(tf, [[1, 7]], X[:1], [2, 2**40])
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        R.SparseMatrixTranspose(input=m, type="float32")
    with pytest.raises(tf.errors.InvalidArgumentError):
        csr(tf, [[1, 2**35]], X[:1], [2, 2**40])


def test_sums_and_zeros_of_variants():
    a, b = csr(tf, PLACES, X, SIZES), csr(tf, OTHER, Y, SIZES)
    made = tf.raw_ops.AddN(inputs=[a, b, a])
    np.testing.assert_array_equal(dense(made), 2 * dense(a) + dense(b))
    np.testing.assert_array_equal(dense(tf.raw_ops.ZerosLike(x=a)), np.zeros(SIZES))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.AddN(inputs=[a, csr(tf, PLACES, X, [3, 5])])


# What TensorFlow wrote of the example; three of the bytes have no meaning.
_SERIALIZED = (
    b'\x08\x15\x12\x00"{z\n\x1btensorflow::CSRSparseMatrix\x12\x08\x01\xbc]\x91\x01'
    b"\x00\x00\x00\x1a\x0c\x08\t\x12\x04\x12\x02\x08\x02R\x02\x03\x04\x1a\x0c\x08\x03"
    b"\x12\x04\x12\x02\x08\x02:\x02\x00\x03\x1a\x0e\x08\x03\x12\x04\x12\x02\x08\x04:"
    b"\x04\x00\x01\x01\x03\x1a\r\x08\x03\x12\x04\x12\x02\x08\x03:\x03\x01\x00\x02\x1a"
    b"\x16\x08\x01\x12\x04\x12\x02\x08\x03*\x0c\x00\x00\x80?\x00\x00\x00@\x00\x00@@"
)


def test_protos():
    m = csr(tf, PLACES, X, SIZES)
    read = tf.io.parse_tensor(_SERIALIZED, tf.variant)
    np.testing.assert_array_equal(dense(read), dense(m))
    again = tf.io.parse_tensor(tf.io.serialize_tensor(m), tf.variant)
    np.testing.assert_array_equal(dense(again), dense(m))


def test_damaged_protos():
    """Whatever a byte turns into: an error, or a matrix that can be used."""
    for at in range(40, len(_SERIALIZED)):
        for byte in (0, 1, 3, 7, 0x7F, 0xFF):
            text = _SERIALIZED[:at] + bytes([byte]) + _SERIALIZED[at + 1 :]
            try:
                m = tf.io.parse_tensor(text, tf.variant)
                shape = R.CSRSparseMatrixToSparseTensor(
                    sparse_matrix=m, type="float32"
                ).dense_shape
                if np.prod(shape.numpy().astype(float)) < 1e6:
                    dense(m)
            except (tf.errors.OpError, ValueError, TypeError):
                pass


def _gradients(compute, *inputs):
    inputs = [tf.convert_to_tensor(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = tf.reduce_sum(compute(*inputs))
    return tape.gradient(y, inputs)


def _spread(places, x, sizes=SIZES):
    return tf.scatter_nd(places, x, sizes)


def _check_gradients(sparse, plain, *inputs):
    want = _gradients(plain, *inputs)
    traced = tf.function(lambda *x: _gradients(sparse, *x))
    for found in (_gradients(sparse, *inputs), traced(*inputs)):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_gradient_of_add():
    _check_gradients(
        lambda x, y, a, b: (
            W * dense(add(csr(tf, PLACES, x, SIZES), csr(tf, OTHER, y, SIZES), a, b))
        ),
        lambda x, y, a, b: W * (a * _spread(PLACES, x) + b * _spread(OTHER, y)),
        X,
        Y,
        np.float32(2),
        np.float32(-3),
    )


def test_gradient_of_scale():
    _check_gradients(
        lambda x, b: W * dense(R.SparseMatrixMul(a=csr(tf, PLACES, x, SIZES), b=b)),
        lambda x, b: W * b * _spread(PLACES, x),
        X,
        np.float32(2),
    )
    sizes = [3, 3, 4]
    x = values(tf, 4).numpy()
    _check_gradients(
        lambda x, b: W * dense(R.SparseMatrixMul(a=csr(tf, BATCH, x, sizes), b=b)),
        lambda x, b: W * b * _spread(BATCH, x, sizes),
        x,
        np.array([2.0, 3, 4], np.float32).reshape(3, 1, 1),
    )


def test_gradient_of_softmax():
    mask = _spread(PLACES, np.ones(3, np.float32))

    def plain(x):
        e = mask * tf.exp(_spread(PLACES, x))
        return W * tf.math.divide_no_nan(e, tf.reduce_sum(e, -1, keepdims=True))

    def sparse(x):
        m = csr(tf, PLACES, x, SIZES)
        return W * dense(R.SparseMatrixSoftmax(logits=m, type="float32"))

    _check_gradients(sparse, plain, X)


@pytest.mark.parametrize("flags", csr_cases._FLAGS)
def test_gradient_of_sparse_product(flags):
    """Also where the other matrix has no entry that would meet one's own."""
    left = flags["transpose_a"] or flags["adjoint_a"]
    right = flags["transpose_b"] or flags["adjoint_b"]
    places = OTHER if left != right else np.array([[0, 0], [1, 0], [3, 1]])
    sizes = SIZES if left != right else [4, 3]
    weights = np.arange(1.0, 17).reshape(4, 4) * (1 - 2j)
    weights = weights.astype("complex64")[: 4 if left else 3, : 4 if left else 3]

    def sparse(x, y):
        c = R.SparseMatrixSparseMatMul(
            a=csr(tf, PLACES, x, SIZES),
            b=csr(tf, places, y, sizes),
            type="complex64",
            **flags,
        )
        return tf.math.real(weights * dense(c, "complex64"))

    def plain(x, y):
        y = tf.matmul(_spread(PLACES, x), _spread(places, y, sizes), **flags)
        return tf.math.real(weights * y)

    _check_gradients(sparse, plain, X * (1 + 1j), Y * (2 - 1j))


def test_gradient_of_two_uses_and_columns_out_of_order():
    places = np.array([[0, 2], [0, 1], [2, 3]])

    def sparse(x):
        m = csr(tf, places, x, SIZES)
        turned = R.SparseMatrixTranspose(input=m, type="float32")
        square = R.SparseMatrixSparseMatMul(a=m, b=turned, type="float32")
        return tf.reduce_sum(W * dense(m)) + tf.reduce_sum(W[:, :3] * dense(square))

    def plain(x):
        m = _spread(places, x)
        square = tf.matmul(m, m, transpose_b=True)
        return tf.reduce_sum(W * m) + tf.reduce_sum(W[:, :3] * square)

    _check_gradients(sparse, plain, X)


def test_shapes_of_traces():
    def shapes(make, sizes):
        @tf.function
        def trace():
            n = len(sizes)
            m = csr(tf, [[0] * n], [4.0], sizes)
            return make(m)

        return [t.shape.as_list() for t in trace.get_concrete_function().outputs]

    assert shapes(dense, SIZES) == [SIZES]
    assert shapes(lambda m: R.SparseMatrixNNZ(sparse_matrix=m), [2, 3, 4]) == [[2]]
    assert shapes(
        lambda m: R.SparseMatrixMatMul(a=m, b=tf.ones([4, 2]), transpose_output=True),
        SIZES,
    ) == [[2, 3]]
    assert shapes(
        lambda m: dense(
            R.SparseMatrixSparseMatMul(a=m, b=m, type="float32", transpose_a=True)
        ),
        SIZES,
    ) == [[4, 4]]
    assert shapes(
        lambda m: dense(R.SparseMatrixTranspose(input=m, type="float32")), [2, 3, 4]
    ) == [[2, 4, 3]]
    assert shapes(
        lambda m: list(
            R.CSRSparseMatrixComponents(csr_sparse_matrix=m, index=0, type="float32")
        ),
        SIZES,
    ) == [[4], [None], [None]]
    assert shapes(lambda m: R.SparseMatrixOrderingAMD(input=m), [2, 3, 3]) == [[2, 3]]
    with pytest.raises(ValueError, match="must be equal"):
        shapes(lambda m: R.SparseMatrixMatMul(a=m, b=tf.ones([5, 2])), SIZES)
