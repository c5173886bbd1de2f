"""tf.signal: Fourier transforms over chosen axes."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import graph_scope
from headrace.framework.support import signatures
from headrace.ops import array_ops

_NORMS = (None, "backward", "ortho", "forward")


def _plan(x, fft_length, axes, is_half):
    """(lengths, axes), int32 vectors: as given, or those of all dimensions of x."""
    sizes = array_ops.shape(x)
    if fft_length is not None:
        fft_length = conversion.convert_to_tensor(
            fft_length, dtypes.int32, name="fft_length"
        )
    if axes is None:
        rank = array_ops.size(sizes)
        count = rank if fft_length is None else array_ops.size(fft_length)
        axes = raw.Range(rank - count, rank, 1)
    else:
        axes = conversion.convert_to_tensor(axes, dtypes.int32, name="axes")
        axes = array_ops.reshape(axes, [-1])
        axes = raw.FloorMod(axes, array_ops.size(sizes))
    if fft_length is not None:
        return array_ops.reshape(fft_length, [-1]), axes
    lengths = array_ops.gather(sizes, axes)
    if is_half:
        last = (lengths[-1:] - 1) * 2
        zero = conversion.to_tensor(0, dtypes.int32)
        last = raw.Maximum(last, zero)
        lengths = array_ops.concat([lengths[:-1], last], 0)
    return lengths, axes


def _padded(x, lengths, axes, is_half):
    """x with zeros after the dimensions that the transform is longer than."""
    if is_half:
        half = lengths[-1:] // 2 + 1
        lengths = array_ops.concat([lengths[:-1], half], 0)
    have = array_ops.gather(array_ops.shape(x), axes)
    zero = conversion.to_tensor(0, dtypes.int32)
    more = raw.Maximum(lengths - have, zero)
    before = array_ops.zeros_like(array_ops.shape(x))
    after = raw.TensorScatterUpdate(before, array_ops.expand_dims(axes, 1), more)
    return array_ops.pad(x, array_ops.stack([before, after], 1))


def _scaled(x, lengths, norm, inverse):
    """x times what `norm` asks for beyond the op's own scale."""
    if norm in (None, "backward"):
        return x
    size = raw.Prod(lengths, [0])
    factor = raw.Cast(size, DstT=dtypes.float64)
    if norm == "ortho":
        factor = raw.Sqrt(factor)
    if not inverse:
        factor = 1.0 / factor
    return x * raw.Cast(factor, DstT=x.dtype)


def _transform(op, is_half=False, real=False):
    own_name, inverse = op.lower(), op.startswith("I")

    def transform(input_tensor, fft_length=None, axes=None, norm=None, name=None):
        if norm not in _NORMS:
            raise ValueError(f"norm must be one of {_NORMS}, got: {norm!r}")
        with graph_scope(name, own_name):
            hint = dtypes.float32 if real else dtypes.complex64 if is_half else None
            x = conversion.convert_to_tensor(input_tensor, dtype_hint=hint)
            if real and x.dtype not in (dtypes.float32, dtypes.float64):
                raise ValueError(
                    f"RFFT requires tf.float32 or tf.float64 inputs, got: {x!s}"
                )
            lengths, axes = _plan(x, fft_length, axes, is_half)
            if fft_length is not None:
                x = _padded(x, lengths, axes, is_half)
            x = _scaled(x, lengths, norm, inverse)
            wide = {}
            if real and x.dtype == dtypes.float64:
                wide = {"Tcomplex": dtypes.complex128}
            if is_half and x.dtype == dtypes.complex128:
                wide = {"Treal": dtypes.float64}
            return _headrace.raw_op(op)(input=x, fft_length=lengths, axes=axes, **wide)

    doc = (
        "Transforms the dimensions `axes` (all, or as many last ones as there are "
        "lengths), cut or filled up with zeros to `fft_length`.\n\n"
        '`norm`: "backward" (the default), "ortho" or "forward", as NumPy has it.'
    )
    return signatures.called(transform, own_name, doc)


fftnd, ifftnd = _transform("FFTND"), _transform("IFFTND")
rfftnd = _transform("RFFTND", real=True)
irfftnd = _transform("IRFFTND", is_half=True)
