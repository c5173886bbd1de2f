"""What layers, models and optimizers tell of their calls, and what they put in stores."""

import json
import zipfile

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
layers = keras.layers


def _message(error, function):
    with pytest.raises(error) as caught:
        function()
    return str(caught.value)


def test_masks_of_calls():
    embedding = layers.Embedding(5, 4, mask_zero=True)
    x = embedding(keras.Input((None,)))
    lstm = layers.LSTM(3, return_sequences=True)
    lstm(x)
    assert embedding.get_input_mask_at(0) is None
    for mask in (embedding.get_output_mask_at(0), lstm.input_mask, lstm.output_mask):
        assert repr(mask) == "<KerasTensor: shape=(None, None) dtype=bool>"
    both = layers.Add()
    both([x, embedding(keras.Input((None,)))])
    assert [m.dtype for m in both.input_mask] == [tf.bool, tf.bool]
    last = layers.LSTM(3, return_state=True)
    last(x)
    assert last.output_mask == [None, None, None]


def test_calls_that_there_were_not():
    dense = layers.Dense(2, name="d")
    assert _message(RuntimeError, lambda: dense.get_input_mask_at(0)) == (
        "The layer d has never been called and thus has no defined input."
    )
    assert _message(AttributeError, lambda: dense.output_shape) == (
        'The layer "d" has never been called and thus has no defined output shape.'
    )
    assert _message(AttributeError, lambda: dense.input) == (
        "Layer d is not connected, no input to return."
    )
    dense(keras.Input((3,)))
    assert _message(ValueError, lambda: dense.get_input_at(3)) == (
        "Asked to get input at node 3, but the layer has only 1 inbound nodes."
    )
    assert _message(ValueError, lambda: dense.get_output_shape_at(3)) == (
        "Asked to get output shape at node 3, but the layer has only 1 inbound nodes."
    )
    other = layers.Conv1D(2, 1, name="c")
    other(keras.Input((3, 4)))
    other(keras.Input((5, 4)))
    assert _message(AttributeError, lambda: other.input_shape) == (
        'The layer "c" has multiple inbound nodes, with different input shapes. Hence '
        'the notion of "input shape" is ill-defined for the layer. Use '
        "`get_input_shape_at(node_index)` instead."
    )


def test_outbound_nodes():
    first, second = layers.Dense(2), layers.Dense(3)
    x = first(keras.Input((3,)))
    assert first.outbound_nodes == []
    second(x)
    assert [node.layer for node in first.outbound_nodes] == [second]


SIGNATURES = [
    (lambda: layers.Dense(2), (None, 3), "float32", (None, 2), "float32"),
    (lambda: layers.Dense(2, dtype="float64"), (5, 3), "float32", (5, 2), "float64"),
    (lambda: layers.Embedding(4, 2), (None, 3), "int32", (None, 3, 2), "float32"),
    (lambda: layers.StringLookup(), (None, 3), "string", (None, 3), "int64"),
    (
        lambda: layers.StringLookup(invert=True, vocabulary=["a"]),
        *((None, 3), "int64", (None, 3), "string"),
    ),
    (
        lambda: layers.StringLookup(output_mode="multi_hot", vocabulary=["a"]),
        *((None, 3), "string", (None, 2), "float32"),
    ),
    (lambda: layers.Normalization(), (None, 3), "int64", (None, 3), "int64"),
    (lambda: layers.CategoryEncoding(3), (None, 3), "int64", (None, 3), "int64"),
    (
        lambda: layers.Hashing(3, output_mode="multi_hot"),
        *((None, 3), "int64", (None, 3), "float32"),
    ),
    (
        lambda: layers.TextVectorization(output_sequence_length=7, vocabulary=["a"]),
        *((None, 1), "string", (None, 7), "int64"),
    ),
]


@pytest.mark.parametrize("make, shape, dtype, out, out_dtype", SIGNATURES)
def test_output_signature(make, shape, dtype, out, out_dtype):
    found = make().compute_output_signature(tf.TensorSpec(shape, dtype))
    assert found == tf.TensorSpec(out, out_dtype)


def test_output_signature_of_structures():
    class Two(layers.Layer):
        def call(self, x):
            return {"a": x, "b": [tf.cast(x, tf.int32)]}

    spec = tf.TensorSpec((None, 3), tf.float32)
    found = Two().compute_output_signature(spec)
    assert found == {"a": spec, "b": [spec]}
    told = _message(TypeError, lambda: Two().compute_output_signature((1, 2)))
    assert told == "Only TensorSpec signature types are supported. Received: 1."


def test_own_variables():
    layer = layers.BatchNormalization()
    layer.build((None, 2))
    store = {}
    layer.save_own_variables(store)
    assert {k: v.tolist() for k, v in store.items()} == {
        **{"0": [1.0, 1.0], "1": [0.0, 0.0]},
        **{"2": [0.0, 0.0], "3": [1.0, 1.0]},
    }
    layer.load_own_variables({k: v + 2.0 for k, v in store.items()})
    assert layer.moving_variance.numpy().tolist() == [3.0, 3.0]
    mean = keras.metrics.Mean(name="mean")
    mean.load_own_variables({"0": 4.0, "1": 2.0})
    assert mean.result() == 2.0
    assert _message(ValueError, lambda: mean.load_own_variables({})) == (
        "Layer 'mean' expected 2 variables, but received 0 variables during loading. "
        "Expected: ['total:0', 'count:0']"
    )
    wrong = {"0": np.zeros(3), "1": np.zeros(2), "2": np.zeros(2), "3": np.zeros(2)}
    told = _message(ValueError, lambda: layer.load_own_variables(wrong))
    assert told.endswith(
        "gamma:0': Shape mismatch.The variable shape (2,), and the assigned value shape "
        "(3,) are incompatible."
    )
    assert layer.gamma.numpy().tolist() == [3.0, 3.0]


def test_own_variables_of_optimizers():
    dense = layers.Dense(2)
    dense.build((None, 3))
    optimizer = keras.optimizers.Adam(0.5)
    optimizer.build(dense.trainable_variables)
    optimizer.iterations.assign(7)
    store = {}
    optimizer.save_own_variables(store)
    shapes = [np.shape(store[str(i)]) for i in range(5)]
    assert shapes == [(), (3, 2), (3, 2), (2,), (2,)]
    other = keras.optimizers.Adam()
    other.build(dense.trainable_variables)
    other.load_own_variables({})  # of another optimizer: a warning
    assert other.iterations == 0
    other.load_own_variables(store)
    assert other.iterations == 7
    pairs = [(tf.ones((3, 2)), dense.kernel)]
    assert optimizer.aggregate_gradients(pairs)[0][1] is dense.kernel


def test_no_gradients_are_no_step():
    optimizer = keras.optimizers.Adam()
    assert optimizer.apply_gradients([]) is optimizer.iterations
    assert keras.optimizers.legacy.Adam().apply_gradients([]) is None
    model = keras.Sequential([layers.Flatten()])
    model.compile("sgd", "mse")
    history = model.fit(np.ones((4, 1)), np.zeros((4, 1)), verbose=0)
    assert history.history["loss"] == [1.0]


class Kept(layers.Layer):
    """Writes a store and files of its own."""

    def build(self, input_shape):
        self.w = self.add_weight("w", (2,))
        self.extra = np.zeros(1)

    def call(self, x):
        return x * self.w

    def save_own_variables(self, store):
        store["mine"] = self.w.numpy() + 1
        store["extra"] = self.extra

    def load_own_variables(self, store):
        assert sorted(store.keys()) == ["extra", "mine"]
        self.w.assign(store["mine"][:] - 1)
        self.extra = np.array(store["extra"])

    def save_assets(self, dir_path):
        with open(dir_path + "/a.txt", "w") as f:
            f.write("hi")

    def load_assets(self, dir_path):
        with open(dir_path + "/a.txt") as f:
            self.text = f.read()


def test_layers_that_write_what_they_keep(tmp_path):
    pytest.importorskip("h5py")
    model = keras.Sequential([Kept(input_shape=(2,))])
    model.layers[0].w.assign([4.0, 5.0])
    model.layers[0].extra = np.array([7.0])
    path = str(tmp_path / "x.keras")
    model.save(path)
    assert zipfile.ZipFile(path).namelist() == [
        *("metadata.json", "config.json", "model.weights.h5"),
        "assets/layers/kept/a.txt",
    ]
    layer = keras.models.load_model(path, custom_objects={"Kept": Kept}).layers[0]
    assert layer.w.numpy().tolist() == [4.0, 5.0]
    assert (layer.extra.tolist(), layer.text) == ([7.0], "hi")


def _of_words(layer, **kwargs):
    layer.adapt([["a"], ["b"], ["b"]])
    return keras.Sequential([keras.Input((1,), dtype="string"), layer])


def test_vocabularies_that_were_learned_are_kept(tmp_path):
    pytest.importorskip("h5py")
    path = str(tmp_path / "x.keras")
    words = tf.constant([["b"]])
    _of_words(layers.StringLookup(output_mode="tf_idf")).save(path)
    names = zipfile.ZipFile(path).namelist()
    assert names[3:] == ["assets/layers/string_lookup/vocabulary.txt"]
    assert zipfile.ZipFile(path).read(names[3]) == b"[UNK]\nb\na"
    loaded = keras.models.load_model(path)
    np.testing.assert_allclose(loaded(words), [[0.0, 0.6931472, 0.0]], rtol=1e-6)
    assert loaded.output_shape == (None, 3)
    assert loaded.layers[-1].get_vocabulary() == ["[UNK]", "b", "a"]

    _of_words(layers.TextVectorization()).save(path)
    loaded = keras.models.load_model(path)
    assert loaded(words).numpy().tolist() == [[2]]
    assert loaded.layers[-1].get_vocabulary() == ["", "[UNK]", "b", "a"]


def test_a_lookup_without_words_in_a_graph():
    layer = layers.StringLookup()
    assert layer(keras.Input((1,), dtype="string")).dtype == tf.int64
    run = tf.function(lambda x: layer(x))
    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
        run(tf.constant([["a"]]))


class Called(keras.Model):
    def __init__(self):
        super().__init__()
        self.d = layers.Dense(2)
        self.w = self.add_weight("w", (2,))
        self.rest = [layers.Dense(1)]

    def call(self, x, flag=None, training=None):
        x = x["a"] if isinstance(x, dict) else x
        return self.rest[0](self.d(x)) + self.w


def test_save_spec():
    model = Called()
    assert model.save_spec() is None
    model(tf.ones((2, 3)))
    spec = tf.TensorSpec((None, 3), tf.float32, name="input_1")
    assert model.save_spec() == ([spec], {})
    assert model.save_spec(False)[0][0].shape == (2, 3)
    model = Called()
    model({"a": tf.ones((2, 3))}, flag=tf.ones((4,)))
    assert model.save_spec() == (
        [{"a": tf.TensorSpec((None, 3), tf.float32, name="a")}],
        {"flag": tf.TensorSpec((None,), tf.float32)},
    )
    model = Called()
    model.build((None, 3))
    assert model.save_spec() is None
    a = keras.Input((3,), name="a")
    b = keras.Input((4,), name="b", batch_size=5)
    model = keras.Model({"p": a, "q": b}, layers.Dense(2)(a))
    p, q = model.save_spec()[0][0]["p"], model.save_spec()[0][0]["q"]
    assert (p.name, q.name, q.shape) == ("a", "b", (5, 4))


def test_weight_paths():
    model = Called()
    assert list(model.get_weight_paths()) == ["w"]
    model(tf.ones((2, 3)))
    paths = model.get_weight_paths()
    names = ["w", "d.kernel", "d.bias", "rest.0.kernel", "rest.0.bias"]
    assert list(paths) == names
    assert paths["d.kernel"] is model.d.kernel
    inner = keras.Sequential([layers.Dense(1), layers.BatchNormalization()], name="in")
    x = keras.Input((3,))
    paths = keras.Model(x, layers.Dense(1, name="out")(inner(x))).get_weight_paths()
    assert list(paths) == [
        *("out.kernel", "out.bias"),
        *("in.layer_with_weights-0.kernel", "in.layer_with_weights-0.bias"),
        *("in.layer_with_weights-1.gamma", "in.layer_with_weights-1.beta"),
        "in.layer_with_weights-1.moving_mean",
        "in.layer_with_weights-1.moving_variance",
    ]


def test_models_export(tmp_path, capsys):
    model = Called()
    path = str(tmp_path / "m")
    assert _message(ValueError, lambda: model.export(path)) == (
        "The layer provided has not yet been built. It must be built before export."
    )
    model.build((None, 3))
    assert _message(ValueError, lambda: model.export(path)) == (
        "The model provided has never called. It must be called at least once before "
        "export."
    )
    x = tf.ones((2, 3))
    expected = model(x)
    model.export(path)
    told = capsys.readouterr().out
    assert told.startswith(
        f"Saved artifact at '{path}'. The following endpoints are available:\n\n"
        "* Endpoint 'serve'\n"
        "  args_0 (POSITIONAL_ONLY): TensorSpec(shape=(None, 3), dtype=tf.float32, "
        "name='input_1')\nOutput Type:\n"
        "  TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)\nCaptures:\n"
    )
    loaded = tf.saved_model.load(path)
    assert sorted(loaded.signatures) == ["serve", "serving_default"]
    np.testing.assert_array_equal(loaded.serve(x), expected)
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    model = keras.Model([a, b], {"r": layers.Dense(2)(a) + b})
    model.export(path)
    loaded = tf.saved_model.load(path)
    served = loaded.signatures["serving_default"](a=x, b=x[:, :2])
    np.testing.assert_array_equal(served["r"], model([x, x[:, :2]])["r"])


def test_what_compile_was_told():
    model = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    assert model.steps_per_execution is None
    assert (model.jit_compile, model.distribute_reduction_method) == (None, "auto")
    model.compile("sgd", "mse", steps_per_execution=3)
    assert model.steps_per_execution.dtype == tf.int64
    assert model.steps_per_execution == 3
    counts = []
    told = keras.callbacks.LambdaCallback(on_batch_end=lambda i, logs: counts.append(i))
    data = np.ones((8, 3)), np.ones((8, 2))
    model.fit(*data, batch_size=1, verbose=0, callbacks=[told])
    assert counts == [2, 5, 7]
    model.steps_per_execution.assign(4)
    counts.clear()
    model.fit(*data, batch_size=1, verbose=0, callbacks=[told])
    assert counts == [3, 7]
    model.compile("sgd", "mse", steps_per_execution="auto")
    assert model.steps_per_execution == 4
    assert model.autotune_steps_per_execution
    model.fit(*data, batch_size=1, verbose=0)
    with pytest.raises(RuntimeError, match=r"`model.to_yaml\(\)` has been removed"):
        model.to_yaml()
    assert json.loads(model.to_json())["class_name"] == "Sequential"


def test_a_convolution_of_the_users():
    class Standardized(layers.Conv2D):
        def convolution_op(self, inputs, kernel):
            return super().convolution_op(inputs, kernel * 2.0)

    layer = Standardized(1, 2, kernel_initializer="ones", bias_initializer="ones")
    assert layer(tf.ones((1, 2, 2, 1))).numpy().tolist() == [[[[9.0]]]]
    assert layer.convolution_op(tf.ones((1, 2, 2, 1)), layer.kernel) == 8.0


def test_states_of_recurrent_layers():
    layer = layers.LSTM(3)
    states = layer.get_initial_state(tf.ones((2, 5, 4)))
    assert [s.numpy().tolist() for s in states] == [np.zeros((2, 3)).tolist()] * 2
    x = np.ones((2, 5, 4), np.float32)
    inner = layers.SimpleRNN(3, stateful=True)
    both = layers.Bidirectional(inner, batch_input_shape=(2, 5, 4))
    model = keras.Sequential([both])
    first = model(x).numpy()
    assert not np.array_equal(model(x), first)
    both.reset_states()
    np.testing.assert_array_equal(model(x), first)


def test_small_members():
    spec = layers.InputSpec(ndim=3, dtype="float32")
    assert layers.InputSpec.from_config(spec.get_config()).ndim == 3
    stop = keras.callbacks.EarlyStopping(monitor="loss")
    assert stop.get_monitor_value({"loss": 3.0}) == 3.0
    plateau = keras.callbacks.ReduceLROnPlateau()
    assert not plateau.in_cooldown()
    plateau.cooldown_counter = 2
    assert plateau.in_cooldown()


def test_slots_of_other_shapes():
    optimizer = keras.optimizers.Adam()
    variable = tf.Variable([1.0, 1.0], name="w")
    add = optimizer.add_variable_from_reference
    assert add(variable, "a").numpy().tolist() == [0.0, 0.0]
    assert add(variable, "b", shape=[]).numpy() == 0.0
    assert add(variable, "c", shape=(3,)).shape == (3,)
    assert add(variable, "d", initial_value=5.0).numpy() == 5.0
    assert add(variable, "e", initial_value=lambda: tf.ones(4)).shape == (4,)
    assert add(variable, "a").name == "a/w:0"
    legacy = keras.optimizers.legacy.Adam()
    assert legacy.add_slot(variable, "a", shape=[]).shape == ()
