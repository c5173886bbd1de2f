"""What KerasTensors say of themselves, what they become of, and layers of their members.

The literals are what tf_keras 2.21 printed for the same lines.
"""

import json

import headrace as tf
import numpy as np
import pytest

keras = tf.keras


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


def test_names():
    x = keras.Input([3])
    spec = "type_spec=TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)"
    for layer, name, made_by in (
        (keras.layers.Dense(2, name="d"), "d/BiasAdd:0", "d"),
        (keras.layers.Dense(2, name="e", activation="relu"), "e/Relu:0", "e"),
        (
            keras.Sequential([keras.layers.Dense(2)]),
            "sequential/dense/BiasAdd:0",
            "sequential",
        ),
    ):
        y = layer(x)
        described = f"description=\"created by layer '{made_by}'\""
        assert str(y) == f"KerasTensor({spec}, name='{name}', {described})"
        assert y.name == name
    same = keras.layers.Lambda(lambda v: v)(x)
    assert same.name == "Placeholder:0"
    assert tf.nn.softmax(x).name == "tf.nn.softmax/Softmax:0"
    assert x[:, 0].name == "tf.__operators__.getitem/strided_slice:0"
    assert tf.shape(x).name == "tf.compat.v1.shape/Shape:0"


def test_scopes_of_layers():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        layer = keras.layers.Dense(2, name="dd")
        assert [layer(x).name, layer(x).name] == ["dd/BiasAdd:0", "dd_1/BiasAdd:0"]
        with tf.name_scope("outer"):
            assert keras.layers.Dense(2, name="in")(x).name == "outer/in/BiasAdd:0"
        assert tf.compat.v1.layers.Dense(2, name="old")(x).name == "old/BiasAdd:0"
    model = keras.Sequential([keras.layers.Dense(2, name="w")], name="m")

    @tf.function
    def call(x):
        return model(x)

    graph = call.get_concrete_function(tf.ones([1, 3])).graph
    names = [op.name for op in graph.get_operations()]
    assert {"m/w/MatMul/ReadVariableOp", "m/w/MatMul", "m/w/BiasAdd"} <= set(names)
    with pytest.raises(ValueError, match="is not a valid root scope name"):
        keras.layers.Dense(2, name="my layer")(keras.Input([3]))


def test_what_they_are_not():
    x = keras.Input([3])
    assert tf.is_tensor(x)
    assert not isinstance(x, tf.Tensor)
    assert repr(x.ref()) == (
        "<Reference wrapping <KerasTensor: shape=(None, 3) dtype=float32 (created by "
        "layer 'input_1')>>"
    )
    assert x.ref().deref() is x
    for wrong, text in (
        (lambda: len(x), "do not implement `__len__`"),
        (lambda: bool(x), "if you try asserting a symbolic input/output directly"),
        (lambda: x.op, "do not implement `op`"),
        (
            lambda: hash(x),
            r"Tensors are unhashable \(this tensor: KerasTensor\(type_spec",
        ),
        (lambda: np.array(x), "You are passing KerasTensor"),
        (lambda: tf.raw_ops.Add(x=x, y=x), "an intermediate TF-Keras symbolic"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()


def layers_of(inputs, outputs):
    model = keras.Model(inputs, outputs)
    config = model.get_config()
    again = keras.Model.from_config(config)
    return json.loads(json.dumps(config["layers"][1:])), again


def test_functions_say_what_they_were_built_for():
    x = keras.Input([3])
    for made, shape in (
        (tf.add(x, 2.0), [None, 3]),
        (tf.stack([x, x], axis=1), [[None, 3], [None, 3]]),
        (1.0 - x, []),
    ):
        (layer,), again = layers_of(x, made)
        assert layer["build_config"] == {"input_shape": shape}
        assert list(layer)[:5] == [
            "module",
            "class_name",
            "config",
            "registered_name",
            "build_config",
        ]
        assert again(tf.ones([1, 3])).dtype == tf.float32
    (layer,), _ = layers_of(x, tf.norm(x, axis=1))
    assert layer["config"]["function"] == "compat.v1.norm"
    assert layer["inbound_nodes"] == [
        [
            "input_1",
            0,
            0,
            {"ord": "euclidean", "axis": 1, "keepdims": None, "name": None},
        ]
    ]


def test_members_of_ragged_tensors():
    r = keras.Input([None], ragged=True)
    assert type(r).__name__ == "RaggedKerasTensor"
    assert r.ragged_rank == 1
    (layer,), again = layers_of(r, r.to_tensor(default_value=1.0))
    assert layer == {
        "module": "tf_keras.src.layers.core.tf_op_layer",
        "class_name": "InstanceMethod",
        "config": {
            "name": "input.to_tensor",
            "trainable": True,
            "dtype": "float32",
            "attr_name": "to_tensor",
        },
        "registered_name": "InstanceMethod",
        "build_config": {"input_shape": [None, None]},
        "name": "input.to_tensor",
        "inbound_nodes": [
            ["input_1", 0, 0, {"args": [], "kwargs": {"default_value": 1.0}}]
        ],
    }
    rows = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert again(rows).numpy().tolist() == [[1, 2], [3, 1]]
    made, again = layers_of(r, r.with_values(r.values * 2.0))
    assert [layer["class_name"] for layer in made] == [
        "InstanceProperty",
        "TFOpLambda",
        "InstanceMethod",
    ]
    assert made[2]["inbound_nodes"] == [
        ["input_1", 0, 0, {"args": [["tf.math.multiply", 0, 0]], "kwargs": {}}]
    ]
    assert again(rows).to_list() == [[2, 4], [6]]
    assert layers_of(r, r.row_lengths())[1](rows).numpy().tolist() == [2, 1]


def test_members_of_sparse_tensors():
    s = keras.Input([4], sparse=True)
    assert type(s).__name__ == "SparseKerasTensor"
    (layer,), again = layers_of(s, s.values)
    assert layer["config"]["attr_name"] == "values"
    assert layer["build_config"] == {"input_shape": [None, 4]}
    value = tf.SparseTensor([[0, 1]], [5.0], [1, 4])
    assert again(value).numpy().tolist() == [5]
    doubled = keras.Model(s, s.with_values(s.values * 2.0))(value)
    assert tf.sparse.to_dense(doubled).numpy().tolist() == [[0, 10, 0, 0]]


def test_members_that_a_config_may_not_name():
    for kind in ("InstanceMethod", "InstanceProperty"):
        config = {
            "module": "tf_keras.src.layers.core.tf_op_layer",
            "class_name": kind,
            "config": {"name": "q", "attr_name": "__class__"},
            "registered_name": kind,
        }
        with pytest.raises(ValueError, match="no '__class__' is known"):
            keras.layers.deserialize(config)


def test_built_by_a_config():
    class Scaled(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight("w", [shape[-1]])
            super().build(shape)

        def call(self, x):
            return x * self.w

    layer = Scaled()
    assert layer.get_build_config() is None
    layer(tf.ones([2, 3]))
    assert layer.get_build_config() == {"input_shape": (2, 3)}
    other = Scaled()
    other.build_from_config({"input_shape": (2, 3)})
    assert (other.built, other.w.shape) == (True, [3])
    with pytest.raises(TypeError, match="not subscriptable"):
        Scaled().build_from_config(None)
    with pytest.raises(KeyError, match="input_shape"):
        Scaled().build_from_config({})


def test_softmax_of_no_axis():
    made = keras.layers.Softmax(axis=None)(tf.ones([2, 3]))
    assert made.numpy().tolist() == [[0.1666666716337204] * 3] * 2
