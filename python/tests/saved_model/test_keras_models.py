"""Keras models as SavedModels: their call and their signature."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras


def saved(model, folder):
    tf.saved_model.save(model, str(folder))
    return tf.saved_model.load(str(folder))


def test_a_sequential_model(tmp_path):
    keras.utils.set_random_seed(1)  # units that give nothing would move no average
    model = keras.Sequential(
        [
            keras.layers.Dense(4, activation="relu", input_shape=(3,)),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(2),
        ]
    )
    model.compile("adam", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    loaded = saved(model, tmp_path)
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_allclose(loaded(x), model(x), rtol=1e-6)
    served = loaded.signatures["serving_default"]
    assert list(served.structured_input_signature[1]) == model.input_names
    (name,) = served.structured_outputs
    assert name == model.output_names[0]
    found = served(**{model.input_names[0]: x})[name]
    np.testing.assert_allclose(found, model(x), rtol=1e-6)
    before = [v.numpy() for v in model.layers[1].weights]
    loaded(x, training=True)
    after = getattr(loaded, "layer_with_weights-1").moving_mean.numpy()
    assert not np.allclose(before[2], after)


def test_several_inputs_and_outputs(tmp_path):
    one, rows = keras.Input([4]), keras.Input([None, 2], name="rows")
    outputs = [keras.layers.Dense(3)(one), keras.layers.GRU(2)(rows)]
    model = keras.Model([one, rows], outputs)
    loaded = saved(model, tmp_path)
    given = [tf.ones([2, 4]), tf.ones([2, 5, 2])]
    for found, expected in zip(loaded(given), model(given)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    served = loaded.signatures["serving_default"]
    assert sorted(served.structured_input_signature[1]) == sorted(model.input_names)
    assert sorted(served.structured_outputs) == sorted(model.output_names)


class Named(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, x):
        return {"named": self.dense(x)}


def test_a_subclass_is_known_by_its_first_call(tmp_path):
    model = Named()
    assert not saved(model, tmp_path / "a").signatures
    x = tf.ones([3, 4])
    expected = model(x)["named"]
    loaded = saved(model, tmp_path / "b")
    np.testing.assert_allclose(loaded(x)["named"], expected)
    served = loaded.signatures["serving_default"]
    assert served.structured_input_signature[1]["input_1"].shape.as_list() == [None, 4]
    np.testing.assert_allclose(served(input_1=tf.ones([1, 4]))["named"], expected[:1])


def test_model_save(tmp_path):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs, training=None):
            return {"y": self.dense(inputs["x"]) + inputs["bias"]}

    model = Net()
    with pytest.raises(ValueError, match="input shape is not available"):
        model.save(str(tmp_path / "m"))
    x = {"x": tf.ones([4, 2]), "bias": tf.ones([4, 1])}
    model(x)
    model.compile("adam", "mse")
    model.fit(x, {"y": tf.ones([4, 1])}, verbose=0)
    model.save(str(tmp_path / "m"), save_format="tf")
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    served = loaded.signatures["serving_default"]
    np.testing.assert_allclose(served(**x)["y"], model(x)["y"], rtol=1e-6)
