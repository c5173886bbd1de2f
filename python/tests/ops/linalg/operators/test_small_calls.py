"""What calls of operators cost where matrices are small: calls of Python's functions."""

import cProfile
import os
import pstats

import numpy as np
import pytest

import headrace as tf

LINALG = tf.linalg
PACKAGE = os.path.dirname(tf.__file__)


def _square(n=4):
    return tf.constant(np.eye(n, dtype="float32") * 2.0 + 0.25)


def _operators():
    full = LINALG.LinearOperatorFullMatrix(_square(), is_non_singular=True)
    diagonal = LINALG.LinearOperatorDiag([1.0, 2.0, 3.0, 4.0])
    return {
        "full": full,
        "lower": LINALG.LinearOperatorLowerTriangular(_square()),
        "diagonal": diagonal,
        "scaled": LINALG.LinearOperatorScaledIdentity(4, 2.0),
        "identity": LINALG.LinearOperatorIdentity(4),
        "adjoint": LINALG.LinearOperatorAdjoint(full),
        "inverse": LINALG.LinearOperatorInversion(full),
        "product": LINALG.LinearOperatorComposition([full, diagonal]),
    }


def _python_calls(call):
    """How many functions of the package a second call runs: the first may find shapes."""
    call()
    profile = cProfile.Profile()
    profile.enable()
    call()
    profile.disable()
    rows = pstats.Stats(profile).stats.items()
    return sum(row[1] for (file, _, _), row in rows if file.startswith(PACKAGE))


# Of matmul and of solve. Before sizes were kept, and scopes were for graphs alone, these
# were 22 to 383 functions.
LIMITS = {
    "full": (6, 5),
    "lower": (5, 5),
    "diagonal": (5, 5),
    "scaled": (7, 7),
    "identity": (6, 6),
    "adjoint": (8, 7),
    "inverse": (7, 8),
    "product": (14, 17),
}


@pytest.mark.parametrize("name", LIMITS)
def test_calls_run_few_functions(name):
    operator, x = _operators()[name], tf.ones([4, 3])
    most = LIMITS[name]
    assert _python_calls(lambda: operator.matmul(x)) <= most[0]
    assert _python_calls(lambda: operator.solve(x)) <= most[1]


@pytest.mark.parametrize("name", LIMITS)
def test_arguments_are_checked_after_calls_that_fitted(name):
    operator, x = _operators()[name], tf.ones([4, 3])
    operator.matmul(x), operator.solve(x)
    for method in (operator.matmul, operator.solve):
        with pytest.raises(TypeError, match="Expected argument to have dtype"):
            method(tf.cast(x, tf.float64))
        with pytest.raises(ValueError, match="are not compatible"):
            method(x[:3])
        np.testing.assert_allclose(method(x.numpy()), method(x), rtol=1e-6)
    for method in (operator.matvec, operator.solvevec):
        method(x[:, 0])
        with pytest.raises(TypeError, match="Expected argument to have dtype"):
            method(tf.cast(x[:, 0], tf.float64))
        with pytest.raises(ValueError, match="are not compatible"):
            method(x[:3, 0])


def test_a_hint_that_contradicts_the_shape_is_told_each_time():
    operator = LINALG.LinearOperatorFullMatrix(_square(), is_square=False)
    operator.matmul(tf.ones([4, 1]))
    for _ in range(2):
        with pytest.raises(ValueError, match="User set is_square hint to False"):
            operator.determinant()
        with pytest.raises(ValueError, match="User set is_square hint to False"):
            operator.solve(tf.ones([4, 1]))


def test_sizes_of_variables_that_may_change_are_found_anew():
    variable = tf.Variable(tf.eye(2), shape=[None, None])
    operator = LINALG.LinearOperatorFullMatrix(variable)
    np.testing.assert_array_equal(operator.shape_tensor(), [2, 2])
    np.testing.assert_array_equal(operator.matmul(tf.ones([2, 1])), [[1.0], [1.0]])
    variable.assign(tf.eye(3))
    np.testing.assert_array_equal(operator.shape_tensor(), [3, 3])
    np.testing.assert_array_equal(operator.matmul(tf.ones([3, 1])), np.ones([3, 1]))


def test_a_class_of_ones_own_is_asked_for_its_shape_each_time():
    class Growing(tf.linalg.LinearOperator):
        def __init__(self):
            self.count = 2
            super().__init__(tf.float32)

        def _shape(self):
            return tf.TensorShape([self.count, self.count])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return 2.0 * x

    operator = Growing()
    operator.matmul(tf.ones([2, 1]))
    operator.count = 3
    assert operator.shape == [3, 3]
    operator.matmul(tf.ones([3, 1]))
    with pytest.raises(ValueError, match="Dimensions 3 and 2 are not compatible"):
        operator.matmul(tf.ones([2, 1]))


def test_checkpoints_find_what_operators_hold_without_having_asked_before(tmp_path):
    variable = tf.Variable([1.0, 2.0])
    product = LINALG.LinearOperatorComposition([LINALG.LinearOperatorDiag(variable)])
    path = tf.train.Checkpoint(product=product).save(str(tmp_path / "c"))
    variable.assign([0.0, 0.0])
    tf.train.Checkpoint(product=product).restore(path).assert_consumed()
    np.testing.assert_array_equal(variable, [1.0, 2.0])
