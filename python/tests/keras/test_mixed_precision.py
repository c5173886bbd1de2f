"""tf.keras.mixed_precision; the values are what TensorFlow 2.21 with tf_keras gave."""

import numpy as np
import pytest

import headrace as tf

mixed = tf.keras.mixed_precision
layers = tf.keras.layers


@pytest.fixture(autouse=True)
def _global_policy():
    yield
    mixed.set_global_policy(None)


@pytest.mark.parametrize(
    "name, computed, kept",
    [
        ("mixed_float16", "float16", "float32"),
        ("mixed_bfloat16", "bfloat16", "float32"),
        ("float64", "float64", "float64"),
        ("int32", "int32", "int32"),
        ("_infer", None, None),
    ],
)
def test_policies(name, computed, kept):
    policy = mixed.Policy(name)
    assert (policy.compute_dtype, policy.variable_dtype) == (computed, kept)
    assert policy.get_config() == {"name": name} and policy.name == name
    assert repr(mixed.Policy.from_config(policy.get_config())) == f'<Policy "{name}">'


def test_bad_policies():
    for name in ("mixed_foo", "float23"):
        with pytest.raises(ValueError, match=f"Cannot convert value {name} to a mixed"):
            mixed.Policy(name)
    with pytest.raises(TypeError, match="Instead, pass DType.name"):
        mixed.Policy(tf.float16)
    with pytest.raises(TypeError, match="must be a string, but got: 3"):
        mixed.Policy(3)
    with pytest.raises(ValueError, match="floating-point policies"):
        mixed.set_global_policy("int32")
    with pytest.raises(TypeError, match="mixed_foo"):
        layers.Dense(2, dtype="mixed_foo")
    with pytest.raises(NotImplementedError, match="_infer"):
        layers.Dense(2, dtype=mixed.Policy("_infer"))


def test_global_policy():
    assert mixed.global_policy().name == "float32"
    mixed.set_global_policy("mixed_float16")
    dense = layers.Dense(2)
    assert (dense.dtype, dense.variable_dtype) == ("float32", "float32")
    assert dense.compute_dtype == "float16"
    assert dense(tf.ones([1, 3])).dtype == tf.float16
    assert dense.kernel.dtype == dense.kernel.read_value().dtype == tf.float32
    config = dense.get_config()
    assert config["dtype"] == {
        "module": "keras.mixed_precision",
        "class_name": "Policy",
        "config": {"name": "mixed_float16"},
        "registered_name": None,
    }
    mixed.set_global_policy(None)
    again = layers.deserialize(layers.serialize(dense))
    assert again.dtype_policy.name == "mixed_float16"
    assert layers.Dense(2, dtype=tf.float16).get_config()["dtype"] == "float16"


def _reads(layer):
    """The dtypes that a weight has in a call, by each way to read it."""
    w = layer.w
    ways = (w, w + 0, w.value(), w.read_value(), tf.identity(w), w[0])
    ways += (w.sparse_read([0]), w.gather_nd([0]), tf.gather(w, [0]), 2 * w)
    others = (layer.plain, layer.uncast, layer.number)
    return {x.dtype.name for x in ways}, [x.value().dtype.name for x in others]


class _Seen(layers.Layer):
    def build(self, shape):
        self.w = self.add_weight("w", [3], initializer="ones")
        self.plain = tf.Variable([1.0, 2.0, 3.0])
        self.uncast = self.add_weight("u", [3], experimental_autocast=False)
        self.number = self.add_weight("n", [3], dtype="int32")
        self.built_in = (self.w + 0).dtype

    def call(self, x):
        self.found = _reads(self)
        if tf.executing_eagerly():
            assert self.w.numpy().dtype == np.float32
        self.w.assign_add(tf.ones([3]))
        return x * self.w


@pytest.mark.parametrize("traced", [False, True])
def test_weights_are_cast_in_calls(traced):
    layer = _Seen(dtype="mixed_float16")
    call = tf.function(layer) if traced else layer
    out = call(tf.constant([1.0, 2.0, 3.0]))
    assert out.dtype == tf.float16 and out.numpy().tolist() == [2.0, 4.0, 6.0]
    assert layer.found == ({"float16"}, ["float32", "float32", "int32"])
    assert layer.w.value().dtype == layer.built_in == tf.float32
    assert layer.w.numpy().tolist() == [2.0, 2.0, 2.0]


def test_inner_layers_of_another_policy():
    class Outer(layers.Layer):
        def __init__(self):
            super().__init__(dtype="mixed_bfloat16")
            self.inner = layers.Dense(1, dtype="float32")

        def build(self, shape):
            self.w = self.add_weight("w", [], initializer="ones")

        def call(self, x):
            y = self.inner(x)
            assert y.dtype == tf.float32
            return tf.cast(y, self.w.dtype) * self.w

    assert Outer()(tf.ones([1, 2])).dtype == tf.bfloat16
    with pytest.raises(ValueError):  # what a call that fails read in is forgotten
        layers.Dense(1, dtype="mixed_float16")(tf.ones([2]))
    dense = layers.Dense(1, dtype="mixed_float16")
    dense(tf.ones([1, 2]))
    assert (dense.kernel + 0).dtype == tf.float32


@pytest.mark.parametrize(
    "make, inputs, kept",
    [
        (lambda d: layers.BatchNormalization(dtype=d), [2, 3], "float32"),
        (lambda d: layers.LayerNormalization(dtype=d), [2, 3], "float32"),
        (lambda d: layers.GroupNormalization(1, dtype=d), [2, 3], "float32"),
        (lambda d: layers.Embedding(4, 3, dtype=d), [2, 3], "float32"),
        (lambda d: layers.LSTM(3, dtype=d), [2, 3, 4], "float32"),
        (lambda d: layers.GRU(3, dtype=d), [2, 3, 4], "float32"),
        (lambda d: layers.Conv2D(2, 1, dtype=d), [2, 4, 4, 2], "float32"),
        (lambda d: layers.Normalization(dtype=d), [2, 3], "float16"),
        (lambda d: layers.RandomFlip(dtype=d), [2, 4, 4, 2], "float32"),
        (lambda d: layers.PReLU(dtype=d), [2, 3], "float32"),
        (lambda d: layers.EinsumDense("ab,bc->ac", 3, dtype=d), [2, 3], "float32"),
    ],
)
def test_layers_compute_in_half(make, inputs, kept):
    layer = make("mixed_float16")
    assert layer(tf.ones(inputs)).dtype == tf.float16
    assert {w.dtype.name for w in layer.weights if w.dtype.is_floating} <= {kept}


def test_batch_normalization_of_half_keeps_floats():
    layer = layers.BatchNormalization(dtype="float16")
    assert layer(tf.ones([2, 3])).dtype == tf.float16
    assert {w.dtype for w in layer.weights} == {tf.float32}
    layer = layers.LayerNormalization(dtype="float16")
    assert layer(tf.ones([2, 3])).dtype == tf.float16
    assert {w.dtype for w in layer.weights} == {tf.float16}


# --- the scale of losses ---


def _steps(optimizer, gradients):
    v, seen = tf.Variable([1.0, 2.0]), []
    for g in gradients:
        optimizer.get_unscaled_gradients([])
        optimizer.apply_gradients([(tf.constant(g, tf.float32), v)])
        seen.append((v.numpy().tolist(), float(optimizer.loss_scale)))
        seen[-1] += (int(optimizer.dynamic_counter), int(optimizer.iterations))
    return seen


@pytest.mark.parametrize("room", ["optimizers", "optimizers.legacy"])
def test_dynamic_scale(room):
    sgd = (
        tf.keras.optimizers if room == "optimizers" else tf.keras.optimizers.legacy
    ).SGD
    optimizer = mixed.LossScaleOptimizer(
        sgd(1.0), initial_scale=4.0, dynamic_growth_steps=2
    )
    assert (optimizer.initial_scale, optimizer.dynamic) == (4.0, True)
    gradients = [[4, 4], [8, 8], [np.inf, 1], [np.nan, 1], [2, 2], [4, 4]]
    assert _steps(optimizer, gradients) == [
        ([-3.0, -2.0], 4.0, 1, 1),
        ([-11.0, -10.0], 8.0, 0, 2),
        ([-11.0, -10.0], 4.0, 0, 3),
        ([-11.0, -10.0], 2.0, 0, 4),
        ([-13.0, -12.0], 2.0, 1, 5),
        ([-17.0, -16.0], 4.0, 0, 6),
    ]
    v = tf.Variable([-17.0, -16.0])
    optimizer.minimize(lambda: v * v, [v])
    assert v.numpy().tolist() == [17.0, 16.0]
    assert isinstance(optimizer, mixed.LossScaleOptimizer)
    assert isinstance(optimizer.inner_optimizer, sgd)


def test_limits_of_the_scale():
    def scales(initial, rate, gradient):
        sgd = tf.keras.optimizers.SGD(rate)
        optimizer = mixed.LossScaleOptimizer(
            sgd, initial_scale=initial, dynamic_growth_steps=1
        )
        return [s[1] for s in _steps(optimizer, [[gradient, 1.0]] * 3)]

    assert scales(2.0, 1.0, np.inf) == [1.0, 1.0, 1.0]
    assert scales(2.0**126, 0.0, 1.0) == [2.0**127] * 3


def test_fixed_scale():
    optimizer = mixed.LossScaleOptimizer(
        tf.keras.optimizers.SGD(1.0), dynamic=False, initial_scale=8
    )
    assert optimizer.dynamic_growth_steps is optimizer.dynamic_counter is None
    assert float(optimizer.get_scaled_loss(tf.constant(2.0))) == 16.0
    assert float(optimizer.get_scaled_loss(lambda: tf.constant(2.0))()) == 16.0
    slices = tf.IndexedSlices(tf.constant([[4.0]]), tf.constant([0]))
    a, b, c = optimizer.get_unscaled_gradients([tf.constant([4.0]), None, slices])
    assert (a.numpy().tolist(), b, c.values.numpy().tolist()) == ([0.5], None, [[0.5]])
    v = tf.Variable([1.0, 2.0])
    optimizer.apply_gradients([(tf.constant([np.inf, 1.0]), v)])
    assert v.numpy().tolist() == [-np.inf, 1.0] and int(optimizer.iterations) == 1


def test_tapes_of_programs():
    optimizer = mixed.LossScaleOptimizer(tf.keras.optimizers.SGD(1.0))
    v = tf.Variable(3.0, dtype=tf.float32)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = optimizer.get_scaled_loss(v * v)
        found = optimizer.get_unscaled_gradients(tape.gradient(loss, [v]))
        optimizer.apply_gradients(zip(found, [v]))
        return found[0]

    assert float(step()) == 6.0 and float(v) == -3.0
    with tf.GradientTape() as tape:
        loss = v * v
    optimizer.minimize(loss, [v], tape=tape)
    assert float(v) == 3.0


def test_configuration_and_attributes():
    optimizer = mixed.LossScaleOptimizer(tf.keras.optimizers.SGD(1.0))
    made = tf.keras.optimizers.serialize(optimizer)
    assert made["class_name"] == made["registered_name"] == "LossScaleOptimizerV3"
    config = made["config"]
    inner = config.pop("inner_optimizer")
    assert (inner["class_name"], inner["config"]["learning_rate"]) == ("SGD", 1.0)
    assert config == {
        "dynamic": True,
        "initial_scale": 32768.0,
        "dynamic_growth_steps": 2000,
    }
    again = tf.keras.optimizers.deserialize(tf.keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    optimizer.learning_rate = 0.5
    assert float(optimizer.inner_optimizer.learning_rate) == float(optimizer.lr) == 0.5


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"inner_optimizer": 3}, TypeError, "must be an instance of"),
        ({"dynamic": False}, ValueError, '"initial_scale" must be specified'),
        ({"dynamic": 3}, TypeError, "must be a bool, but got: 3"),
        (
            {"dynamic": False, "initial_scale": 2, "dynamic_growth_steps": 3},
            ValueError,
            "must be None",
        ),
        (
            {"inner_optimizer": mixed.LossScaleOptimizer(tf.keras.optimizers.SGD())},
            TypeError,
            "cannot wrap another",
        ),
    ],
)
def test_bad_arguments(arguments, error, text):
    arguments = {"inner_optimizer": tf.keras.optimizers.SGD(), **arguments}
    with pytest.raises(error, match=text):
        mixed.LossScaleOptimizer(**arguments)


def test_checkpoints(tmp_path):
    optimizer = mixed.LossScaleOptimizer(tf.keras.optimizers.legacy.Adam(1.0))
    v = tf.Variable([1.0, 2.0])
    _ = [optimizer.get_unscaled_gradients([])]
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    path = tf.train.Checkpoint(o=optimizer, v=v).save(str(tmp_path / "ck"))
    names = {n for n, _ in tf.train.list_variables(path)}
    tail = "/.ATTRIBUTES/VARIABLE_VALUE"
    wanted = ("o/loss_scale/current_loss_scale", "o/loss_scale/good_steps", "o/iter")
    wanted += ("v/.OPTIMIZER_SLOT/o/m", "v/.OPTIMIZER_SLOT/o/v")
    assert names >= {w + tail for w in wanted}
    other = mixed.LossScaleOptimizer(tf.keras.optimizers.legacy.Adam(1.0))
    tf.train.Checkpoint(o=other, v=v).restore(path)
    assert int(other.dynamic_counter) == int(other.iterations) == 1


# --- training ---


def _weights(model):
    random = np.random.RandomState(7)
    model.set_weights(
        [
            random.randn(*w.shape).astype("float32") * 0.3
            if len(w.shape) > 1
            else np.ones(w.shape, "float32") * 0.1
            for w in model.get_weights()
        ]
    )


_TRAINED = {
    "mixed_float16": ([1.13703, 1.090208, 1.02539], [0.91682, 0.012976, 0.070199]),
    "mixed_bfloat16": ([1.137105, 1.090057, 1.025071], [0.91558, 0.013266, 0.071156]),
    "float16": ([1.136719, 1.089844, 1.025391], [0.917181, 0.012918, 0.069901]),
    "float64": ([1.137019, 1.090231, 1.025357], [0.917048, 0.012934, 0.070017]),
}


@pytest.mark.parametrize("name", _TRAINED)
def test_fit(name):
    mixed.set_global_policy(name)
    model = tf.keras.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(3),
            layers.Activation("softmax", dtype="float32"),
        ]
    )
    _weights(model)
    model.compile(tf.keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    scaled = isinstance(model.optimizer, mixed.LossScaleOptimizer)
    assert scaled == (name == "mixed_float16")
    random = np.random.RandomState(1)
    x, y = random.randn(32, 6).astype("float32"), random.randint(0, 3, 32)
    history = model.fit(x, y, batch_size=8, epochs=3, verbose=0, shuffle=False)
    losses, first = _TRAINED[name]
    # Sums of bfloat16 round to three digits, in an order of each library's own.
    close = 2e-3 if "bfloat16" in name else 2e-4
    np.testing.assert_allclose(history.history["loss"], losses, rtol=close)
    np.testing.assert_allclose(model.predict(x[:1], verbose=0)[0], first, rtol=2e-2)


def test_whole_models(tmp_path):
    mixed.set_global_policy("mixed_float16")
    model = tf.keras.Sequential([layers.Input((6,)), layers.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 6]), np.ones([4, 2]), verbose=0)
    mixed.set_global_policy(None)
    for name in ("m.keras", "m.h5"):
        if name == "m.h5":
            pytest.importorskip("h5py")
        model.save(tmp_path / name)
        again = tf.keras.models.load_model(tmp_path / name)
        assert again.layers[-1].dtype_policy.name == "mixed_float16"
        assert again(tf.ones([1, 6])).dtype == tf.float16
        np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])
