"""Cases of test_csr.py (recorded.py writes their values)."""

import itertools

import numpy as np

PLACES = np.array([[0, 1], [2, 0], [2, 2]], np.int64)
OTHER = np.array([[0, 1], [1, 0], [2, 2], [3, 1]], np.int64)
BATCH = np.array([[0, 0, 1], [0, 2, 0], [1, 1, 1], [1, 1, 2]], np.int64)
VALUES = [1 + 2j, 2 - 1j, 3j, 0.5 - 0.25j]
SPD = [[4.0, 1, 0, 2], [1, 5, 0, 0], [0, 0, 3, 1], [2, 0, 1, 6]]
HERMITIAN = [[4, 1 + 1j, 0], [1 - 1j, 5, 2j], [0, -2j, 6]]
KINDS = ("float32", "float64", "complex64", "complex128")


def values(tf, n, kind="float32"):
    x = np.array(VALUES[:n])
    return tf.constant(x if kind.startswith("c") else x.real + x.imag, kind)


def csr(tf, places, x, sizes):
    places = np.array(places, np.int64).reshape(-1, len(sizes))
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=places, values=x, dense_shape=np.array(sizes, np.int64)
    )


def of_dense(tf, dense, kind="float32"):
    dense = np.array(dense)
    places = np.argwhere(dense != 0)
    return csr(tf, places, tf.constant(dense[tuple(places.T)], kind), dense.shape)


def parts(tf, matrix, kind="float32", batches=1):
    return [
        tf.raw_ops.CSRSparseMatrixComponents(
            csr_sparse_matrix=matrix, index=i, type=kind
        )
        for i in range(batches)
    ]


def _example(tf, kind="float32"):
    return csr(tf, PLACES, values(tf, 3, kind), [3, 4])


def _batch(tf, kind="float32"):
    return csr(tf, BATCH, values(tf, 4, kind), [3, 3, 4])


def _dense(tf, shape, kind="float32"):
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    return tf.constant(x * (1 + 0.5j) if kind.startswith("c") else x, kind)


def case_components(tf):
    return [parts(tf, _example(tf, k), k) for k in KINDS] + [
        parts(tf, _batch(tf), batches=3)
    ]


def case_dense(tf):
    to_dense = tf.raw_ops.CSRSparseMatrixToDense
    return [
        to_dense(sparse_input=make(tf, k), type=k)
        for k in KINDS
        for make in (_example, _batch)
    ]


def case_sparse_tensor(tf):
    back = tf.raw_ops.CSRSparseMatrixToSparseTensor
    return [
        list(back(sparse_matrix=make(tf), type="float32"))
        for make in (_example, _batch)
    ]


def case_columns_in_any_order(tf):
    m = csr(tf, [[0, 2], [0, 1], [2, 3], [2, 3]], values(tf, 4), [3, 4])
    turned = tf.raw_ops.SparseMatrixTranspose(input=m, type="float32")
    return [
        parts(tf, m),
        parts(tf, turned),
        tf.raw_ops.SparseMatrixNNZ(sparse_matrix=m),
    ]


def case_counts(tf):
    count = tf.raw_ops.SparseMatrixNNZ
    return [count(sparse_matrix=make(tf)) for make in (_example, _batch)]


def case_empty(tf):
    to_dense = tf.raw_ops.CSRSparseMatrixToDense
    return [
        [parts(tf, m), to_dense(sparse_input=m, type="float32")]
        for m in (csr(tf, [], values(tf, 0), s) for s in ([0, 4], [3, 0], [2, 3]))
    ]


def case_wide(tf):
    return parts(tf, csr(tf, [], values(tf, 0), [2, 2**40]))


def case_from_dense(tf):
    make = tf.raw_ops.DenseToCSRSparseMatrix
    one = make(dense_input=_dense(tf, [3, 4]), indices=PLACES)
    many = make(dense_input=_dense(tf, [2, 3, 4]), indices=BATCH)
    return parts(tf, one), parts(tf, many, batches=2)


_FLAGS = [
    dict(zip(("transpose_a", "adjoint_a", "transpose_b", "adjoint_b"), f, strict=True))
    for f in itertools.product((False, True), repeat=4)
    if not (f[0] and f[1]) and not (f[2] and f[3])
]


def _operands(tf, kind, flags, batched):
    turned = flags["transpose_a"] or flags["adjoint_a"]
    shape = [3 if turned else 4, 2]
    if flags["transpose_b"] or flags["adjoint_b"]:
        shape.reverse()
    if batched:
        shape.insert(0, 3)
    return _dense(tf, shape, kind)


def case_matmul(tf):
    outs = [
        {"transpose_output": t, "conjugate_output": c}
        for t, c in itertools.product((False, True), repeat=2)
    ]
    return [
        tf.raw_ops.SparseMatrixMatMul(
            a=make(tf, k), b=_operands(tf, k, f, make is _batch), **f, **out
        )
        for k in KINDS
        for f in _FLAGS
        for out in outs
        for make in (_example, _batch)
    ]


def case_matmul_gradients(tf):
    found = []
    for kind, flags, turn, conjugate, batched in itertools.product(
        ("float32", "complex64"), _FLAGS, (False, True), (False, True), (False, True)
    ):
        x = values(tf, 4 if batched else 3, kind)
        b = _operands(tf, kind, flags, batched)
        with tf.GradientTape() as tape:
            tape.watch([x, b])
            places, sizes = (BATCH, [3, 3, 4]) if batched else (PLACES, [3, 4])
            y = tf.raw_ops.SparseMatrixMatMul(
                a=csr(tf, places, x, sizes),
                b=b,
                **flags,
                transpose_output=turn,
                conjugate_output=conjugate,
            )
            weights = _dense(tf, y.shape.as_list(), kind)
            loss = tf.reduce_sum(y * weights)
            loss = tf.math.real(loss) if kind == "complex64" else loss
        found.append(tape.gradient(loss, [x, b]))
    return found


def case_sparse_matmul(tf):
    found = []
    for kind, flags in itertools.product(KINDS, _FLAGS):
        left = flags["transpose_a"] or flags["adjoint_a"]
        right = flags["transpose_b"] or flags["adjoint_b"]
        other = OTHER[:, ::-1] if left != right else OTHER
        order = np.lexsort(other.T[::-1])
        shape = [3, 4] if left != right else [4, 3]
        b = csr(tf, other[order], values(tf, 4, kind), shape)
        c = tf.raw_ops.SparseMatrixSparseMatMul(
            a=_example(tf, kind), b=b, type=kind, **flags
        )
        found.append(parts(tf, c, kind))
    return found


def case_sparse_matmul_cancels(tf):
    a = csr(tf, [[0, 0], [0, 1]], tf.constant([1.0, 1.0]), [1, 2])
    b = csr(tf, [[0, 0], [1, 0]], tf.constant([1.0, -1.0]), [2, 1])
    return parts(tf, tf.raw_ops.SparseMatrixSparseMatMul(a=a, b=b, type="float32"))


def case_sparse_matmul_batch(tf):
    b = csr(tf, [[0, 1, 0], [1, 1, 0], [1, 2, 2]], values(tf, 3), [3, 4, 3])
    c = tf.raw_ops.SparseMatrixSparseMatMul(a=_batch(tf), b=b, type="float32")
    return parts(tf, c, batches=3)


def case_transpose(tf):
    turn = tf.raw_ops.SparseMatrixTranspose
    return [
        parts(tf, turn(input=make(tf, k), type=k, conjugate=c), k)
        for k in KINDS
        for c in (False, True)
        for make in (_example, _batch)
    ]


def case_gradients(tf):
    x, dense = values(tf, 3, "complex64"), _dense(tf, [3, 4], "complex64")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, dense])
        m = csr(tf, PLACES, x, [3, 4])
        turned = tf.raw_ops.SparseMatrixTranspose(
            input=m, type="complex64", conjugate=True
        )
        y = tf.raw_ops.CSRSparseMatrixToDense(sparse_input=turned, type="complex64")
        y = tf.math.real(tf.reduce_sum(y * tf.transpose(dense)))
        named = tf.raw_ops.DenseToCSRSparseMatrix(dense_input=dense, indices=PLACES)
        z = tf.raw_ops.CSRSparseMatrixToSparseTensor(
            sparse_matrix=named, type="complex64"
        )[1]
        z = tf.math.real(tf.reduce_sum(z * x))
    return tape.gradient(y, x), tape.gradient(z, dense)


def _random_symmetric(n, seed):
    random = np.random.RandomState(seed)
    a = random.rand(n, n) < 4 / n
    return (a | a.T) + n * np.eye(n)


def _arrow(n):
    a = 10 * np.eye(n)
    a[0, 1:] = a[1:, 0] = 1
    return a


def case_ordering(tf):
    amd = tf.raw_ops.SparseMatrixOrderingAMD
    matrices = [_random_symmetric(n, n) for n in (1, 5, 8, 12, 20, 60, 200)]
    matrices += [SPD, np.tril(SPD), [SPD, np.eye(4)], _arrow(6), np.eye(4)]
    matrices += [3 * np.eye(9) + np.eye(9, k=1) + np.eye(9, k=-1)]
    return [amd(input=of_dense(tf, m)) for m in matrices]


def case_cholesky(tf):
    factor = tf.raw_ops.SparseMatrixSparseCholesky
    found = []
    for m, order in [
        (SPD, [0, 1, 2, 3]),
        (SPD, [2, 0, 3, 1]),
        (np.tril(SPD), [2, 0, 3, 1]),
        (_arrow(6), range(6)),
        (_arrow(6), range(5, -1, -1)),
        ([[1.0, 1, 1], [1, 3, 1], [1, 1, 3]], [0, 1, 2]),
        (_random_symmetric(30, 1), np.random.RandomState(0).permutation(30)),
    ]:
        order = np.array(order, np.int32)
        for kind in KINDS:
            y = factor(input=of_dense(tf, m, kind), permutation=order, type=kind)
            found.append(parts(tf, y, kind))
    both = np.array([[2, 0, 3, 1], [0, 1, 2, 3]], np.int32)
    y = factor(input=of_dense(tf, [SPD, np.eye(4)]), permutation=both, type="float32")
    found.append(parts(tf, y, batches=2))
    for order in ([0, 1, 2], [2, 0, 1]):
        order = np.array(order, np.int32)
        m = of_dense(tf, HERMITIAN, "complex128")
        y = factor(input=m, permutation=order, type="complex128")
        found.append(parts(tf, y, "complex128"))
    return found


# Calls that are refused: what is kept is the class of the error.
_REFUSED = {
    "row_outside": lambda tf: csr(tf, [[3, 1]], values(tf, 1), [3, 4]),
    "column_outside": lambda tf: csr(tf, [[0, 4]], values(tf, 1), [3, 4]),
    "column_negative": lambda tf: csr(tf, [[0, -1]], values(tf, 1), [3, 4]),
    "matrix_outside": lambda tf: csr(tf, [[3, 0, 0]], values(tf, 1), [3, 3, 4]),
    "rank_1": lambda tf: csr(tf, [[0]], values(tf, 1), [3]),
    "rank_4": lambda tf: csr(tf, [[0] * 4], values(tf, 1), [3, 2, 2, 2]),
    "values_missing": lambda tf: csr(tf, [[0, 0]], values(tf, 2), [3, 4]),
    "too_many_rows": lambda tf: csr(tf, [], values(tf, 0), [2**32, 2]),
    "no_such_matrix": lambda tf: tf.raw_ops.CSRSparseMatrixComponents(
        csr_sparse_matrix=_batch(tf), index=3, type="float32"
    ),
    "components_of_another_type": lambda tf: parts(tf, _example(tf), "float64"),
    "dense_of_another_type": lambda tf: tf.raw_ops.CSRSparseMatrixToDense(
        sparse_input=_example(tf), type="float64"
    ),
    "entries_of_another_type": lambda tf: tf.raw_ops.CSRSparseMatrixToSparseTensor(
        sparse_matrix=_example(tf), type="float64"
    ),
    "a_list": lambda tf: tf.raw_ops.SparseMatrixNNZ(
        sparse_matrix=tf.raw_ops.TensorListReserve(
            element_shape=[2], num_elements=2, element_dtype="float32"
        )
    ),
    "a_vector": lambda tf: tf.raw_ops.SparseMatrixNNZ(
        sparse_matrix=tf.stack([_example(tf)])
    ),
    "dense_place_outside": lambda tf: tf.raw_ops.DenseToCSRSparseMatrix(
        dense_input=_dense(tf, [2, 2]), indices=[[2, 0]]
    ),
    "dense_vector": lambda tf: tf.raw_ops.DenseToCSRSparseMatrix(
        dense_input=_dense(tf, [2]), indices=[[0]]
    ),
    "dense_places_of_rank_3": lambda tf: tf.raw_ops.DenseToCSRSparseMatrix(
        dense_input=_dense(tf, [2, 2]), indices=[[0, 0, 0]]
    ),
    "matmul_inner": lambda tf: tf.raw_ops.SparseMatrixMatMul(
        a=_example(tf), b=_dense(tf, [3, 2])
    ),
    "matmul_type": lambda tf: tf.raw_ops.SparseMatrixMatMul(
        a=_example(tf), b=_dense(tf, [4, 2], "float64")
    ),
    "matmul_integers": lambda tf: tf.raw_ops.SparseMatrixMatMul(
        a=_example(tf), b=_dense(tf, [4, 2], "int32")
    ),
    "matmul_ranks": lambda tf: tf.raw_ops.SparseMatrixMatMul(
        a=_batch(tf), b=_dense(tf, [4, 2])
    ),
    "matmul_batches": lambda tf: tf.raw_ops.SparseMatrixMatMul(
        a=_batch(tf), b=_dense(tf, [1, 4, 2])
    ),
    "matmul_both": lambda tf: tf.raw_ops.SparseMatrixMatMul(
        a=_example(tf), b=_dense(tf, [3, 2]), transpose_a=True, adjoint_a=True
    ),
    "sparse_matmul_inner": lambda tf: tf.raw_ops.SparseMatrixSparseMatMul(
        a=_example(tf), b=_example(tf), type="float32"
    ),
    "sparse_matmul_type": lambda tf: tf.raw_ops.SparseMatrixSparseMatMul(
        a=_example(tf), b=_example(tf, "float64"), type="float32", transpose_b=True
    ),
    "transpose_type": lambda tf: tf.raw_ops.SparseMatrixTranspose(
        input=_example(tf), type="float64"
    ),
    "ordering_of_a_rectangle": lambda tf: tf.raw_ops.SparseMatrixOrderingAMD(
        input=_example(tf)
    ),
}


def _refused_cholesky(m, order):
    return lambda tf: tf.raw_ops.SparseMatrixSparseCholesky(
        input=of_dense(tf, m), permutation=np.array(order, np.int32), type="float32"
    )


_REFUSED |= {
    "cholesky_indefinite": _refused_cholesky([[1.0, 2], [2, 1]], [0, 1]),
    "cholesky_negative": _refused_cholesky([[-1.0, 0], [0, 1]], [0, 1]),
    "cholesky_of_zeros": _refused_cholesky(np.zeros([2, 2]), [0, 1]),
    "cholesky_of_a_rectangle": _refused_cholesky(np.ones([2, 3]), [0, 1]),
    "cholesky_order_short": _refused_cholesky(SPD, [0, 1, 2]),
    "cholesky_order_twice": _refused_cholesky(SPD, [0, 1, 2, 2]),
    "cholesky_order_rank": _refused_cholesky(SPD, [[0, 1, 2, 3]]),
    "cholesky_order_batch": _refused_cholesky([SPD, SPD], [[0, 1, 2, 3]]),
}
for _name, _call in _REFUSED.items():
    globals()["case_refused_" + _name] = _call
