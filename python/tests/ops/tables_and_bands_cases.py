"""Cases of test_tables_and_bands.py (recorded.py writes their values)."""

import numpy as np

_RNG = np.random.RandomState(2)
BANDS = _RNG.randn(2, 3, 5)
RIGHT = _RNG.randn(2, 5, 3)


def _words(tf, keys=("a", "b", "c")):
    values = tf.range(len(keys), dtype=tf.int64)
    return tf.lookup.KeyValueTensorInitializer(tf.constant(keys), values)


def case_vocabulary(tf):
    table = tf.lookup.StaticVocabularyTable(_words(tf), 3)
    x = tf.constant(["a", "x", "y", "c", "zz", "", "é"])
    ragged = table.lookup(tf.ragged.constant([["a"], ["q", "b"]]))
    sparse = table.lookup(tf.SparseTensor([[0, 1]], ["w"], [1, 2]))
    return [
        table.lookup(x),
        table[tf.reshape(x[:6], [2, 3])],
        table.size(),
        *(ragged.values, ragged.row_splits, sparse.values),
    ]


def case_vocabulary_of_integers(tf):
    keys = tf.constant([5, 6], tf.int64)
    table = tf.lookup.StaticVocabularyTable(_words(tf, keys), 4)
    small = tf.lookup.StaticVocabularyTable(_words(tf, keys), 4, tf.int32)
    return [
        table.lookup(tf.constant([5, 7, 8, -1], tf.int64)),
        small.lookup(tf.constant([6, 7, 8, -1], tf.int32)),
    ]


def case_hashes_alone(tf):
    table = tf.lookup.StaticVocabularyTable(None, 5, tf.string)
    return [table.lookup(tf.constant(["a", "b", "cd"])), table.size()]


def case_wrong_keys(tf):
    return tf.lookup.StaticVocabularyTable(_words(tf), 1).lookup(tf.constant([1]))


def case_tridiagonal(tf):
    a, b = tf.constant(BANDS), tf.constant(RIGHT)
    upper, middle, lower = tf.unstack(a, axis=-2)
    full = tf.linalg.diag(a, k=(-1, 1), align="LEFT_RIGHT")
    solve, multiply = tf.linalg.tridiagonal_solve, tf.linalg.tridiagonal_matmul
    short = (upper[..., :-1], middle, lower[..., 1:])
    return [
        multiply(a, b),
        multiply((upper, middle, lower), b, "sequence"),
        multiply(full, b, diagonals_format="matrix"),
        solve(a, b),
        solve(a, b[..., 0]),
        solve((upper, middle, lower), b, "sequence"),
        solve(short, b, "sequence"),
        solve(full, b, "matrix", partial_pivoting=False),
        solve(a, tf.linalg.matrix_transpose(b), transpose_rhs=True),
        solve(
            tf.complex(a, a[::-1]),
            tf.complex(b, -b),
            conjugate_rhs=True,
        ),
    ]


def case_unknown_form(tf):
    return tf.linalg.tridiagonal_solve(tf.constant(BANDS), tf.constant(RIGHT), "x")


def case_banded(tf):
    a, b = tf.constant(BANDS), tf.constant(RIGHT)
    solve = tf.linalg.banded_triangular_solve
    return [solve(a, b), solve(a, b, lower=False), solve(a, b, adjoint=True)]


def case_eigenvalues(tf):
    alpha, beta = tf.constant(BANDS[0, 0]), tf.constant(BANDS[0, 1, :4])
    of = tf.linalg.eigh_tridiagonal
    _, vectors = of(alpha, beta, eigvals_only=False)
    return [
        of(alpha, beta),
        of(alpha, beta, select="i", select_range=(1, 3)),
        of(alpha, beta, select="v", select_range=(-1.0, 1.0)),
        tf.abs(vectors),
    ]


def case_scatter_nd(tf):
    v1 = tf.compat.v1
    x = tf.Variable(tf.zeros([4, 2]))
    v1.scatter_nd_update(x, [[1], [2]], [[1.0, 2], [3, 4]])
    v1.scatter_nd_add(x, [[1, 0]], [5.0])
    v1.scatter_nd_sub(x, [[2, 1]], [0.5])
    y = tf.Variable(tf.zeros([2, 3]))
    v1.batch_scatter_update(y, tf.constant([[0], [1]]), tf.constant([[1.0], [2.0]]))
    return [x.read_value(), y.read_value()]


def case_scatter_nd_in_graphs(tf):
    v1, found = tf.compat.v1, []
    with tf.Graph().as_default(), v1.Session() as session:
        for resource in (False, True):
            zeros = v1.zeros_initializer()
            x = v1.get_variable(
                f"x{resource}", [4, 2], use_resource=resource, initializer=zeros
            )
            b = v1.get_variable(
                f"b{resource}", [2, 3], use_resource=resource, initializer=zeros
            )
            session.run(v1.global_variables_initializer())
            for op in (
                v1.scatter_nd_update(x, [[1], [3]], [[1.0, 2], [4, 5]]),
                v1.scatter_nd_add(x, [[0]], [[1.0, 2]]),
                v1.scatter_nd_sub(x, [[1, 1]], [7.0]),
                v1.batch_scatter_update(b, [[0], [2]], [[1.0], [2.0]]),
            ):
                found.append(session.run(op))
        count = v1.get_variable(
            "n", [], tf.int64, initializer=v1.zeros_initializer(), use_resource=True
        )
        session.run(count.initializer)
        up = v1.count_up_to(count, 2)
        found += [session.run(up), session.run(up)]
        table = v1.lookup.StaticVocabularyTable(_words(tf), 2)
        ids = table.lookup(tf.constant(["b", "zz"]))
        session.run(v1.tables_initializer())
        return [*found, session.run(ids)]
