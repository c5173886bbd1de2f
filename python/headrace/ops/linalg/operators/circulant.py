"""Operators of circulant matrices: products are element by element behind an FFT."""

import math

import numpy as np

from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.ops import (
    array_ops,
    check_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
)
from headrace.ops.linalg.operators import dense_ops, hints
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import conj_if
from headrace.ops.signal import signal_ops

_TEXT = """spectrum, input_output_dtype=dtypes.complex64, is_non_singular=None,
    is_self_adjoint=None, is_positive_definite=None, is_square=True,
    name='LinearOperatorCirculant{}'"""


class _Circulant(LinearOperator):
    """A circulant matrix, or one of blocks that are circulant, nested to a depth.

    The matrix is F^H S F: F is the discrete Fourier transform of a vector that is read as
    a block [N0, ..., Nd], and S multiplies by the `spectrum` [..., N0, ..., Nd]. A real
    spectrum makes it self-adjoint. Arguments and results have `input_output_dtype`, the
    transforms are complex.
    """

    _depth = 1

    def _begin(self, known, spectrum, input_output_dtype):
        self._spectrum = dense_ops.kept(spectrum, "spectrum")
        rank, least = self._spectrum.shape.rank, self._depth
        if rank is not None and rank < least:
            raise ValueError(
                f"Argument `spectrum` must have at least {least} dimensions. Received: "
                f"{spectrum}."
            )
        hints.check(
            known,
            "is_square",
            "A [[nested] block] circulant operator is always square. Expected argument "
            "`is_square` to be True. Received: False.",
        )
        if not self._spectrum.dtype.is_complex:
            hints.check(
                known,
                "is_self_adjoint",
                "A real spectrum always corresponds to a self-adjoint operator. Expected "
                "argument `is_self_adjoint` to be True when `spectrum.dtype.is_complex` = "
                "True. Received: False.",
            )
        return dtypes.as_dtype(input_output_dtype)

    spectrum = read_only("_spectrum", "The spectrum: a tensor or variable.")
    block_depth = read_only("_depth", "How many dimensions a block has.")

    def _field(self, name):
        return self.dtype if name == "input_output_dtype" else super()._field(name)

    # --- Sizes.

    @property
    def block_shape(self):
        """The sizes of a block: a TensorShape."""
        shape = self._spectrum.shape
        return shape[-self._depth :] if shape.rank is not None else shape

    def block_shape_tensor(self):
        """The sizes of a block as a tensor."""
        return array_ops.shape(self._spectrum)[-self._depth :]

    def _shape(self):
        shape = self._spectrum.shape
        if shape.rank is None:
            return shape
        count = self.block_shape.num_elements()
        return shape[: -self._depth].concatenate([count, count])

    def _shape_tensor(self):
        count = self._count()
        batch = dense_ops.batch_of(self._spectrum, self._depth)
        return dense_ops.joined(batch, [count, count])

    def _block_sizes(self):
        return dense_ops.sizes(self._spectrum)[-self._depth :]

    def _count(self):
        """The number of rows, as known as it is."""
        known = self._known_rows
        if known is not None:
            return known
        sizes = self._block_sizes()
        if isinstance(sizes, list):
            return math.prod(sizes)
        return reduction_ops.reduce_prod(sizes)

    # --- Transforms.

    def _complex(self, x):
        x = dense_ops.tensor(x)
        if x.dtype.is_complex:
            return x
        wide = dtypes.float64 in (x.dtype, self.dtype.real_dtype)
        return math_ops.cast(x, dtypes.complex128 if wide else dtypes.complex64)

    def _multiply(self, x, adjoint, adjoint_arg, by):
        """`by` of columns, as blocks behind the transform, and the spectrum."""
        rows = math_ops.conj(x) if adjoint_arg else array_ops.matrix_transpose(x)
        sizes = dense_ops.joined(dense_ops.batch_of(rows, 1), self._block_sizes())
        blocks = self._fft(self._complex(dense_ops.reshape(rows, sizes)))
        spectrum = math_ops.cast(conj_if(self._spectrum, adjoint), blocks.dtype)
        if spectrum._rank() != self._depth:
            spectrum = array_ops.expand_dims(spectrum, -self._depth - 1)
        found = self._ifft(by(blocks, spectrum))
        batch = dense_ops.batch_of(found, self._depth)
        found = dense_ops.reshape(found, dense_ops.joined(batch, [self._count()]))
        return self._cast(array_ops.matrix_transpose(found))

    def _cast(self, x):
        """In the operator's dtype, without a warning for the imaginary part that is left."""
        if x.dtype.is_complex and not self.dtype.is_complex:
            x = elementwise_ops.real(x)
        return x if x.dtype is self._dtype else math_ops.cast(x, self.dtype)

    def convolution_kernel(self, name="convolution_kernel"):
        """The first column of the matrix, as a block."""
        with self._name_scope(name):
            return self._cast(self._ifft(self._complex(self._spectrum)))

    # --- What it does.

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._multiply(x, adjoint, adjoint_arg, lambda x, s: x * s)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._multiply(rhs, adjoint, adjoint_arg, lambda x, s: x / s)

    def _axes(self):
        return list(range(-self._depth, 0))

    def _determinant(self):
        return self._cast(reduction_ops.reduce_prod(self._spectrum, self._axes()))

    def _log_abs_determinant(self):
        size = elementwise_ops.log(elementwise_ops.abs(self._spectrum))
        return math_ops.cast(reduction_ops.reduce_sum(size, self._axes()), self.dtype)

    def _trace(self):
        return self._cast(reduction_ops.reduce_sum(self._spectrum, self._axes()))

    def _diag_part(self):
        count = self._count()
        each = self._trace() / dense_ops.filled([], count, self.dtype)
        sizes = dense_ops.joined(dense_ops.sizes(each), [count])
        return array_ops.broadcast_to(array_ops.expand_dims(each, -1), sizes)

    def _flat_spectrum(self):
        batch = dense_ops.batch_of(self._spectrum, self._depth)
        sizes = dense_ops.joined(batch, [self._count()])
        return dense_ops.reshape(dense_ops.tensor(self._spectrum), sizes)

    def _eigvals(self):
        return self._flat_spectrum()

    def _cond(self):
        return dense_ops.ratio(self._flat_spectrum())

    def _of(self, spectrum):
        return type(self)(spectrum, self.dtype, **hints.of(self))

    def _linop_adjoint(self):
        return self._of(math_ops.conj(self._spectrum))

    def _linop_inverse(self):
        return self._of(1.0 / dense_ops.tensor(self._spectrum))

    # --- Assertions.

    def assert_hermitian_spectrum(self, name="assert_hermitian_spectrum"):
        """Asserts that the matrix is real, up to rounding: that its spectrum is Hermitian."""
        with self._name_scope(name):
            kernel = self._ifft(self._complex(self._spectrum))
            part = elementwise_ops.abs(elementwise_ops.imag(kernel))
            count = math_ops.cast(self.domain_dimension_tensor(), part.dtype)
            limit = count * np.finfo(part.dtype.as_numpy_dtype).eps
            limit *= reduction_ops.reduce_max(elementwise_ops.abs(self._spectrum))
            return check_ops.assert_less_equal(
                part, math_ops.cast(limit, part.dtype), "Spectrum was not Hermitian"
            )

    def _assert_non_singular(self):
        return dense_ops.assert_no_zeros(
            self._spectrum, "Singular operator:  Spectrum contained zero values."
        )

    def _assert_positive_definite(self):
        return check_ops.assert_positive(
            dense_ops.real(self._spectrum),
            "Not positive definite:  Real part of spectrum was not all positive.",
        )

    def _assert_self_adjoint(self):
        return dense_ops.assert_real(
            self._spectrum,
            "Not self-adjoint:  The spectrum contained non-zero imaginary part.",
        )


@takes(_TEXT.format(""), {"spectrum": 1})
class LinearOperatorCirculant(_Circulant):
    __doc__ = _Circulant.__doc__

    _fft, _ifft = map(staticmethod, (signal_ops.fft, signal_ops.ifft))


@takes(_TEXT.format("2D"), {"spectrum": 2})
class LinearOperatorCirculant2D(_Circulant):
    __doc__ = _Circulant.__doc__

    _depth = 2
    _fft, _ifft = map(staticmethod, (signal_ops.fft2d, signal_ops.ifft2d))


@takes(_TEXT.format("3D"), {"spectrum": 3})
class LinearOperatorCirculant3D(_Circulant):
    __doc__ = _Circulant.__doc__

    _depth = 3
    _fft, _ifft = map(staticmethod, (signal_ops.fft3d, signal_ops.ifft3d))


KINDS = (
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
)
