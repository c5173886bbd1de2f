"""What packages on tf.keras take of it: parts of layers that subclasses call and define,
models of odd makes."""

import json

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
layers = keras.layers
ONES = np.ones((1, 2), np.float32)


# --- attention ---


def test_equations_of_attention():
    made = layers.MultiHeadAttention(2, 3)
    assert not made._built_from_signature
    x = tf.ones((2, 4, 6))
    made(x, x)
    assert made._built_from_signature
    assert made._query_shape == (2, 4, 6)
    assert made._dot_product_equation == "aecd,abcd->acbe"
    assert made._combine_equation == "acbe,aecd->abcd"
    assert made._query_dense.equation == "abc,cde->abde"
    assert made._output_dense.equation == "abcd,cde->abe"
    assert made._softmax.axis == (3,)
    x = tf.ones((2, 4, 5, 6))
    for axes, first, second in (
        ((1,), "afcde,abcde->acdbf", "acdbf,afcde->abcde"),
        ((2,), "abfde,abcde->abdcf", "abdcf,abfde->abcde"),
        (None, "afgde,abcde->adbcfg", "adbcfg,afgde->abcde"),
    ):
        made = layers.MultiHeadAttention(2, 3, attention_axes=axes)
        made(x, x)
        assert (made._dot_product_equation, made._combine_equation) == (first, second)
    made = layers.MultiHeadAttention(2, 3, output_shape=(7, 8))
    assert made(tf.ones((2, 4, 6)), tf.ones((2, 4, 6))).shape == (2, 4, 7, 8)
    assert made._output_dense.equation == "abcd,cdef->abef"


class Doubled(layers.MultiHeadAttention):
    """Scores that are doubled, and nothing divided."""

    def _build_attention(self, rank):
        super()._build_attention(rank)
        self.rank = rank

    def _compute_attention(self, query, key, value, attention_mask=None, training=None):
        scores = tf.einsum(self._dot_product_equation, key, query) * 2.0
        scores = self._masked_softmax(scores, attention_mask)
        return tf.einsum(self._combine_equation, scores, value), scores


def test_attention_of_the_users():
    options = {"kernel_initializer": "ones", "use_bias": False}
    made = Doubled(1, 1, **options)
    x = tf.constant([[[0.0], [0.5]]])
    out, scores = made(x, x, return_attention_scores=True)
    second = 1.0 / (1.0 + np.exp(-0.5))  # of softmax over 2 * 0.5 * [0, 0.5]
    np.testing.assert_allclose(scores[0, 0, 1], [1.0 - second, second], rtol=1e-6)
    np.testing.assert_allclose(out[0, 1], [second / 2], rtol=1e-6)
    assert made.rank == 4
    mask = made._compute_attention_mask(x, x, use_causal_mask=True)
    assert mask.numpy().tolist() == [[[True, False], [True, True]]]
    assert made._compute_attention_mask(x, x) is None
    masked = made._masked_softmax(tf.zeros((1, 1, 2, 2)), np.array([[[1, 0], [1, 1]]]))
    np.testing.assert_allclose(masked[0, 0], [[1.0, 0.0], [0.5, 0.5]], atol=1e-6)


def test_options_of_parts():
    made = layers.MultiHeadAttention(1, 1, activity_regularizer="l2")
    options = made._get_common_kwargs_for_sublayer()
    assert sorted(options) == [
        *("activity_regularizer", "bias_constraint", "bias_initializer"),
        *("bias_regularizer", "dtype", "kernel_constraint", "kernel_initializer"),
        "kernel_regularizer",
    ]
    assert options["kernel_initializer"] is not made._kernel_initializer
    assert options["activity_regularizer"] is made._activity_regularizer


# --- other layers ---


def test_padding_of_the_users():
    class Causal(layers.Conv2D):
        def _validate_init(self):
            assert self.kernel_size

        def _compute_causal_padding(self, inputs):
            return [[0, 0], [1, 0], [0, 1], [0, 0]]

        def _spatial_output_shape(self, spatial_input_shape):
            return spatial_input_shape

    layer = Causal(1, 2, padding="causal", kernel_initializer="ones")
    assert layer(tf.ones((1, 2, 2, 1))).numpy().ravel().tolist() == [2, 1, 4, 2]
    assert layer.compute_output_shape((1, 2, 2, 1)) == (1, 2, 2, 1)
    with pytest.raises(
        ValueError, match="Causal padding is only supported for `Conv1D"
    ):
        layers.Conv2D(1, 2, padding="causal")
    layer = layers.Conv1D(1, 3, padding="causal", dilation_rate=2)
    padding = layer._compute_causal_padding(tf.ones((1, 5, 1)))
    assert padding == [[0, 0], [4, 0], [0, 0]]


def test_the_noise_of_dropout():
    found = layers.Dropout(0.5, noise_shape=(None, 1))._get_noise_shape(tf.ones((2, 3)))
    assert found.numpy().tolist() == [2, 1]
    assert layers.Dropout(0.5)._get_noise_shape(tf.ones((2, 3))) is None


def test_inputs_that_are_no_tensors():
    class Any(layers.Layer):
        def call(self, x):
            return tf.constant(len(x))

    assert Any()("abc") == 3
    assert Any()(["a", tf.constant(1)]) == 2
    for layer, name in (
        (layers.Dense(1, name="d"), "d"),
        (layers.Flatten(name="f"), "f"),
    ):
        for value, kind in (("abc", str), (None, type(None))):
            with pytest.raises(TypeError) as caught:
                layer(value)
            assert str(caught.value) == (
                f"Inputs to a layer should be tensors. Got '{value}' (of type {kind}) as "
                f"input for layer '{name}'."
            )
    with pytest.raises(TypeError, match="Inputs to a layer should be tensors. Got 'a'"):
        keras.Sequential([layers.Dense(1)])("a")


def test_names_are_counted_anew_with_the_default_graph():
    tf.compat.v1.reset_default_graph()
    assert [layers.Flatten().name for _ in range(2)] == ["flatten", "flatten_1"]
    first = keras.backend.get_uid("x of this test")
    tf.compat.v1.reset_default_graph()
    assert layers.Flatten().name == "flatten"
    with tf.Graph().as_default():
        assert layers.Flatten().name == "flatten"
    assert layers.Flatten().name == "flatten_1"
    assert keras.backend.get_uid("x of this test") == first + 1


# --- models ---


class Handed(keras.Model):
    """Hands itself to the base's constructor."""

    def __init__(self, **kwargs):
        super().__init__(self, **kwargs)
        self.dense = layers.Dense(1)

    def call(self, x):
        return self.dense(x)


class Early(keras.Model):
    """Has layers before the base knows it: they are not tracked."""

    def __init__(self):
        self._self_setattr_tracking = False
        self.dense = layers.Dense(1, name="early")
        x = keras.Input((2,), name="x")
        y = self.dense(x)
        super().__init__(inputs=x, outputs={"a": [y, y * 2], "b": y})


def test_constructors_of_models():
    assert Handed(name="q")(ONES).shape == (1, 1)
    with pytest.raises(TypeError, match="Model takes inputs and outputs, or neither"):
        keras.Model(3)
    model = Early()
    assert [v.name for v in model.variables] == ["early/kernel:0", "early/bias:0"]
    assert sorted(model(ONES)) == ["a", "b"]

    class Half(layers.Layer):
        def __init__(self):
            super().__init__()
            self._self_setattr_tracking = False
            self.a = layers.Dense(1)
            self._self_setattr_tracking = True
            self.b = layers.Dense(1)

        def call(self, x):
            return self.b(self.a(x))

    layer = Half()
    layer(ONES)
    assert len(layer.weights) == 2


def test_signatures_of_nested_outputs(tmp_path):
    class Nested(keras.Model):
        def call(self, x):
            return {"a": [x, x * 2.0], "b": x}

    class Listed(keras.Model):
        def call(self, x):
            return [x, (x * 2.0, x)]

    for cls, names in (
        (Nested, ["a_1", "a_2", "b"]),
        (Listed, ["output_1", "output_2_1", "output_2_2"]),
        (Early, ["early", "early_1", "tf.math.multiply"]),
    ):
        model = cls()
        model(ONES)
        path = str(tmp_path / cls.__name__)
        model.save(path)
        signature = tf.saved_model.load(path).signatures["serving_default"]
        assert sorted(signature.structured_outputs) == names


def test_configurations_of_nested_outputs():
    x = keras.Input((2,), name="x")
    a = layers.Dense(2, name="d")(x)
    b = layers.Dense(3, name="e")(a)
    model = keras.Model({"x": x}, {"s": [a, b], "p": a, "n": {"q": (b, a)}})
    config = model.get_config()
    assert config["output_layers"]["n"] == {"q": (["e", 0, 0], ["d", 0, 0])}
    made = keras.Model.from_config(config)
    found = made({"x": ONES})
    assert [v.shape[1] for v in found["n"]["q"]] == [3, 2]
    made = keras.Model.from_config(keras.Model(x, [a, [b, a]]).get_config())
    assert [v.shape[1] for v in tf.nest.flatten(made(ONES))] == [2, 3, 2]


def test_json_of_objects():
    class Told(keras.Model):
        def call(self, x):
            return x

        def get_config(self):
            of = keras.initializers.TruncatedNormal(0.5)
            return {"init": of, "f": tf.nn.relu, "c": layers.Dense}

    config = json.loads(Told().to_json())["config"]
    assert config["init"]["class_name"] == "TruncatedNormal"
    assert config["init"]["config"]["mean"] == 0.5
    assert (config["f"], config["c"]) == ("relu", "Dense")


def test_dicts_with_further_inputs():
    a, b = keras.Input((2,), name="a"), keras.Input((3,), name="b")
    model = keras.Model({"x": a, "y": b}, layers.Concatenate()([a, b]))
    given = {"x": ONES, "y": np.ones((1, 3), np.float32), "z": np.ones((1, 9))}
    with pytest.warns(UserWarning, match=r"contained keys \['z'\] which did not match"):
        assert model(given).shape == (1, 5)
    with pytest.raises(ValueError) as caught:
        model({"x": ONES})
    assert str(caught.value) == (
        "Missing data for input \"y\". You passed a data dictionary with keys ['x']. "
        "Expected the following keys: ['x', 'y']"
    )
    model = keras.Model([a, b], layers.Concatenate()([a, b]))
    with pytest.raises(ValueError, match=r"Expected the following keys: \['a', 'b'\]"):
        model({"a": ONES, "q": ONES})


def test_sequential_models_of_models_to_be_built():
    inner = keras.Sequential([layers.Conv2D(1, 1)])
    model = keras.Sequential([layers.MaxPooling2D()])
    model.add(inner)
    assert model(tf.ones((1, 2, 2, 3))).shape == (1, 1, 1, 1)
    assert len(model.weights) == 2


def test_a_layer_at_several_places():
    def dense(factor):
        start = keras.initializers.Constant(factor)
        return layers.Dense(1, use_bias=False, kernel_initializer=start)

    one, two = dense(3.0), dense(2.0)
    x = tf.ones((1, 1))
    assert keras.Sequential([one, two, one])(x) == 6.0  # each once, as tf_keras
    model = keras.Sequential([keras.Input((1,)), one, two, one])
    assert model(x) == 18.0
    assert model.layers == [one, two]
    with pytest.raises(ValueError, match="should have unique names"):
        model.add(layers.Dense(1, name=one.name))


def test_saved_without_an_optimizer_or_functions(tmp_path):
    model = keras.Sequential([layers.Dense(1, input_shape=(2,))])
    model.compile("adam", "mse")
    model.fit(ONES, np.ones((1, 1)), verbose=0)
    path = str(tmp_path / "a")
    model.save(path, include_optimizer=False)
    assert keras.models.load_model(path).optimizer is None
    assert not hasattr(tf.saved_model.load(path), "optimizer")
    assert isinstance(model.optimizer, keras.optimizers.Adam)
    path = str(tmp_path / "b")
    model.save(path, save_traces=False)
    assert list(tf.saved_model.load(path).signatures) == []
    loaded = keras.models.load_model(path)
    np.testing.assert_array_equal(loaded(ONES), model(ONES))
    assert loaded.optimizer.iterations == 1
    path = str(tmp_path / "c")
    model.save(path)  # all is as it was
    assert list(tf.saved_model.load(path).signatures) == ["serving_default"]
    assert keras.models.load_model(path).optimizer.iterations == 1


def test_inputs_that_are_the_values_of_a_dict():
    inputs = {"a": keras.Input((2,)), "b": keras.Input((3,))}
    assert layers.concatenate(inputs.values()).shape == (None, 5)


def test_names_of_the_users():
    class Named(keras.Model):
        def __init__(self):
            super().__init__()
            self._sublayers = [layers.Dense(1)]
            self._modules, self._shape, self._node = 1, 2, 3

        def _run(self):
            return 4

        def call(self, x):
            return self._sublayers[0](x) * self._run()

    model = Named()
    assert model(ONES).shape == (1, 1)
    assert len(model.weights) == 2
    assert model.metrics == []


# --- beside models ---


class Sessions(tf.test.TestCase):
    def test_blocks(self):
        with self.cached_session() as session:
            found = session.run([tf.constant(1), {"a": tf.Variable(2.0)}])
            assert found == [1, {"a": 2.0}]
            with pytest.raises(
                RuntimeError, match="feed_dict is not supported when ea"
            ):
                session.run(tf.constant(1), feed_dict={1: 2})
            with pytest.raises(
                RuntimeError, match="Optional args are not supported wh"
            ):
                session.run(tf.constant(1), options=3)
        with self.session() as session:
            with pytest.raises(
                AttributeError, match="Trying to access properties or c"
            ):
                session.run(tf.constant(1))
        with self.test_session() as session:
            assert session is None


def test_tracked_lists_are_lists():
    holder = tf.Module()
    holder.items, holder.pair = [1, 2], (1, [2])
    tf.nest.assert_same_structure(holder.items, [3, 4])
    tf.nest.assert_same_structure([3, 4], holder.items)
    tf.nest.assert_same_structure(holder.pair, (1, [2]))
    assert tf.nest.map_structure(lambda a, b: a + b, [3, 4], holder.items) == [4, 6]
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        tf.nest.assert_same_structure((3, 4), holder.items)


def test_sizes_of_other_dtypes():
    assert tf.size(tf.ones((2, 3)), out_type=tf.float32).numpy() == 6.0
    assert tf.size([1, 2], tf.float64).dtype == tf.float64
    unknown = [tf.TensorSpec([None])]
    of = tf.function(lambda x: tf.size(x, tf.float32), input_signature=unknown)
    with pytest.raises(TypeError, match="not in list of allowed values: int32, int64"):
        of(tf.ones(3))


def test_bounds_that_are_bools():
    x = tf.reshape(tf.range(24), (2, 3, 4))
    shapes = [x[:, :True], x[:, True], x[:2, ::True], x[..., True], x[None, True]]
    expected = [(2, 1, 4), (2, 4), (2, 3, 4), (2, 3), (1, 3, 4)]
    assert [tuple(s.shape) for s in shapes] == expected
    with pytest.raises(TypeError, match="are valid indices, got True"):
        _ = x[:True]


def test_where_of_rows_of_ragged_tensors():
    def rows(values):
        return tf.RaggedTensor.from_row_lengths(values, [2, 1])

    x = rows([[1, 2], [3, 4], [5, 6]])
    chosen = tf.compat.v1.where(rows([True, False, True]), x, -x)
    assert chosen.to_list() == [[[1, 2], [-3, -4]], [[5, 6]]]


def test_weights_of_a_column():
    y, p = tf.constant([1, 0, 1, 1]), tf.constant([0.9, 0.2, 0.6, 0.3])
    weights = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    for kind, expected in (
        (keras.metrics.AUC, 1.0),
        (keras.metrics.Precision, 1.0),
        (keras.metrics.Recall, 0.5),
        (keras.metrics.TruePositives, 4.0),
    ):
        assert kind()(y, p, sample_weight=weights) == expected


def test_weights_of_legacy_optimizers(tmp_path):
    optimizer = keras.optimizers.legacy.SGD(0.1)
    made = optimizer.add_weight("acc", (2,))
    assert (made.name, made.numpy().tolist()) == ("acc:0", [0.0, 0.0])
    one = optimizer.add_weight("b", (), tf.int64, "ones", trainable=False)
    assert (one.dtype, one.numpy()) == (tf.int64, 1)
    assert optimizer.add_weight("c", (2,), initializer=tf.ones).numpy().sum() == 2.0
    assert optimizer.weights == []
    path = tf.train.Checkpoint(o=optimizer).save(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names[1:4] == [
        f"o/{n}/.ATTRIBUTES/VARIABLE_VALUE" for n in ("acc", "b", "c")
    ]
    with pytest.raises(
        ValueError, match="Synchronization value can be set to Variable"
    ):
        kind = tf.VariableSynchronization.ON_READ
        optimizer.add_weight("e", (), trainable=True, synchronization=kind)
