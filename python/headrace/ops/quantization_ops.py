"""tf.quantization: numbers as small integers with a range."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.framework.settings import logging
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


def quantize(
    input,
    min_range,
    max_range,
    T,  # noqa: N803  (upstream's name)
    mode="MIN_COMBINED",
    round_mode="HALF_AWAY_FROM_ZERO",
    name=None,
    narrow_range=False,
    axis=None,
    ensure_minimum_range=0.01,
):
    """Numbers as the type T, spread over [min_range, max_range]."""
    given = dict(locals())  # the op's arguments
    if not _warned:  # once, as upstream, where this calls its older name
        logging.warn_deprecated("quantize_v2", _NEWER, _warned)
    input = _float32(input)
    ranges = {"min_range": _float32(min_range), "max_range": _float32(max_range)}
    given.update(ranges, input=input, axis=_axis(axis, input))
    return raw.QuantizeV2(**given)


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
    """The numbers that quantize was given, as far as they are kept."""
    given = dict(locals())  # the op's arguments
    input = conversion.convert_to_tensor(input)
    ranges = {"min_range": _float32(min_range), "max_range": _float32(max_range)}
    given.update(ranges, input=input, axis=_axis(axis, input))
    return raw.Dequantize(**given)


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
    """The numbers after a round trip through integers of `num_bits`."""
    given = dict(locals())  # the op's arguments
    input = conversion.convert_to_tensor(input)
    given.update(input=input, axis=_axis(axis, input))
    return raw.QuantizeAndDequantizeV4(**given)
