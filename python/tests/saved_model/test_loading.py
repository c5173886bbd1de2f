"""SavedModels of models.py, written by TensorFlow (tests/golden/saved_models) and here."""

import os
import shutil

import headrace as tf
import models
import numpy as np
import pytest

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/saved_models")


def golden(name):
    return os.path.join(GOLDEN, name)


@pytest.fixture(scope="module", params=["TensorFlow's", "own"])
def folder(request, tmp_path_factory):
    """Where the models lie."""
    if request.param == "TensorFlow's":
        return GOLDEN
    made = tmp_path_factory.mktemp("models")
    for write in (models.plain, models.tables):
        write(tf, str(made / write.__name__))
    return str(made)


@pytest.fixture(scope="module")
def plain(folder):
    return tf.saved_model.load(os.path.join(folder, "plain"))


def test_objects_have_the_attributes_that_were_saved(plain):
    assert plain.v.numpy().tolist() == [1.0, 2.0]
    assert plain.v.name == "v:0" and plain.v.trainable
    assert float(plain.layers[0]) == 3.0
    assert not plain.layers[1]["k"].trainable
    assert plain.pair[0].numpy() == b"text"
    assert not hasattr(plain, "hidden")
    assert plain.tensorflow_version == "2.21.0"


def test_a_function_with_a_signature_casts_and_refuses(plain):
    assert plain.scaled([1.0, 2.0])["y"].numpy().tolist() == [4.0, 7.0]
    with pytest.raises(TypeError, match="Can not cast TensorSpec"):
        plain.scaled(tf.constant(1.0))


def test_calls_choose_among_traces(plain):
    x = tf.constant(1.0)
    assert plain.chosen(x).numpy().tolist() == [6.0, 7.0]
    assert float(plain.chosen(x, True)) == 2.0
    assert float(plain.chosen(x, training=True)) == 2.0
    both = tf.constant([1.0, 2.0])
    by = tf.constant(4.0)
    assert plain.chosen(both, training=True, by=by).numpy().tolist() == [4.0, 8.0]
    assert plain.chosen(1.0).numpy().tolist() == [6.0, 7.0]  # converted


def test_no_trace_fits(plain):
    with pytest.raises(ValueError) as e:
        plain.chosen(tf.constant(1))
    text = str(e.value)
    assert text.startswith(
        "Could not find matching concrete function to call loaded from the SavedModel. "
        "Got:\n  Positional arguments (2 total):\n    * <tf.Tensor 'x:0' shape=() "
        "dtype=int32>\n    * False\n  Keyword arguments: {'by': 2.0}\n\n Expected these "
        "arguments to match one of the following 3 option(s):\n\nOption 1:\n  Positional "
        "arguments (2 total):\n    * TensorSpec(shape=(), dtype=tf.float32, name='x')\n"
        "    * False\n  Keyword arguments: {'by': 2.0}"
    )


def test_gradients_flow_through(plain):
    with tf.GradientTape() as tape:
        y = plain.scaled(tf.constant([1.0, 2.0]))["y"]
    got = tape.gradient(y, [plain.v, plain.layers[0]])
    assert [g.numpy().tolist() for g in got] == [[1.0, 2.0], 2.0]


def test_loops_and_assignments_run(plain):
    assert float(plain.looped(4)) == 12.0
    before = int(plain.layers[1]["k"])
    assert int(plain.count(2)) == before + 2
    assert int(plain.layers[1]["k"]) == before + 2


def test_signatures(plain):
    assert sorted(plain.signatures) == ["looped", "serving_default"]
    serve = plain.signatures["serving_default"]
    assert sorted(serve.structured_outputs) == ["twice", "y"]
    args, kwargs = serve.structured_input_signature
    assert args == () and kwargs["x"] == tf.TensorSpec([None], tf.float32, "x")
    x = tf.constant([1.0, 2.0])
    assert serve(x=x)["twice"].numpy().tolist() == [2.0, 4.0]
    assert serve(x)["y"].numpy().tolist() == [4.0, 7.0]
    with pytest.raises(TypeError, match="missing required arguments: x"):
        serve()
    with pytest.raises(TypeError, match="does not support item assignment"):
        plain.signatures["a"] = serve


def test_a_concrete_function_shows_what_it_is(plain):
    concrete = plain.scaled.get_concrete_function()
    assert [v.name for v in concrete.variables] == ["v:0", "Variable:0"]
    assert len(concrete.inputs) == 3 and len(concrete.captured_inputs) == 2
    assert concrete.graph.get_operations()
    assert concrete.pretty_printed_signature().startswith("Input Parameters:\n  x (")
    assert concrete.structured_outputs["y"].dtype == tf.float32


def test_functions_are_called_while_tracing(plain):
    @tf.function
    def outer(x):
        return plain.scaled(x)["y"] + 1.0

    assert outer(tf.constant([1.0, 2.0])).numpy().tolist() == [5.0, 8.0]


def test_two_loads_do_not_meet(folder):
    first, second = (tf.saved_model.load(folder + "/plain") for _ in range(2))
    first.v.assign([0.0, 0.0])
    assert second.scaled([1.0, 1.0])["y"].numpy().tolist() == [4.0, 5.0]
    assert first.scaled([1.0, 1.0])["y"].numpy().tolist() == [3.0, 3.0]
    a, b = (tf.saved_model.load(folder + "/tables") for _ in range(2))
    a.see(tf.constant(["x"]))
    assert b.see(tf.constant(["x"])).numpy().tolist() == [0]


def test_functions_outlive_the_object(folder):
    scaled = tf.saved_model.load(folder + "/plain").scaled
    assert scaled([1.0, 2.0])["y"].numpy().tolist() == [4.0, 7.0]


def test_checkpoints_of_loaded_objects(tmp_path, folder):
    model = tf.saved_model.load(folder + "/plain")
    model.v.assign([8.0, 9.0])
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    other = tf.saved_model.load(folder + "/plain")
    tf.train.Checkpoint(model=other).restore(path).assert_consumed()
    assert other.v.numpy().tolist() == [8.0, 9.0]


def test_tables_and_assets(tmp_path, folder):
    shutil.copytree(folder + "/tables", tmp_path / "moved")
    model = tf.saved_model.load(str(tmp_path / "moved"))
    assert model.lookup(tf.constant(["cat", "dog"])).numpy().tolist() == [1, -1]
    assert model.name_of([2, 3]).numpy().tolist() == [b"two", b"?"]
    assert model.see(tf.constant(["cat", "dog"])).numpy().tolist() == [1, 0]
    assert model.see(tf.constant(["cat", "dog"])).numpy().tolist() == [2, 1]
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    other = tf.saved_model.load(folder + "/tables")
    tf.train.Checkpoint(model=other).restore(path)
    assert other.see(tf.constant(["cat"])).numpy().tolist() == [3]


def test_no_model():
    with pytest.raises(
        OSError,
        match=r"SavedModel file does not exist at: nowhere/\{saved_model.pbtxt\|",
    ):
        tf.saved_model.load("nowhere")
    assert not tf.saved_model.contains_saved_model("nowhere")
    assert tf.saved_model.contains_saved_model(golden("plain"))


def test_tags():
    assert tf.saved_model.load(golden("plain"), "serve").v is not None
    with pytest.raises(
        ValueError,
        match=r"incompatible argument to `tags`: \['train'\]. The SavedModel at .* has "
        r"one MetaGraph with tags \['serve'\]",
    ):
        tf.saved_model.load(golden("plain"), ["train"])


def test_damaged_files(tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(golden("plain"), folder)
    path = folder / "saved_model.pb"
    whole = path.read_bytes()
    path.write_bytes(b"hello")
    with pytest.raises(OSError, match="Wire format was corrupt"):
        tf.saved_model.load(str(folder))
    generator = np.random.default_rng(7)
    for end in generator.integers(0, len(whole), 40):
        path.write_bytes(whole[:end])
        with pytest.raises((OSError, ValueError, tf.errors.OpError)):
            tf.saved_model.load(str(folder))
    path.write_bytes(whole)
    (folder / "variables/variables.index").unlink()
    with pytest.raises(tf.errors.NotFoundError, match="variables/variables"):
        tf.saved_model.load(str(folder))


def test_a_text_model_that_is_none(tmp_path):
    (tmp_path / "saved_model.pbtxt").write_text("hello")
    with pytest.raises(OSError, match='1:6 : Message type "tensorflow.SavedModel" has'):
        tf.saved_model.load(str(tmp_path))


def test_missing_variables():
    options = tf.saved_model.LoadOptions(experimental_skip_checkpoint=True)
    model = tf.saved_model.load(golden("plain"), options=options)
    assert not bool(model.v.is_initialized())
