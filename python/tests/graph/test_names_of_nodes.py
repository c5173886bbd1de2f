"""The nodes of common calls are called as by TensorFlow, by which programs fetch them."""

import headrace as tf
import pytest

v1 = tf.compat.v1

# What TensorFlow 2.21 makes of each.
CALLS = {
    "tf.cast(1, tf.float32)": "Cast/x Cast",
    "tf.cast([1, 2], tf.int64)": "Cast/x Cast",
    "tf.cast(2.5, tf.float32)": "Cast/x",
    "tf.cast(x, tf.int32)": "Cast",
    "tf.cast(1, tf.float32, name='c')": "c/x c",
    "v1.to_float(1)": "ToFloat/x ToFloat",
    "tf.add(x, 1.0)": "Add/y Add",
    "x + 1.0": "add/y add",
    "1.0 + x": "add/x add",
    "2.0 / x": "truediv/x truediv",
    "tf.math.divide_no_nan(x, 2.0)": "div_no_nan/y div_no_nan",
    "tf.math.scalar_mul(2.0, x)": "scalar_mul/scalar scalar_mul",
    "tf.math.count_nonzero(x)": "count_nonzero/zeros count_nonzero/NotEqual "
    "count_nonzero/Cast count_nonzero/Const count_nonzero/Sum",
    "tf.fill([2, 3], 1.0)": "Fill/dims Fill/value Fill",
    "tf.one_hot(i, 3)": "one_hot/on_value one_hot/off_value one_hot/depth one_hot",
    "tf.one_hot(i, 3, 1.0, 0.0)": "one_hot/Const one_hot/Const_1 one_hot/depth one_hot",
    "tf.range(k)": "range/start range/delta range",
    "tf.range(1, k, 2)": "range/start range/delta range",
    "tf.range(3)": "range/start range/limit range/delta range",
    "tf.matmul(x, [[1.0], [2.0], [3.0]])": "MatMul/b MatMul",
    "tf.concat([x], 0)": "concat/concat_dim concat/concat",
    "tf.concat([x, x], 0)": "concat/axis concat",
    "tf.stack([1, k])": "stack/0 stack",
    "tf.stack([x, x])": "stack",
    "tf.convert_to_tensor([k, 1])": "packed/1 packed",
    "tf.size(x)": "Size",
    "x[k]": "add/y add strided_slice/stack strided_slice/stack_1 "
    "strided_slice/stack_2 strided_slice",
    "tf.nn.embedding_lookup(x, i)": "embedding_lookup/axis embedding_lookup "
    "embedding_lookup/Identity",
    "tf.nn.batch_normalization(x, 0.0, 1.0, 0.0, 1.0, 0.01)": "batchnorm/Rsqrt/x "
    "batchnorm/Rsqrt batchnorm/mul/y batchnorm/mul batchnorm/mul_1 batchnorm/mul_2/x "
    "batchnorm/mul_2 batchnorm/sub/x batchnorm/sub batchnorm/add",
    "tf.sparse.SparseTensor([[0, 0]], [1.0], [1, 1])": "SparseTensor/indices "
    "SparseTensor/values SparseTensor/dense_shape",
    "tf.image.convert_image_dtype(u, tf.float32)": "convert_image/Cast convert_image/y "
    "convert_image",
}


@pytest.mark.parametrize("call", CALLS)
def test_nodes_have_upstreams_names(call):
    with tf.Graph().as_default() as graph:
        given = {
            "x": v1.placeholder(tf.float32, [2, 3]),
            "i": v1.placeholder(tf.int32, [3]),
            "k": v1.placeholder(tf.int32, []),
            "u": v1.placeholder(tf.uint8, [4, 4, 3]),
        }
        before = len(graph.get_operations())
        eval(call, {"tf": tf, "v1": v1, **given})
        made = [op.name for op in graph.get_operations()[before:]]
    assert " ".join(made) == CALLS[call]


def test_a_name_is_fetched():
    with tf.Graph().as_default(), v1.Session() as session:
        tf.cast(3, tf.float32)
        assert session.run(["Cast/x:0", "Cast:0"]) == [3, 3.0]
