"""Recipes of decompositions and solvers."""

import numpy as np
from draw import WIDE, Type

RECIPES = {}
KINDS = (*WIDE, "complex64", "complex128")


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


def _square(d, dtype, batch=None, shift=True):
    n = d.integer(0 if d.maybe(0.05) else 1, 5)
    batch = d.shape(most=2, largest=3, empty=0) if batch is None else batch
    made = d.array(dtype, (*batch, n, n))
    return made + 3 * np.eye(n, dtype=dtype) if shift else made


def _hermitian(d, dtype):
    a = _square(d, dtype, shift=False)
    n = a.shape[-1]
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(n)).astype(dtype)


@recipe("MatrixInverse MatrixDeterminant LogMatrixDeterminant MatrixSquareRoot")
def of_square(d, op):
    made = {"input": _square(d, d.pick(*KINDS))}
    return {**made, "adjoint": d.maybe()} if op == "MatrixInverse" else made


@recipe("MatrixLogarithm")
def functions(d, op):
    return {"input": _square(d, d.pick("complex64", "complex128"))}


@recipe("MatrixSolve MatrixTriangularSolve")
def solve(d, op):
    a = _square(d, d.pick(*KINDS))
    b = d.array(a.dtype.name, (*a.shape[:-1], d.integer(1, 4)))
    made = {"matrix": a, "rhs": b, "adjoint": d.maybe()}
    return {**made, "lower": d.maybe()} if op == "MatrixTriangularSolve" else made


@recipe("MatrixSolveLs")
def least_squares(d, op):
    batch = d.shape(most=1, largest=3, empty=0)
    m, n, k = d.integer(1, 5), d.integer(1, 5), d.integer(1, 3)
    dtype, fast = d.pick(*WIDE), d.maybe()
    made = {
        "matrix": d.array(dtype, (*batch, m, n)),
        "rhs": d.array(dtype, (*batch, m, k)),
    }
    made["l2_regularizer"] = np.asarray(d.uniform(0.01, 1) if fast else 0.0)
    return {**made, "fast": fast}


@recipe("Cholesky")
def cholesky(d, op):
    return {"input": _hermitian(d, d.pick(*KINDS))}


@recipe("SelfAdjointEigV2")
def eigenvalues(d, op):  # vectors are told up to a factor: values alone
    return {"input": _hermitian(d, d.pick(*KINDS)), "compute_v": False}


@recipe("Qr")
def qr(d, op):
    shape = (*d.shape(most=1, empty=0), d.integer(1, 5), d.integer(1, 5))
    return {"input": d.array(d.pick(*KINDS), shape), "full_matrices": d.maybe()}


@recipe("Lu")
def lu(d, op):
    return {
        "input": _square(d, d.pick(*KINDS)),
        "output_idx_type": Type(d.pick("int32", "int64")),
    }


@recipe("Svd")
def svd(d, op):
    shape = (*d.shape(most=1, empty=0), d.integer(1, 5), d.integer(1, 5))
    return {"input": d.array(d.pick(*KINDS), shape), "compute_uv": False}


@recipe("TridiagonalSolve")
def tridiagonal(d, op):
    dtype, n = d.pick(*WIDE), d.integer(1, 6)
    diagonals = d.array(dtype, (3, n))
    diagonals[1] += 6
    made = {"diagonals": diagonals, "rhs": d.array(dtype, (n, d.integer(1, 3)))}
    return {**made, "partial_pivoting": d.maybe()}


@recipe("TridiagonalMatMul")
def tridiagonal_product(d, op):
    dtype, n = d.pick(*KINDS), d.integer(1, 6)
    made = {
        name: d.array(dtype, (1, n)) for name in ("superdiag", "maindiag", "subdiag")
    }
    return {**made, "rhs": d.array(dtype, (n, d.integer(1, 3)))}


@recipe("BandedTriangularSolve")
def banded(d, op):
    dtype, n = d.pick(*WIDE), d.integer(2, 6)
    bands = d.array(dtype, (d.integer(1, min(n, 3)), n))
    lower = d.maybe()
    bands[0 if lower else -1] += 5
    made = {"matrix": bands, "rhs": d.array(dtype, (n, d.integer(1, 3)))}
    return {**made, "lower": lower, "adjoint": d.maybe()}
