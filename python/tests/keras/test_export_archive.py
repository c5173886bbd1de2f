"""tf.keras.export.ExportArchive."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
SPEC = [tf.TensorSpec((None, 3), tf.float32)]


def _model():
    dense = keras.layers.Dense(2, kernel_initializer="ones", input_shape=(3,))
    return keras.Sequential([dense, keras.layers.Dropout(0.5)])


def _tracked(model=None):
    archive = keras.export.ExportArchive()
    archive.track(model or _model())
    return archive


def test_a_model_and_what_it_says(tmp_path, capsys):
    model = _model()
    archive = _tracked(model)
    archive.add_endpoint("serve", model.call, SPEC)
    archive.add_endpoint("twice", lambda x: {"y": model.call(x) * 2.0}, SPEC)
    archive.add_variable_collection("weights", model.variables)
    archive.write_out(str(tmp_path / "m"))
    told = capsys.readouterr().out
    assert told.startswith(
        f"Saved artifact at '{tmp_path}/m'. The following endpoints "
    )
    assert (
        "* Endpoint 'twice'\n"
        "  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(None, 3), dtype=tf.float32, "
        "name=None)\nOutput Type:\n"
    ) in told
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    x = tf.ones((1, 3))
    np.testing.assert_array_equal(loaded.serve(x), [[3.0, 3.0]])
    np.testing.assert_array_equal(loaded.twice(x)["y"], [[6.0, 6.0]])
    assert sorted(loaded.signatures) == ["serve", "serving_default", "twice"]
    found = loaded.signatures["serving_default"](x)
    np.testing.assert_array_equal(found["output_0"], [[3.0, 3.0]])
    assert [v.shape.as_list() for v in loaded.weights] == [[3, 2], [2]]
    assert len(loaded.variables) == len(loaded.trainable_variables) == 2
    assert list(loaded.non_trainable_variables) == []


def test_a_function_that_has_run(tmp_path):
    model = _model()
    archive = _tracked(model)
    function = tf.function(model.call)
    with pytest.raises(ValueError, match="has never been called"):
        archive.add_endpoint("f", function)
    function(tf.ones((2, 3)))
    archive.add_endpoint("f", function)
    archive.write_out(str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.f(tf.ones((2, 3))).shape == (2, 2)


def test_variables_that_nobody_tracked(tmp_path):
    archive, v = _tracked(), tf.Variable(3.0)
    archive.add_endpoint("f", lambda x: x * v, SPEC)
    archive.write_out(str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded.f(tf.ones((1, 3))), [[3.0] * 3])


def test_what_is_refused(tmp_path):
    archive = _tracked()
    with pytest.raises(ValueError, match="No endpoints have been set yet"):
        archive.write_out(str(tmp_path / "m"))
    archive.add_endpoint("f", tf.identity, SPEC)
    with pytest.raises(ValueError, match="Endpoint name 'f' is already taken"):
        archive.add_endpoint("f", tf.identity, SPEC)
    with pytest.raises(ValueError, match="you must provide an `input_signature`"):
        archive.add_endpoint("g", tf.identity)
    with pytest.raises(ValueError, match="Invalid resource type.*'int'"):
        archive.track(5)
    with pytest.raises(ValueError, match="must be built before export"):
        archive.track(keras.layers.Dense(2))
    with pytest.raises(ValueError, match="to be a list/tuple/set"):
        archive.add_variable_collection("x", 5)
    with pytest.raises(ValueError, match="to be `tf.Variable` instances"):
        archive.add_variable_collection("x", [1])
