"""What layers begin with where all of TensorFlow 1's ways hold: values by op seeds, nodes
and configurations.

Values are what TensorFlow 2.21 with tf_keras (TF_USE_LEGACY_KERAS=1) printed for PROGRAM.
"""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import headrace as tf

PROGRAM = textwrap.dedent(
    """
    import json
    import headrace as tf

    tf.compat.v1.disable_v2_behavior()
    layers, keras = tf.keras.layers, tf.compat.v1.keras


    class Own(layers.Layer):
        def build(self, input_shape):
            self.a = self.add_weight(name="a", shape=(2,))
            super().build(input_shape)

        def call(self, x):
            return x * self.a


    found = {}

    def begin(name, *added):
        keras.backend.clear_session()
        tf.compat.v1.set_random_seed(7)
        model = keras.Sequential(list(added))
        found[name] = [w.ravel().tolist() for w in model.get_weights()]
        return model

    begin("two", layers.Dense(2, input_shape=(2,)), layers.Dropout(0.5), layers.Dense(1))
    begin("own", Own(input_shape=(2,)))
    begin("recurrent", layers.LSTM(1, input_shape=(3, 2)))
    begin("embedding", layers.Embedding(2, 2, input_length=3))
    for name in ("he_normal", "orthogonal", "truncated_normal", "identity"):
        begin(name, layers.Dense(2, kernel_initializer=name, input_shape=(2,)))
    made = layers.Dense(2, input_shape=(2,), name="d")
    begin("nodes", made)
    found["nodes"] = [
        [op.name, op.type] for op in tf.compat.v1.get_default_graph().get_operations()
    ][:17]
    config = made.get_config()
    parts = [config["kernel_initializer"], config["bias_initializer"]]
    found["config"] = [[p["class_name"], p["config"]] for p in parts]
    found["module"] = config["kernel_initializer"].get("module")
    again = layers.Dense.from_config(config)
    found["class"] = type(again.kernel_initializer).__name__
    print(json.dumps(found))
    """
)


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


VALUES = {
    "two": [
        [0.6215054, -1.0338376, -0.1008966, 0.874044],
        [0, 0],
        [-0.6222274, 0.5285407],
        [0],
    ],
    "own": [[0.6215054, -1.0338376]],
    "recurrent": [
        [0.507457, -0.8441248, -0.0823817, 0.713654]
        + [-0.272546, -0.6291459, 0.9218395, -0.1573091],
        [-0.2820433, 0.585168, 0.6123608, -0.4506042],
        [0, 1, 0, 0],
    ],
    "embedding": [[0.0253729, -0.0422062, -0.0041191, 0.0356827]],
    "he_normal": [[0.4020928, 0.7543979, -1.1112674, 0.8826044], [0, 0]],
    "orthogonal": [[0.3402445, 0.940337, -0.940337, 0.3402445], [0, 0]],
    "truncated_normal": [[0.0176846, 0.0331794, -0.048875, 0.0388181], [0, 0]],
    "identity": [[1, 0, 0, 1], [0, 0]],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_by_op_seeds(found, name):
    assert len(found[name]) == len(VALUES[name])
    for values, expected in zip(found[name], VALUES[name]):
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


def test_nodes_of_a_layer(found):
    first = "d/kernel/Initializer/random_uniform"
    assert found["nodes"][:15] == [
        ["d_input", "Placeholder"],
        [f"{first}/shape", "Const"],
        [f"{first}/min", "Const"],
        [f"{first}/max", "Const"],
        [f"{first}/RandomUniform", "RandomUniform"],
        [f"{first}/sub", "Sub"],
        [f"{first}/mul", "Mul"],
        [first, "AddV2"],
        ["d/kernel", "VarHandleOp"],
        ["d/kernel/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp"],
        ["d/kernel/Assign", "AssignVariableOp"],
        ["d/kernel/Read/ReadVariableOp", "ReadVariableOp"],
        ["d/bias/Initializer/zeros", "Const"],
        ["d/bias", "VarHandleOp"],
        ["d/bias/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp"],
    ]


def test_configurations(found):
    glorot = ["GlorotUniform", {"seed": None, "dtype": "float32"}]
    assert found["config"] == [glorot, ["Zeros", {"dtype": "float32"}]]
    assert found["class"] == "GlorotUniform"
    assert found["module"] == "keras.initializers"


def test_functions_of_the_backend_take_seeds_that_numpy_draws():
    backend = tf.keras.backend
    np.random.seed(2)
    with tf.Graph().as_default() as graph:
        for name in ("random_normal", "random_uniform", "truncated_normal"):
            getattr(backend, name)((2,))
        backend.random_bernoulli((2,))
        backend.dropout(tf.ones((2,)), 0.5)
        backend.random_normal_variable((2,), 0.0, 1.0)
        backend.random_uniform_variable((2,), 0.0, 1.0)
        backend.random_normal((2,), seed=4)
        seeds = [
            op.get_attr("seed2")
            for op in graph.get_operations()
            if op.type in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
        ]
    drawn = [6392335, 7960136, 7424466, 1606731, 961799, 345035426, 663257521]
    assert seeds == [*drawn, 4]
    tf.random.set_seed(1)
    np.random.seed(2)
    found = backend.random_normal((2,))
    np.testing.assert_allclose(found, [1.268882, -0.8719339], rtol=1e-5)
