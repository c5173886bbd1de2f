"""tf.quantization."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, logging

_warned = []


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


def quantize(
    input,
    min_range,
    max_range,
    T,
    mode="MIN_COMBINED",
    round_mode="HALF_AWAY_FROM_ZERO",
    name=None,
    narrow_range=False,
    axis=None,
    ensure_minimum_range=0.01,
):
    """Floats as numbers of a quantized type, and the range that they span."""
    if not _warned:
        _warned.append(True)
        logging.warn(
            "`tf.quantize_v2` is deprecated, please use `tf.quantization.quantize` "
            "instead."
        )
    return _raw(
        "QuantizeV2",
        input=input,
        min_range=conversion.convert_to_tensor(min_range, dtypes.float32),
        max_range=conversion.convert_to_tensor(max_range, dtypes.float32),
        T=T,
        mode=mode,
        round_mode=round_mode,
        name=name,
        narrow_range=narrow_range,
        axis=-1 if axis is None else axis,
        ensure_minimum_range=ensure_minimum_range,
    )


def dequantize(
    input,
    min_range,
    max_range,
    mode="MIN_COMBINED",
    name=None,
    axis=None,
    narrow_range=False,
    dtype=dtypes.float32,
):
    """Quantized numbers as floats."""
    return _raw(
        "Dequantize",
        input=input,
        min_range=conversion.convert_to_tensor(min_range, dtypes.float32),
        max_range=conversion.convert_to_tensor(max_range, dtypes.float32),
        mode=mode,
        name=name,
        axis=-1 if axis is None else axis,
        narrow_range=narrow_range,
        dtype=dtype,
    )


def fake_quant_with_min_max_args(
    inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None
):
    """Floats rounded to what a quantized type can say."""
    return _raw(
        "FakeQuantWithMinMaxArgs",
        inputs=inputs,
        min=min,
        max=max,
        num_bits=num_bits,
        narrow_range=narrow_range,
        name=name,
    )


def fake_quant_with_min_max_vars(
    inputs, min, max, num_bits=8, narrow_range=False, name=None
):
    """The same with a range in tensors."""
    return _raw(
        "FakeQuantWithMinMaxVars",
        inputs=inputs,
        min=min,
        max=max,
        num_bits=num_bits,
        narrow_range=narrow_range,
        name=name,
    )


def fake_quant_with_min_max_vars_per_channel(
    inputs, min, max, num_bits=8, narrow_range=False, name=None
):
    """The same with a range for each of the last dimension."""
    return _raw(
        "FakeQuantWithMinMaxVarsPerChannel",
        inputs=inputs,
        min=min,
        max=max,
        num_bits=num_bits,
        narrow_range=narrow_range,
        name=name,
    )


def quantize_and_dequantize_v2(
    input,
    input_min,
    input_max,
    signed_input=True,
    num_bits=8,
    range_given=False,
    round_mode="HALF_TO_EVEN",
    name=None,
    narrow_range=False,
    axis=None,
):
    """Quantizes and goes back at once; the gradient passes inside the range."""
    return _raw(
        "QuantizeAndDequantizeV4",
        input=input,
        input_min=input_min,
        input_max=input_max,
        signed_input=signed_input,
        num_bits=num_bits,
        range_given=range_given,
        round_mode=round_mode,
        name=name,
        narrow_range=narrow_range,
        axis=-1 if axis is None else axis,
    )
