"""Tables' columns given to fit and its like; what layers around others ask. Values are
TensorFlow's."""

import numpy as np
import pytest

import headrace as tf

L = tf.keras.layers


class Table:
    """What pandas' series and frames have."""

    iloc = None

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def __len__(self):
        return len(self.values)

    def to_numpy(self):
        return self.values

    def __array__(self, *args, **kwargs):
        return self.values


SEEN = []


class Model(tf.keras.Model):
    def seen(self, data):
        SEEN.append([(p.shape.as_list(), p.dtype.name) for p in tf.nest.flatten(data)])

    def train_step(self, data):
        self.seen(tf.keras.utils.unpack_x_y_sample_weight(data)[:2])
        return {"loss": 0.0}

    test_step = train_step

    def predict_step(self, data):
        self.seen(data[0] if isinstance(data, tuple) else data)
        return tf.zeros(2)


def test_series_are_columns():
    series, numbers = Table([1.0, 2.0, 3.0, 4.0]), Table([1, 2, 3, 4])
    model = Model()
    model.compile("sgd", "mse", run_eagerly=True)
    column, labels = ([2, 1], "float32"), ([2, 1], "int64")
    for call in (model.fit, model.evaluate):
        SEEN.clear()
        call({"a": series, "b": numbers}, numbers, batch_size=2, verbose=0)
        assert SEEN == [[column, labels, labels]] * 2
    SEEN.clear()
    model.predict(series, batch_size=2, verbose=0)
    model.predict_on_batch(series)
    assert SEEN == [[column], [column], [([4, 1], "float32")]]


def test_frames_keep_their_doubles():
    frame, model = Table([[1.0, 2.0], [3.0, 4.0]]), Model()
    model.compile("sgd", "mse", run_eagerly=True)
    SEEN.clear()
    model.predict(frame, verbose=0)
    assert SEEN == [[([2, 2], "float64")]]


def test_a_model_of_one_number_trains_on_series():
    model = tf.keras.Sequential(
        [L.Dense(1, kernel_initializer="ones", input_shape=(1,))]
    )
    model.compile("sgd", "mse")
    series = Table([1.0, 2.0, 3.0, 4.0])
    assert model.fit(series, series, verbose=0).history == {"loss": [0.0]}
    assert model.predict(series, verbose=0).shape == (4, 1)


def test_bins_are_boundaries_or_their_number():
    assert L.Discretization(bins=[1.0, 2.0])([0.0, 1.5, 3.0]).numpy().tolist() == [
        0,
        1,
        2,
    ]
    assert L.Discretization(bins=3).num_bins == 3
    with pytest.raises(ValueError, match="Both `num_bins` and `bin_boundaries`"):
        L.Discretization(bins=3, bin_boundaries=[1.0])


def test_what_a_call_takes():
    class All(L.Layer):
        def call(self, x, **kwargs):
            return x

    class Some(tf.keras.Model):
        def call(self, x, training=None):
            return x

    for layer, training, mask in (
        (L.Dense(2), False, False),
        (L.Dropout(0.2), True, False),
        (L.LSTM(2), True, True),
        (tf.keras.Sequential(), True, True),
        (All(), True, True),
        (Some(), True, False),
    ):
        found = (layer._expects_training_arg, layer._expects_mask_arg)
        assert found == (training, mask), layer


class Assertions(tf.test.TestCase):
    """Lists of lists of several lengths are compared, too."""

    def test_uneven_lists(self):
        self.assertAllEqual([("a",), ("b", "b")], [("a",), ("b", "b")])
        self.assertAllEqual([[1], [2, 3]], [[1], [2, 3]])
        with self.assertRaisesRegex(AssertionError, r"\[1\]: \[2, 4\] \(ACTUAL\)"):
            self.assertAllEqual([[1], [2, 4]], [[1], [2, 3]])


@pytest.mark.parametrize(
    "outputs,lines",
    [
        (lambda a, b: [a, b], ["[(None, 2),", "(None, 3)]"]),
        (lambda a, b: (a, b), ["((None, 2),", "(None, 3))"]),
        (lambda a, b: {"a": a, "b": b}, ["{'a': (None, 2),", "'b': (None, 3)}"]),
        (lambda a, b: a, ["(None, 2)"]),
    ],
)
def test_summaries_show_the_outputs_of_models_within(outputs, lines):
    x = L.Input((4,))
    a = L.Dense(2)(x)
    inner = tf.keras.Model([x], outputs(a, L.Dense(3)(a)))

    class Outer(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def call(self, x):
            return self.inner(x)

    outer, shown = Outer(), []
    outer(tf.ones((1, 4)))
    outer.summary(print_fn=lambda text, **_: shown.extend(text.splitlines()))
    at = next(i for i, text in enumerate(shown) if "(Functional)" in text)
    found = [text[29:53].strip() for text in shown[at : at + len(lines)]]
    assert found == lines


def test_older_names_of_arguments():
    assert L.CategoryEncoding(max_tokens=4)([1, 2]).numpy().tolist() == [0, 1, 1, 0]
    config = L.CategoryEncoding(max_tokens=4, num_tokens=3).get_config()
    assert config["num_tokens"] == 4
    assert L.IntegerLookup(max_values=5).get_config()["max_tokens"] == 5
    config = L.IntegerLookup(mask_value=5, oov_value=7).get_config()
    assert (config["mask_token"], config["oov_token"]) == (5, 7)
    with pytest.raises(TypeError, match="Keyword argument not understood"):
        L.StringLookup(max_values=5)
