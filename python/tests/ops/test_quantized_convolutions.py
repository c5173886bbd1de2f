"""Quantized convolutions: refusals, shapes that are not known, empty operands."""

import headrace as tf
import numpy as np
import pytest
import quantized_conv_cases
import rows_of_quantized

Invalid = tf.errors.InvalidArgumentError


def _given(**more):
    op, given = quantized_conv_cases.cases(tf)["bias_relu_bytes"]
    return op, {**given, **more}


def _run(**more):
    op, given = _given(**more)
    return getattr(tf.raw_ops, op)(**given)


@pytest.mark.parametrize(
    "more, text",
    [
        ({"bias": np.float32([1, 2])}, "bias must have one value a channel, 3"),
        ({"bias": np.float32([[1, 2, 3]])}, "must be rank 1"),
        ({"min_input": [0.0, 1.0]}, "min_input must be rank 0 but is rank 1"),
        ({"min_filter": [0.0, 1.0]}, "one value or one a channel, 3"),
        ({"max_filter": [1.0, 1.0, 1.0]}, "min_filter and max_filter must have one"),
        ({"min_input": float("nan")}, "min_input = nan must not be greater than"),
        ({"max_input": float("inf")}, "max_input = inf"),
        ({"min_input": 5.0}, "min_input = 5 must not be greater than max_input = 2"),
        ({"min_filter": 0.0, "max_filter": -1.0}, "min_filter = 0"),
        ({"min_freezed_output": 0.0, "max_freezed_output": 0.0}, "range is empty"),
        ({"padding_list": [1, 2, 3]}, "padding_list must contain 8 values"),
        ({"padding_list": [0, 0, -1, 0, 0, 0, 0, 0]}, "must be nonnegative, got -1"),
        ({"padding_list": [0, 0, 1 << 40, 0, 0, 0, 0, 0]}, "must be nonnegative"),
        ({"padding_list": [1, 0, 0, 0, 0, 0, 0, 0]}, "batch or depth"),
        ({"strides": [2, 1, 1, 1]}, "strides in the batch"),
        ({"strides": [1, 1, 1]}, "must specify 4 dimensions"),
        ({"strides": [1, 0, 0, 1]}, "strides should be larger than 0"),
        ({"dilations": [1, -1, 1, 1]}, "Dilated rates should be larger than 0"),
    ],
)
def test_refusals(more, text):
    with pytest.raises(Invalid, match=text):
        _run(**more)


def test_operands_that_do_not_fit():
    levels = quantized_conv_cases.levels
    for shape in ((3, 3, 2), (1, 3, 3, 3), (0, 0, 2, 3)):
        filters = levels(tf, np.zeros(shape), "qint8")
        with pytest.raises(Invalid):
            _run(filter=filters)
    with pytest.raises(tf.errors.NotFoundError):
        _run(filter=levels(tf, np.zeros((2, 2, 2, 3)), "quint8"))
    empty = levels(tf, np.zeros((0, 3, 3, 2)), "quint8")
    assert _run(input=empty).output.shape == (0, 3, 3, 3)


def test_biases_that_are_no_numbers():
    for value, wanted in ((np.nan, 0), (np.inf, 255), (-np.inf, 0)):
        made = _run(bias=np.full([3], value, np.float32)).output
        assert set(quantized_conv_cases.plain(tf, made).numpy().flat) == {wanted}


def test_shapes_that_are_not_known():
    op, given = _given()
    image = given.pop("input")
    wanted = quantized_conv_cases.plain(tf, _run().output).numpy()
    for spec in (None, [None, None, None, None], [None, 3, 3, 2]):

        @tf.function(input_signature=[tf.TensorSpec(spec, tf.quint8)])
        def run(x):
            made = getattr(tf.raw_ops, op)(input=x, **given)
            assert made.output.shape.rank == 4 and made.output.shape[3] == 3
            return made.output

        made = quantized_conv_cases.plain(tf, run(image)).numpy()
        np.testing.assert_array_equal(made, wanted)


def _uniform(place=0, **more):
    op, given = rows_of_quantized.uniform_convolutions_cases(tf)[place]
    return getattr(tf.raw_ops, op)(**{**given, **more})


@pytest.mark.parametrize(
    "more, text",
    [
        ({"padding": "FOO"}, "padding Attr must be one of"),
        ({"padding": "EXPLICIT", "explicit_padding": [0, 1, 2]}, "must be 2 \\* "),
        ({"padding": "EXPLICIT", "explicit_padding": [0, 1, 2, -1]}, "must be >= 0"),
        ({"explicit_padding": [0, 0, 0, 0]}, "explicit_padding Attr must be empty"),
        ({"window_strides": [0, 1]}, "elements of window_strides must be >= 1"),
        ({"window_strides": [1]}, "Size of window_strides Attr must be dims - 2"),
        ({"lhs_dilation": [0, 2]}, "elements of lhs_dilation must be >= 1"),
        ({"rhs_dilation": [1 << 50, 2]}, "elements of rhs_dilation"),
        ({"batch_group_count": 2}, "3 is not a multiple of 2"),
        ({"batch_group_count": 0}, "must be a positive integer. Given: 0"),
        ({"feature_group_count": 2}, "but 2 / 2 != 2"),
        ({"feature_group_count": -1}, "positive integer, given: -1"),
        ({"dimension_numbers": b"\x08"}, "Error parsing convolution dimension"),
        ({"dimension_numbers": b"\x08\x07"}, "must be a permutation of"),
        ({"rhs_quantization_axis": 1}, "kernel_output_feature_dimension"),
        ({"lhs_quantization_axis": 0}, "lhs_quantization_axis Attr must be -1"),
        ({"lhs_scales": -1.0}, "lhs scales elements must be all positive"),
        ({"output_scales": 0.0}, "output scales elements must be all positive"),
        ({"rhs_scales": float("nan")}, "rhs scales elements must be all positive"),
        ({"rhs_scales": [0.5]}, "scales and zero_points"),
    ],
)
def test_uniform_refusals(more, text):
    with pytest.raises(Invalid, match=text):
        _uniform(**more)


def test_uniform_operands():
    levels = quantized_conv_cases.levels
    with pytest.raises(Invalid, match="non-negative, got -2"):
        _uniform(lhs=levels(tf, np.zeros((2, 2, 0, 4)), "qint8"))
    with pytest.raises(Invalid, match="same dims"):
        _uniform(lhs=levels(tf, np.zeros((2, 5, 4)), "qint8"))
    # Zero points of any size wrap; the results are within the bounds.
    _uniform(lhs_zero_points=-(2**31), rhs_zero_points=2**31 - 1)
    made = _uniform(lhs=levels(tf, np.zeros((0, 2, 5, 4)), "qint8"))
    assert made.shape == (0, 3, 3, 3)
    # One spatial dimension, and none.
    for shape in ((1, 2, 5), (3, 2)):
        lhs = levels(tf, np.ones(shape), "qint8")
        made = _uniform(lhs=lhs, rhs=lhs, lhs_zero_points=0)
        assert made.shape.rank == len(shape)


def test_hybrid_operands_that_are_no_numbers():
    for value in (np.nan, np.inf, -np.inf):
        made = _uniform(9, lhs=np.full((2, 2, 5, 4), value, np.float32))
        assert made.shape == (2, 3, 3, 3)
    with pytest.raises(Invalid, match="lhs rank must be 2"):
        _uniform(13, lhs=1.0)
    with pytest.raises(Invalid, match="must be 1 .per-channel. or -1"):
        _uniform(13, rhs_quantization_axis=0)
    with pytest.raises(Invalid, match="must be equal"):
        _uniform(13, lhs=np.zeros((2, 3), np.float32))


def test_uniform_shapes_that_are_not_known():
    op, given = rows_of_quantized.uniform_convolutions_cases(tf)[0]
    lhs = given.pop("lhs")
    wanted = tf.bitcast(_uniform(), tf.int32).numpy()
    for spec in (None, [None] * 4):
        signature = [tf.TensorSpec(spec, tf.qint8)]
        run = tf.function(
            lambda x: getattr(tf.raw_ops, op)(lhs=x, **given),
            input_signature=signature,
            autograph=False,
        )
        made = tf.bitcast(run(lhs), tf.int32).numpy()
        np.testing.assert_array_equal(made, wanted)
