"""What array operations say of shapes that are known in part, and what they refuse."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
raw = tf.raw_ops


def _unknown(shape=None, dtype=tf.float32):
    return v1.placeholder(dtype, shape)


def _shape(tensor):
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def test_batches_of_unknown_pads():
    """The block alone says what becomes of the batch."""
    with tf.Graph().as_default():
        pads = _unknown(dtype=tf.int32)
        inside = _unknown([24, 5, None, 7])
        assert _shape(tf.batch_to_space(inside, [2, 3], pads)) == [4, None, None, 7]
        assert _shape(tf.space_to_batch(inside, [2, 3], pads)) == [144, None, None, 7]
        assert _shape(tf.batch_to_space(inside, pads, [[0, 0]] * 2))[0] is None
        for old in (
            raw.BatchToSpace(input=_unknown(), crops=pads, block_size=2),
            raw.SpaceToBatch(input=_unknown(), paddings=pads, block_size=2),
            v1.batch_to_space(_unknown(), pads, block_size=2),
        ):
            assert _shape(old) == [None] * 4
        with pytest.raises(ValueError, match="not divisible"):
            tf.batch_to_space(_unknown([25, 5, 5, 1]), [2, 3], pads)
        with pytest.raises(ValueError, match="rank 4 but is rank 3"):
            raw.BatchToSpace(input=_unknown([4, 5, 5]), crops=pads, block_size=2)


def test_concat_along_an_unknown_axis():
    with tf.Graph().as_default():
        axis = _unknown(dtype=tf.int32)
        some = _unknown([2, 3])
        assert _shape(tf.concat([_unknown(), some], axis)) == [None, None]
        with pytest.raises(ValueError, match="rank 2 but is rank 3"):
            tf.concat([some, _unknown(), _unknown([2, 3, 4])], axis)
        with pytest.raises(ValueError, match="concatenate scalars"):
            tf.concat([_unknown(), _unknown([])], axis)


def test_concat_offset_checks_when_it_runs():
    with tf.Graph().as_default():
        made = raw.ConcatOffset(concat_dim=0, shape=[[[1, 2]], [[1, 2]]])
        with (
            pytest.raises(tf.errors.InvalidArgumentError, match="should be a vector"),
            v1.Session() as session,
        ):
            session.run(made)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar integer"):
        raw.ConcatOffset(concat_dim=[0], shape=[[1, 2], [1, 2]])


def test_parallel_concat_believes_its_attribute_until_it_runs():
    with pytest.raises(tf.errors.InvalidArgumentError, match="0th dimension of value"):
        tf.function(lambda: raw.ParallelConcat(values=[[1]], shape=0))()
    with pytest.raises(tf.errors.InvalidArgumentError, match="of 1 values"):
        tf.function(lambda: raw.ParallelConcat(values=[[1]], shape=[2]))()


def test_whole_dimensions_beside_unknown_indices():
    signature = [tf.TensorSpec([5, 6, 7]), tf.TensorSpec([], tf.int32)]

    def shape(slicing):
        made = tf.function(slicing, input_signature=signature)
        return made.get_concrete_function().output_shapes.as_list()

    assert shape(lambda x, i: x[i, ::-1]) == [6, 7]
    assert shape(lambda x, i: x[i:, ::4, ::-2]) == [None, 2, 4]
    assert shape(lambda x, i: x[..., tf.newaxis, i, ::3]) == [5, 1, 3]
    assert shape(lambda x, i: x[::2, 1:i]) == [3, None, 7]


def test_dimensions_slice():
    x = tf.constant([1, 2, 3, 4])
    size = v1.Dimension
    assert x[size(1) : size(None) : size(2)].numpy().tolist() == [2, 4]
    assert x[size(2)].numpy() == 3
    with pytest.raises(TypeError, match="valid indices"):
        x[size(None)]


def test_lists_of_one_length():
    """Lists that share their length are not dealt out anew."""
    places, rows = [tf.constant([0])] * 3, [tf.constant([1])]
    with pytest.raises(ValueError, match="length 1 must match length 3 of argument"):
        raw.DynamicStitch(indices=places, data=rows)
    with pytest.raises(ValueError, match="List argument 'data' to 'dynamic_stitch'"):
        tf.function(lambda: tf.dynamic_stitch(places[:1], rows * 2))()


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_unravel_counts_in_its_own_type(dtype):
    sizes = tf.constant([dtype.max // 2, 3], dtype)
    with pytest.raises(tf.errors.InvalidArgumentError, match="integer overflow"):
        tf.unravel_index(tf.constant(3, dtype), sizes)


def test_places_out_of_range_are_passed_over():
    places = [[2], [9]]
    assert tf.gather_nd(
        [5, 6, 7], places, bad_indices_policy="IGNORE"
    ).numpy().tolist() == [7, 0]
    assert tf.gather_nd(
        tf.Variable([5, 6, 7]), places, bad_indices_policy="IGNORE"
    ).numpy().tolist() == [7, 0]
    assert tf.gather_nd(
        [[5, 6, 7]], [places], batch_dims=1, bad_indices_policy="IGNORE"
    ).numpy().tolist() == [[7, 0]]
    assert tf.scatter_nd(places, [1, 2], [3], "IGNORE").numpy().tolist() == [0, 0, 1]
    assert tf.tensor_scatter_nd_max(
        [1, 1, 1], places, [4, 5], bad_indices_policy="IGNORE"
    ).numpy().tolist() == [1, 1, 4]
    for policy in ("", "ERROR", "DEFAULT"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not index"):
            tf.gather_nd([5, 6, 7], places, bad_indices_policy=policy)


def test_axes_of_quantization():
    x = tf.reshape(tf.range(6.0), [2, 3])
    low, high = [0.0] * 3, [1.0, 3.0, 5.0]
    front, back = (
        tf.quantization.quantize_and_dequantize_v2(
            x, low, high, range_given=True, axis=axis
        )
        for axis in (1, -1)
    )
    np.testing.assert_array_equal(front, back)
    ways = [
        tf.quantization.quantize(x, low, high, tf.quint8, axis=axis)
        for axis in (1, -1, -3)
    ]
    for other in ways[1:]:
        np.testing.assert_array_equal(ways[0].output, other.output)
    again = tf.quantization.dequantize(ways[0].output, low, high, axis=-1)
    np.testing.assert_allclose(again, np.minimum(x, high), atol=0.02)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least rank 4"):
        tf.quantization.quantize_and_dequantize_v2(x, 0.0, 1.0, axis=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="less than input dim"):
        raw.Dequantize(input=ways[0].output, min_range=low, max_range=high, axis=7)
    with pytest.raises(ValueError, match="kint32max"):
        tf.function(
            lambda: raw.QuantizeAndDequantizeV2(
                input=[1.0], input_min=0.0, input_max=1.0, axis=2**31 - 1
            )
        )()


def test_parts_of_variables_are_assigned():
    variable = tf.Variable([[1, 2], [3, 4]])
    after = v1.assign(variable[:, 1], [8, 9])
    assert after.numpy().tolist() == [[1, 8], [3, 9]]


def test_reads_of_variables_at_places_in_graphs():
    with tf.Graph().as_default():
        variable = v1.get_variable("v", initializer=[[1, 2], [3, 4]], use_resource=True)
        found = tf.gather_nd(variable, [[1, 0]])
        assert found.op.type == "Identity"
        assert found.op.inputs[0].op.type == "ResourceGatherNd"


def test_handles_are_no_constants():
    with pytest.raises(tf.errors.InvalidArgumentError, match="resource variable"):
        raw.GuaranteeConst(input=tf.Variable(1).handle)


def test_steps_of_unknown_shape():
    with tf.Graph().as_default():
        start, stop, count = _unknown(), _unknown(), _unknown(dtype=tf.int32)
        made = tf.linspace(start, stop, count, axis=-1)
        with v1.Session() as session:
            rows = session.run(made, {start: [0.0, 1.0], stop: [2.0, 5.0], count: 3})
    assert rows.tolist() == [[0, 1, 2], [1, 3, 5]]


def test_sobol_numbers_are_counted():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"num_results\*dim"):
        tf.math.sobol_sample(3000, 10**6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"num_results\+skip"):
        tf.math.sobol_sample(1, 5, 2**31 - 4)


def test_slices_by_strides_of_other_kinds():
    """Steps are read in their own type, and no more of them than there are."""
    with tf.Graph().as_default():
        x = _unknown([9, 8])
        for dtype in (tf.int16, tf.int32, tf.int64):
            places = _unknown([2], dtype)
            steps = tf.constant([2, -3], dtype)
            whole = raw.StridedSlice(
                input=x,
                begin=places,
                end=places,
                strides=steps,
                begin_mask=3,
                end_mask=3,
            )
            assert _shape(whole) == [5, 3]
        few = raw.StridedSlice(
            input=x,
            begin=_unknown(dtype=tf.int32),
            end=_unknown([2], tf.int32),
            strides=[1],
            begin_mask=3,
            end_mask=3,
        )
        assert _shape(few) == [None, None]
