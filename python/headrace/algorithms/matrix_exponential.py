"""tf.linalg.expm."""

import numpy as np

from headrace.control_flow import loops
from headrace.framework import conversion, dtypes, name_scopes
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.linalg import linalg_ops

_PADE = [64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800]
_PADE += [129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920]
_PADE += [40840800, 960960, 16380, 182, 1]


def expm(input, name=None):
    """The matrix exponential, by Padé's approximation of a matrix that is halved until
    it is small, then squared as often."""
    with name_scopes.name_scope(name or "matrix_exponential"):
        a = conversion.convert_to_tensor(input)
        if a.shape.rank is not None and a.shape.rank < 2:
            raise ValueError(
                f"Shape must be at least rank 2 but is rank {a.shape.rank}"
            )
        real = a.dtype.real_dtype
        norm = reduction_ops.reduce_max(
            reduction_ops.reduce_sum(elementwise_ops.abs(a), -2, True), -1, True
        )
        # Beyond this norm the approximation is less exact than the dtype.
        small = 5.371920351148152 if real == dtypes.float64 else 3.925724783138660
        halvings = elementwise_ops.log(norm / small) / np.log(2.0)
        halvings = elementwise_ops.maximum(
            elementwise_ops.ceil(halvings), array_ops.zeros([], real)
        )
        a = a * math_ops.cast(
            elementwise_ops.pow(conversion.constant(0.5, real), halvings), a.dtype
        )
        b = [math_ops.cast(c, a.dtype) for c in _PADE]
        one = array_ops.eye(array_ops.shape(a)[-1], dtype=a.dtype)
        a2 = math_ops.matmul(a, a)
        a4 = math_ops.matmul(a2, a2)
        a6 = math_ops.matmul(a4, a2)
        odd = math_ops.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
        odd = math_ops.matmul(a, odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
        even = math_ops.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
        even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
        made = linalg_ops.solve(even - odd, even + odd)

        def turn(i, x):
            return i + 1, array_ops.where(i < halvings, math_ops.matmul(x, x), x)

        def again(i, _):
            return reduction_ops.reduce_any(i < halvings)

        return loops.while_loop(again, turn, [array_ops.zeros([], real), made])[1]
