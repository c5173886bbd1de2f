"""Subclasses of LinearOperator, and arguments that do not fit."""

import headrace as tf
import numpy as np
import pytest

L = tf.linalg
F = np.float32([[4, 1], [1, 3]])


class Twice(L.LinearOperator):
    """2 I of 3 rows, that says no more than it must."""

    def __init__(self, **kwargs):
        super().__init__(tf.float32, **kwargs)

    def _shape(self):
        return tf.TensorShape([3, 3])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return 2 * (tf.linalg.adjoint(x) if adjoint_arg else x)


def test_a_class_of_ones_own():
    o = Twice(is_self_adjoint=True, is_positive_definite=True, parameters={"a": 1})
    eye = np.eye(3, dtype="float32")
    np.testing.assert_array_equal(o.to_dense(), 2 * eye)
    np.testing.assert_array_equal(o.shape_tensor(), [3, 3])
    np.testing.assert_allclose(o.determinant(), 8, rtol=1e-6)
    np.testing.assert_allclose(o.log_abs_determinant(), np.log(8), rtol=1e-6)
    np.testing.assert_allclose(o.solve(eye), eye / 2, rtol=1e-6)
    np.testing.assert_allclose(o.solvevec([2.0, 4.0, 6.0]), [1, 2, 3], rtol=1e-6)
    np.testing.assert_allclose(o.inverse().to_dense(), eye / 2, rtol=1e-6)
    np.testing.assert_allclose(o.cholesky().to_dense(), np.sqrt(2) * eye, rtol=1e-6)
    np.testing.assert_allclose(o.eigvals(), [2, 2, 2])
    np.testing.assert_allclose(o.add_to_tensor(eye), 3 * eye)
    np.testing.assert_allclose((o @ o).to_dense(), 4 * eye)
    assert o.trace() == 6 and o.cond() == 1
    assert o.adjoint() is o
    assert o.name == "Twice" and o.parameters == {"a": 1}
    assert o.is_non_singular and o.is_square
    o.assert_non_singular(), o.assert_self_adjoint(), o.assert_positive_definite()
    both = L.LinearOperatorBlockDiag([o, L.LinearOperatorDiag([1.0])])
    np.testing.assert_allclose(both.diag_part(), [2, 2, 2, 1])
    # Without a spec it is one of the objects that functions are traced for.
    seen = []

    @tf.function
    def f(o):
        seen.append(o)
        return o.to_dense()

    np.testing.assert_array_equal(f(o), 2 * eye)
    f(o), f(Twice())
    assert len(seen) == 2


def test_a_subclass_of_another_class():
    class Positive(L.LinearOperatorDiag):
        def __init__(self, diag, name="Positive"):
            super().__init__(diag, is_positive_definite=True, name=name)

    o = Positive([1.0, 4.0])
    assert o.name == "Positive" and o.is_positive_definite
    assert isinstance(o @ L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorDiag)
    np.testing.assert_array_equal(o.cholesky().diag, [1, 2])


def test_an_abstract_class():
    with pytest.raises(TypeError, match="Can't instantiate abstract class LinearOp"):
        L.LinearOperator(tf.float32)


@pytest.mark.parametrize(
    "given,message",
    [
        ({"is_non_singular": False, "is_positive_definite": True}, "non-singular"),
        (
            {"is_square": False, "is_non_singular": True},
            "non-singular matrix is always",
        ),
        (
            {"is_square": False, "is_self_adjoint": True},
            "self-adjoint matrix is always",
        ),
        ({"graph_parents": [1]}, "Graph parent item 0 is not a Tensor; 1."),
    ],
)
def test_contradictions(given, message):
    with pytest.raises(ValueError, match=message):
        Twice(**given)


def test_a_hint_that_the_shape_contradicts():
    o = Twice(is_square=False)
    with pytest.raises(ValueError, match="the operator was square"):
        o.is_square  # noqa: B018


def test_hints_of_blocks_are_kept():
    """TensorFlow forgets what the constructor of block triangles is told."""
    full = L.LinearOperatorFullMatrix(F)
    o = L.LinearOperatorBlockLowerTriangular([[full]], is_non_singular=True)
    assert o.is_non_singular is True


def test_factors_that_are_not_square():
    """TensorFlow has no numbers of these, though the whole is square."""
    wide = L.LinearOperatorFullMatrix([[1.0, 2.0]])
    tall = L.LinearOperatorFullMatrix([[3.0], [4.0]])
    for o in (
        L.LinearOperatorKronecker([wide, tall]),
        L.LinearOperatorComposition([wide, tall]),
        L.LinearOperatorComposition([tall, wide]),
    ):
        dense = o.to_dense().numpy()
        np.testing.assert_allclose(o.determinant(), np.linalg.det(dense), atol=1e-5)
        np.testing.assert_allclose(o.trace(), np.trace(dense))
        np.testing.assert_allclose(o.diag_part(), np.diag(dense))
    o = L.LinearOperatorComposition([wide, tall])
    np.testing.assert_allclose(o.solve([[22.0]]), [[2.0]])
    blocks = L.LinearOperatorBlockDiag([wide, tall], is_square=None)
    assert blocks.determinant() == 0
    with pytest.raises(NotImplementedError, match="whose blocks are not square"):
        blocks.solve([tf.ones([1, 1]), tf.ones([2, 1])])


def test_spectra_of_real_matrices():
    o = L.LinearOperatorCirculant(np.complex64([6, 4 + 1j, 4 - 1j]), tf.float32)
    assert o.assert_hermitian_spectrum() is None
    other = L.LinearOperatorCirculant(np.complex64([1 + 1j, 2, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not Hermitian"):
        other.assert_hermitian_spectrum()


def test_lists_of_blocks_that_could_be_arrays():
    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec(None)])
    def product(a, b):
        full = L.LinearOperatorFullMatrix
        return L.LinearOperatorBlockDiag([full(a), full(b)]).matmul(
            np.ones((2, 2, 2), "float32").tolist()
        )

    with pytest.raises(ValueError, match="structure is ambiguous"):
        product.get_concrete_function()
    o = L.LinearOperatorBlockDiag([L.LinearOperatorIdentity(n) for n in (4, 3)])
    with pytest.raises(ValueError, match="dimension does not match"):
        o.matmul(np.zeros((2, 6, 1), "float32").tolist())
    whole = o.matmul(np.ones((7, 1), "float32").tolist())
    assert whole.shape == (7, 1)


@pytest.mark.parametrize(
    "make,error,message",
    [
        (lambda: L.LinearOperatorFullMatrix(), TypeError, "matrix"),
        (lambda: L.LinearOperatorFullMatrix(F, what=1), TypeError, "what"),
        (lambda: L.LinearOperatorDiag(None), ValueError, "None"),
        (lambda: L.LinearOperatorKronecker([F]), TypeError, "LinearOperators"),
        (lambda: L.LinearOperatorComposition([None]), TypeError, "LinearOperators"),
        (lambda: L.LinearOperatorBlockDiag(3), TypeError, "iterable"),
        (
            lambda: L.LinearOperatorBlockLowerTriangular([[]]),
            ValueError,
            "must contain",
        ),
        (lambda: L.LinearOperatorLowRankUpdate(F, F), TypeError, "base_operator"),
        (lambda: L.LinearOperatorTridiag([1.0]), ValueError, "at least 2"),
        (lambda: L.LinearOperatorTridiag([F], "sequence"), ValueError, "list of three"),
        (lambda: L.LinearOperatorIdentity(tf.Variable(2)), TypeError, "reference type"),
        (
            lambda: L.LinearOperatorFullMatrix(F) @ [1.0, 2.0],
            IndexError,
            "2 dimensions",
        ),
        (lambda: L.LinearOperatorFullMatrix(F).matvec(1.0), IndexError, "1 dim"),
        (
            lambda: L.LinearOperatorFullMatrix(F)[0],
            tf.errors.InvalidArgumentError,
            "range",
        ),
        (
            lambda: L.LinearOperatorComposition(
                [L.LinearOperatorIdentity(2), L.LinearOperatorIdentity(3)]
            ),
            ValueError,
            "Dimensions 2 and 3 are not compatible",
        ),
        (lambda: L.LinearOperatorIdentity(2, dtype="what"), TypeError, "what"),
        (lambda: L.LinearOperatorPermutation([1, 0], dtype="what"), TypeError, "what"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_sizes_asserted_when_they_are_known():
    unknown = [tf.TensorSpec(None, tf.int32), tf.TensorSpec(None, tf.float32)]

    @tf.function(input_signature=unknown)
    def product(rows, x):
        o = L.LinearOperatorIdentity(rows, assert_proper_shapes=True)
        return o.matmul(x)

    np.testing.assert_array_equal(product(2, F), F)
    for rows, message in (
        (3, "Dimensions are not compatible"),
        (-2, "must be non-negative"),
        ([2], "must be a 0-D Tensor"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            product(rows, F)


def test_empty_matrices():
    for o in (
        L.LinearOperatorFullMatrix(np.zeros((2, 0, 0), "float32")),
        L.LinearOperatorDiag(np.zeros((2, 0), "float32")),
        L.LinearOperatorIdentity(0, batch_shape=[2]),
        L.LinearOperatorToeplitz(*[np.zeros((2, 0), "float32")] * 2),
        L.LinearOperatorKronecker(
            [L.LinearOperatorIdentity(0, batch_shape=[2]), L.LinearOperatorIdentity(3)]
        ),
    ):
        x = np.zeros((2, 0, 3), "float32")
        assert o.matmul(x).shape == o.solve(x).shape == (2, 0, 3)
        np.testing.assert_array_equal(o.determinant(), [1, 1])
        np.testing.assert_array_equal(o.trace(), [0, 0])
