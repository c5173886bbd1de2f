"""tf.quantization: numbers as small integers with a range."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.ops.faces import add_faces

_NEWER = (
    "`tf.quantize_v2` is deprecated, please use `tf.quantization.quantize` instead."
)
_warned = set()

add_faces(
    globals(),
    """
fake_quant_with_min_max_args FakeQuantWithMinMaxArgs(inputs, min=-6, max=6, num_bits=8,
        narrow_range=False, name=None)
fake_quant_with_min_max_args_gradient FakeQuantWithMinMaxArgsGradient(gradients, inputs,
        min=-6, max=6, num_bits=8, narrow_range=False, name=None)
fake_quant_with_min_max_vars FakeQuantWithMinMaxVars(inputs, min, max, num_bits=8,
        narrow_range=False, name=None)
fake_quant_with_min_max_vars_gradient FakeQuantWithMinMaxVarsGradient(gradients, inputs,
        min, max, num_bits=8, narrow_range=False, name=None)
fake_quant_with_min_max_vars_per_channel FakeQuantWithMinMaxVarsPerChannel(inputs, min,
        max, num_bits=8, narrow_range=False, name=None)
quantized_concat QuantizedConcat(concat_dim, values, input_mins, input_maxes, name=None)
fake_quant_with_min_max_vars_per_channel_gradient
        FakeQuantWithMinMaxVarsPerChannelGradient(gradients, inputs, min, max, num_bits=8,
        narrow_range=False, name=None)
""",
)


def _float32(x):
    return conversion.convert_to_tensor(x, dtypes.float32)


def _axis(axis, input):
    """An axis as the operations take it: -1 for none, else counted from the front."""
    if axis is None:
        return -1
    if axis >= 0:
        return axis
    if input.shape.rank is None:
        raise ValueError("input should have known rank to use negative axis.")
    return axis % input.shape.rank if input.shape.rank else -1


def _prepared(given, convert):
    """An op's arguments, the tensors among them converted and the axis counted."""
    given["input"] = convert(given["input"])
    for name in ("min_range", "max_range"):
        if name in given:
            given[name] = _float32(given[name])
    given["axis"] = _axis(given["axis"], given["input"])
    return given


@signatures.having(
    "input, min_range, max_range, T, mode='MIN_COMBINED', "
    "round_mode='HALF_AWAY_FROM_ZERO', name=None, narrow_range=False, axis=None, "
    "ensure_minimum_range=0.01"
)
def quantize(**given):
    """Numbers as the type T, spread over [min_range, max_range]."""
    if not _warned:  # once, as upstream, where this calls its older name
        logging.warn_deprecated("quantize_v2", _NEWER, _warned)
    return raw.QuantizeV2(**_prepared(given, _float32))


@signatures.having(
    "input, min_range, max_range, mode='MIN_COMBINED', name=None, axis=None, "
    "narrow_range=False, dtype=float32",
    float32=dtypes.float32,
)
def dequantize(**given):
    """The numbers that quantize was given, as far as they are kept."""
    return raw.Dequantize(**_prepared(given, conversion.convert_to_tensor))


@signatures.having(
    "input, input_min, input_max, signed_input=True, num_bits=8, "
    "range_given=False, round_mode='HALF_TO_EVEN', name=None, narrow_range=False, "
    "axis=None"
)
def quantize_and_dequantize_v2(**given):
    """The numbers after a round trip through integers of `num_bits`."""
    prepared = _prepared(given, conversion.convert_to_tensor)
    return raw.QuantizeAndDequantizeV4(**prepared)


@signatures.having(
    "input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, "
    "round_mode='HALF_TO_EVEN', name=None, narrow_range=False, axis=None"
)
def quantize_and_dequantize(**given):
    """What quantize_and_dequantize_v2 gives; its gradient is passed on for all elements,
    also for those outside of the range."""
    return raw.QuantizeAndDequantizeV2(**_prepared(given, conversion.convert_to_tensor))
