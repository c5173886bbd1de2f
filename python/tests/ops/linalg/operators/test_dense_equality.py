"""Each method of every class of operators, against the matrix: at once and traced."""

import headrace as tf
import numpy as np
import pytest
from operator_cases import CASES, DTYPES, SHAPES, random

NAMES = sorted(CASES)


def _adjoint(a):
    return np.asarray(a).swapaxes(-1, -2).conj()


def _answers(operator, x):
    """What the methods give, by name."""
    x = tf.cast(x, operator.dtype)
    found = {name: getattr(operator, name)() for name in _METHODS}
    found["add_to_tensor"] = operator.add_to_tensor(
        tf.ones(operator.shape_tensor(), operator.dtype)
    )
    found["adjoint"] = operator.adjoint().to_dense()
    found["inverse"] = operator.inverse().to_dense()
    found["shape"] = operator.shape_tensor()
    found["batch"] = operator.batch_shape_tensor()
    for adjoint in (False, True):
        for turned in (False, True):
            arg = tf.linalg.adjoint(x) if turned else x
            key = f"{adjoint} {turned}"
            found[f"matmul {key}"] = operator.matmul(arg, adjoint, turned)
            found[f"solve {key}"] = operator.solve(arg, adjoint, turned)
        found[f"matvec {adjoint}"] = operator.matvec(x[..., 0], adjoint)
        found[f"solvevec {adjoint}"] = operator.solvevec(x[..., 0], adjoint)
    return found


_METHODS = ("to_dense", "determinant", "log_abs_determinant", "diag_part", "trace")


def _wanted(a, x):
    found = {
        "to_dense": a,
        "determinant": np.linalg.det(a),
        "log_abs_determinant": np.linalg.slogdet(a)[1],
        "diag_part": np.diagonal(a, axis1=-2, axis2=-1),
        "trace": np.trace(a, axis1=-2, axis2=-1),
        "add_to_tensor": a + 1,
        "adjoint": _adjoint(a),
        "inverse": np.linalg.inv(a),
        "shape": a.shape,
        "batch": a.shape[:-2],
    }
    for adjoint in (False, True):
        m = _adjoint(a) if adjoint else a
        for turned in (False, True):
            found[f"matmul {adjoint} {turned}"] = m @ x
            found[f"solve {adjoint} {turned}"] = np.linalg.solve(
                m, np.broadcast_to(x, (*(m @ x).shape[:-2], *x.shape[-2:]))
            )
        found[f"matvec {adjoint}"] = (m @ x[..., :1])[..., 0]
        found[f"solvevec {adjoint}"] = found[f"solve {adjoint} False"][..., 0]
    return found


def _compare(found, wanted, dtype):
    single = np.finfo(dtype).bits == 32
    for name, value in wanted.items():
        got = found[name].numpy()
        value = np.asarray(value)
        assert got.shape == value.shape, name
        scale = max(1.0, np.abs(value).max(initial=0))
        np.testing.assert_allclose(
            got,
            value,
            rtol=2e-3 if single else 1e-9,
            atol=(1e-4 if single else 1e-11) * scale,
            err_msg=name,
        )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_to_the_matrix(name, dtype):
    for batch in SHAPES:
        arrays, make, dense = CASES[name](batch, dtype)
        operator = make(*(tf.constant(a) for a in arrays))
        assert operator.dtype == dtype
        assert operator.shape == dense.shape
        assert operator.batch_shape == dense.shape[:-2]
        assert operator.tensor_rank == dense.ndim
        x = random(40, (*dense.shape[:-2], dense.shape[-1], 2), dtype)
        wide = dense.astype("complex128" if np.iscomplexobj(dense) else "float64")
        _compare(_answers(operator, x), _wanted(wide, x), dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_equal_where_shapes_are_not_known(name, dtype):
    for batch in SHAPES:
        arrays, make, dense = CASES[name](batch, dtype)
        x = random(41, (*dense.shape[:-2], dense.shape[-1], 2), dtype)

        @tf.function(autograph=False)
        def traced(x, *tensors, make=make):
            return _answers(make(*tensors), x)

        ranks = [tf.TensorSpec([None] * x.ndim, dtype)]
        ranks += [tf.TensorSpec([None] * a.ndim, a.dtype) for a in arrays]
        concrete = traced.get_concrete_function(*ranks)
        found = concrete(*map(tf.constant, (x, *arrays)))
        _compare(found, _wanted(dense, x), dtype)


_RANKS_NEEDED = ("tridiag", "kronecker", "permutation")


@pytest.mark.parametrize("name", NAMES)
def test_equal_where_ranks_are_not_known(name):
    arrays, make, dense = CASES[name]((2,), "float64")
    x = random(42, (2, dense.shape[-1], 2), "float64")

    @tf.function(autograph=False)
    def traced(x, *tensors):
        o = make(*tensors)
        return o.matmul(x), o.to_dense(), o.solve(x), o.shape_tensor()

    specs = [tf.TensorSpec(None, "float64")]
    specs += [tf.TensorSpec(None, a.dtype) for a in arrays]
    product, made, solution, shape = traced.get_concrete_function(*specs)(
        *map(tf.constant, (x, *arrays))
    )
    np.testing.assert_allclose(made, dense, atol=1e-12)
    np.testing.assert_allclose(product, dense @ x, rtol=1e-9)
    np.testing.assert_allclose(solution, np.linalg.solve(dense, x), rtol=1e-9)
    np.testing.assert_array_equal(shape, dense.shape)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_without_the_batch(name):
    arrays, make, dense = CASES[name]((3, 1), "float64")
    operator = make(*(tf.constant(a) for a in arrays))
    x = random(43, (dense.shape[-1], 2), "float64")
    np.testing.assert_allclose(operator.matmul(x), dense @ x, rtol=1e-9)
    found = operator.solve(x)
    np.testing.assert_allclose(dense @ found.numpy(), np.broadcast_to(x, found.shape))
    arrays, make, dense = CASES[name]((), "float64")
    operator = make(*(tf.constant(a) for a in arrays))
    x = random(44, (2, 3, dense.shape[-1], 2), "float64")
    np.testing.assert_allclose(operator.matmul(x), dense @ x, rtol=1e-9)
    np.testing.assert_allclose(dense @ operator.solve(x).numpy(), x, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_condition_and_eigenvalues(name):
    arrays, make, dense = CASES[name]((2,), "float64")
    operator = make(*(tf.constant(a) for a in arrays))
    np.testing.assert_allclose(operator.cond(), np.linalg.cond(dense), rtol=1e-7)
    if operator.is_self_adjoint:
        found = np.sort(operator.eigvals().numpy().real)
        np.testing.assert_allclose(found, np.linalg.eigvalsh(dense), atol=1e-9)
    else:
        with pytest.raises(NotImplementedError, match="Only self-adjoint matrices"):
            operator.eigvals()


@pytest.mark.parametrize("name", ["definite", "low_rank_definite"])
def test_factors(name):
    arrays, make, dense = CASES[name]((2,), "complex128")
    operator = make(*(tf.constant(a) for a in arrays))
    np.testing.assert_allclose(
        operator.cholesky().to_dense(), np.linalg.cholesky(dense), atol=1e-10
    )


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("identity", "permutation", "definite")]
)
def test_gradients_are_those_of_the_matrix(name):
    """Of a product and a solution, by what the operator was made of: numerically."""
    arrays, make, dense = CASES[name]((2,), "float64")
    if any(np.iscomplexobj(a) for a in arrays):
        arrays, make, dense = CASES[name]((2,), "complex128")
    n = dense.shape[-1]
    x = tf.constant(random(45, (2, n, 2), dense.dtype.name))
    weights = tf.constant(random(46, (2, n, 2), "float64"))

    def value(*tensors):
        o = make(*tensors)
        y = o.matmul(x) + o.solve(x, adjoint=True)
        return tf.reduce_sum(weights * tf.math.real(y))

    wanted, found = tf.test.compute_gradient(value, [tf.constant(a) for a in arrays])
    for a, b in zip(wanted, found):
        np.testing.assert_allclose(a, b, atol=1e-5 * max(1, np.abs(a).max()))

    def of_determinant(*tensors):
        o = make(*tensors)
        return tf.reduce_sum(tf.math.real(o.log_abs_determinant() + o.trace()))

    wanted, found = tf.test.compute_gradient(
        of_determinant, [tf.constant(a) for a in arrays]
    )
    for a, b in zip(wanted, found):
        np.testing.assert_allclose(a, b, atol=1e-5 * max(1, np.abs(a).max()))


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_a_batch(name):
    arrays, make, dense = CASES[name]((3, 1), "float64")
    operator = make(*(tf.constant(a) for a in arrays))
    for key in [1, slice(1, 3), (slice(None, None, 2), 0), (..., 0), (None, 2)]:
        part = operator[key]
        assert type(part) is type(operator)
        place = key if isinstance(key, tuple) else (key,)
        if Ellipsis not in place:
            place = (*place, ...)
        wanted = dense[(*place, slice(None), slice(None))]
        assert part.shape == wanted.shape
        np.testing.assert_allclose(part.to_dense(), wanted, atol=1e-12)
    traced = tf.function(lambda i: operator[i].to_dense())
    np.testing.assert_allclose(traced(tf.constant(2)), dense[2], atol=1e-12)
