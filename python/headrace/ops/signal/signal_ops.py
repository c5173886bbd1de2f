"""tf.signal: Fourier transforms; tf.audio: sound files."""

from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import graph_scope
from headrace.framework.support import signatures
from headrace.ops import array_ops
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
(input, fft_length, axes, name=None) FFTND IFFTND
irfftnd IRFFTND(input, fft_length, axes, Treal=float32, name=None)
rfftnd RFFTND(input, fft_length, axes, Tcomplex=complex64, name=None)
(input, name=None) FFT IFFT FFT2D IFFT2D FFT3D IFFT3D
decode_wav DecodeWav(contents, desired_channels=-1, desired_samples=-1, name=None)
encode_wav EncodeWav(audio, sample_rate, name=None)
""",
)


_REAL = (dtypes.float32, dtypes.float64)
_COMPLEX = (dtypes.complex64, dtypes.complex128)


def _lengths(x, rank, fft_length, is_half):
    """The lengths of the transform: those given, or those that x has."""
    if fft_length is not None:
        made = conversion.convert_to_tensor(fft_length, dtypes.int32, name="fft_length")
        count = made.shape.with_rank(1)[0]
        if count is not None and count != rank:
            if not _headrace.is_eager():
                raise ValueError(f"Dimension must be {rank} but is {count}: fft_length")
            raise errors.InvalidArgumentError._of(
                f"fft_length must have shape [{rank}]"
            )
        return made
    sizes = array_ops.shape(x)[-rank:]
    if not is_half:
        return sizes
    last = (sizes[-1:] - 1) * 2
    zero = conversion.to_tensor(0, dtypes.int32)
    last = raw.Maximum(last, zero)
    return array_ops.concat([sizes[:-1], last], 0)


def _padded(x, rank, lengths, is_half):
    """x with zeros after its last dimensions where the transform is longer."""
    if is_half:
        tail = lengths[-1:] // 2 + 1
        lengths = array_ops.concat([lengths[:-1], tail], 0)
    sizes = array_ops.shape(x)
    zero = conversion.to_tensor(0, dtypes.int32)
    more = raw.Maximum(lengths - sizes[-rank:], zero)
    known = x.shape.rank
    before = array_ops.zeros_like(sizes) if known is None else [0] * known
    after = array_ops.concat([before[:-rank], more], 0)
    return array_ops.pad(x, array_ops.stack([before, after], 1))


def _real(op, rank):
    """rfft over the last `rank` dimensions, or its inverse: half of a spectrum is
    on one side, real numbers on the other."""
    own_name, inverse = op.lower(), op.startswith("I")
    given, made = (_COMPLEX, _REAL) if inverse else (_REAL, _COMPLEX)
    kind = "Treal" if inverse else "Tcomplex"
    narrow, wide = ({kind: dtype} for dtype in made)

    def transform(input_tensor, fft_length=None, name=None):
        with graph_scope(name, own_name):
            x = conversion.convert_to_tensor(input_tensor, dtype_hint=given[0])
            if inverse and x.dtype not in _COMPLEX:
                raise ValueError(
                    f"IRFFT requires tf.complex64 or tf.complex128 inputs, got: {x!s}"
                )
            if not inverse and x.dtype not in _REAL:
                raise ValueError(
                    f"RFFT requires tf.float32 or tf.float64 inputs, got: {x!s}"
                )
            x.shape.with_rank_at_least(rank)
            lengths = _lengths(x, rank, fft_length, inverse)
            if fft_length is not None:
                x = _padded(x, rank, lengths, inverse)
            result = wide if x.dtype == given[1] else narrow
            return _headrace.raw_op(op)(input=x, fft_length=lengths, **result)

    doc = "Half the transform of real numbers,"
    doc = "The inverse of rfft over the" if inverse else doc
    doc += f" last {rank} dimensions."
    return signatures.called(transform, own_name, doc)


rfft, rfft2d, rfft3d = _real("RFFT", 1), _real("RFFT2D", 2), _real("RFFT3D", 3)
irfft, irfft2d, irfft3d = _real("IRFFT", 1), _real("IRFFT2D", 2), _real("IRFFT3D", 3)


def _shifted(x, axes, direction):
    x = conversion.convert_to_tensor(x)
    rank = array_ops.rank(x) if x.shape.rank is None else x.shape.rank
    if axes is None:
        axes = array_ops.range(rank)
    elif isinstance(axes, int):
        axes = [axes]
    axes = conversion.convert_to_tensor(axes, dtypes.int32)
    sizes = array_ops.gather(array_ops.shape(x), axes % rank)
    half = sizes // 2 if direction > 0 else -(sizes // 2)
    return raw.Roll(x, half, axes)


def fftshift(x, axes=None, name=None):
    """Moves the zero frequency to the middle of `axes` (all by default)."""
    with graph_scope(name, "fftshift"):
        return _shifted(x, axes, 1)


def ifftshift(x, axes=None, name=None):
    """Moves the zero frequency from the middle of `axes` back to their begin."""
    with graph_scope(name, "ifftshift"):
        return _shifted(x, axes, -1)
