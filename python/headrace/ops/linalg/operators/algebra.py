"""What operators become when they meet: products, quotients, adjoints, inverses, factors.

Rules stand in the order in which they are asked; the first whose classes fit answers.
"""

import functools

from headrace._load import raw
from headrace.ops import array_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import (
    base,
    block_diag,
    circulant,
    composition,
    dense_ops,
    diagonal,
    hints,
    identity,
    whole,
    wrappers,
    zeros,
)


def adjoint(operator):
    """The conjugate transpose of an operator of whatever class."""
    return wrappers.LinearOperatorAdjoint(operator, **hints.of(operator))


def inverse(operator):
    """The inverse of an operator of whatever class."""
    return wrappers.LinearOperatorInversion(operator, **hints.of(operator))


def cholesky(operator):
    """The Cholesky factor of an operator of whatever class."""
    return whole.LinearOperatorLowerTriangular(
        linalg_ops.cholesky(operator.to_dense()),
        is_non_singular=True,
        is_self_adjoint=False,
        is_square=True,
    )


def product(left, right):
    """The operator that applies `right`, then `left`."""
    return _answer(_rules()[0], left, right)


def quotient(left, right):
    """The operator that applies `right`, then the inverse of `left`."""
    return _answer(_rules()[1], left, right)


def _answer(rules, left, right):
    for left_kind, right_kind, rule in rules:
        if isinstance(left, left_kind) and isinstance(right, right_kind):
            return rule(left, right)
    raise AssertionError("the last rule is for all")


@functools.cache
def _rules():
    """(rules of products, rules of quotients): rows of classes, left and right, and of
    what becomes of two such operators."""
    any_kind = base.LinearOperator
    one, zero = identity.LinearOperatorIdentity, zeros.LinearOperatorZeros
    scaled = identity.LinearOperatorScaledIdentity
    diag, tril = diagonal.LinearOperatorDiag, whole.LinearOperatorLowerTriangular
    blocks = block_diag.LinearOperatorBlockDiag
    times, over = raw.Mul, _over
    products = [
        (zero, any_kind, _no_elements),
        (any_kind, zero, _no_elements),
        (one, any_kind, lambda left, right: right),
        (any_kind, one, lambda left, right: left),
        (scaled, scaled, _scalars(times)),
        ((diag, scaled), (diag, scaled), _diagonals(times)),
        (diag, tril, _triangle(lambda a, b: _rows(a) * b.to_dense())),
        (tril, diag, _triangle(lambda a, b: a.to_dense() * b.diag[..., None, :])),
        *((kind, kind, _spectra(times)) for kind in circulant.KINDS),
        (blocks, blocks, _blocks(base.LinearOperator.matmul)),
        (any_kind, any_kind, _composed),
    ]
    quotients = [
        (one, any_kind, lambda left, right: right),
        (any_kind, one, lambda left, right: left.inverse()),
        (scaled, scaled, _scalars(over)),
        ((diag, scaled), (diag, scaled), _diagonals(over)),
        (diag, tril, _triangle(lambda a, b: b.to_dense() / _rows(a))),
        *((kind, kind, _spectra(over)) for kind in circulant.KINDS),
        (blocks, blocks, _blocks(base.LinearOperator.solve)),
        (wrappers.LinearOperatorInversion, any_kind, _undone),
        (any_kind, any_kind, _solved),
    ]
    return products, quotients


def _over(left, right):
    """The right over the left."""
    return dense_ops.tensor(right) / dense_ops.tensor(left)


def _rows(operator):
    return array_ops.expand_dims(operator.diag, -1)


def _no_elements(left, right):
    """With a matrix of zeros: that one."""
    if not (left.is_square and right.is_square):
        raise ValueError(
            "Matmul with non-square `LinearOperator`s or non-square "
            "`LinearOperatorZeros` not supported at this time."
        )
    return left if isinstance(left, zeros.LinearOperatorZeros) else right


def _composed(left, right):
    return composition.LinearOperatorComposition(
        [left, right], **hints.of_product(left, right)
    )


def _solved(left, right):
    return composition.LinearOperatorComposition(
        [inverse(left), right], **hints.of_product(left, right)
    )


def _undone(left, right):
    """The inverse of an inverse times something."""
    return product(left.operator, right)


def _diagonal_of(operator):
    """The diagonal of a diagonal matrix, or one number of a scaled identity's."""
    if isinstance(operator, identity.LinearOperatorScaledIdentity):
        return array_ops.expand_dims(operator.multiplier, -1)
    return operator.diag


# Rules that make an operator of a known class, of what their function gives.


def _diagonals(of):
    def rule(left, right):
        return diagonal.LinearOperatorDiag(
            of(_diagonal_of(left), _diagonal_of(right)),
            **hints.of_commuting_product(left, right),
        )

    return rule


def _scalars(of):
    def rule(left, right):
        return identity.LinearOperatorScaledIdentity(
            left._sizes()[-1],
            of(left.multiplier, right.multiplier),
            **hints.of_commuting_product(left, right),
        )

    return rule


def _triangle(of):
    def rule(left, right):
        return whole.LinearOperatorLowerTriangular(
            of(left, right), **hints.of_commuting_product(left, right)
        )

    return rule


def _spectra(of):
    def rule(left, right):
        return type(left)(
            of(left.spectrum, right.spectrum),
            left.dtype,
            **hints.of_commuting_product(left, right),
        )

    return rule


def _blocks(of):
    def rule(left, right):
        block_diag.check_alike(left, right)
        return block_diag.LinearOperatorBlockDiag(
            [of(a, b) for a, b in zip(left.operators, right.operators)],
            **hints.of_product(left, right),
        )

    return rule
