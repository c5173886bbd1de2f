"""Graphs of TensorFlow 1 (models.py: session) by tf.saved_model.load."""

import os
import shutil

import headrace as tf
import models
import pytest

v1 = tf.compat.v1
GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/saved_models")


@pytest.fixture(scope="module", params=["TensorFlow's", "own"])
def folder(request, tmp_path_factory):
    """Where the model lies."""
    if request.param == "TensorFlow's":
        return os.path.join(GOLDEN, "session")
    made = str(tmp_path_factory.mktemp("models") / "session")
    models.session(tf, made)
    return made


@pytest.fixture
def model(folder):
    return tf.saved_model.load(folder, tags=["serve"])


def test_signatures_run_parts_of_the_graph(model):
    assert list(model.signatures) == ["serving_default", "steps"]
    serve = model.signatures["serving_default"]
    out = serve(text=tf.constant(["blue", "pink"]))
    assert out["ids"].numpy().tolist() == [2, -1]
    assert out["score"].numpy().tolist() == [30.0, 10.0]
    assert serve(tf.constant(["red"]))["ids"].numpy().tolist() == [0]
    assert serve.structured_input_signature == (
        (),
        {"text": tf.TensorSpec([None], tf.string, name="text")},
    )
    assert serve.inputs[0].name == "text:0"
    with pytest.raises(TypeError, match="missing required arguments: text"):
        serve(other=tf.constant(["red"]))
    # A loop of frames, a name that is none in Python, what the main op set.
    steps = model.signatures["steps"]
    assert steps(**{"a b": tf.constant([1.0, 2.0])})["y"].numpy().tolist() == [109, 117]


def test_variables_are_those_of_its_collections(model):
    names = [v.name for v in model.variables]
    assert names == ["scope/v:0", "shift:0", "local:0"]
    assert [v.trainable for v in model.variables] == [True, True, False]
    v = model.variables[0]
    with tf.GradientTape() as tape:
        score = model.signatures["serving_default"](tf.constant(["green"]))["score"]
    gradient = tf.convert_to_tensor(tape.gradient(score, v))
    assert gradient.numpy().tolist() == [0.0, 1.0, 0.0]
    v.assign([1.0, 1.0, 1.0])
    score = model.signatures["serving_default"](tf.constant(["green"]))["score"]
    assert score.numpy().tolist() == [1.0]


def test_models_loaded_twice_are_two(folder, model):
    other = tf.saved_model.load(folder, tags=["serve"])
    other.variables[0].assign([0.0, 0.0, 0.0])
    assert model.variables[0].numpy().tolist() == [10.0, 20.0, 30.0]


def test_parts_are_cut_out_of_the_graph(model):
    score = model.prune("text:0", "score:0")
    assert score(tf.constant(["blue"])).numpy().tolist() == [30.0]
    assert score(text=tf.constant(["blue"])).numpy().tolist() == [30.0]
    assert [x.name for x in score.inputs[:1]] == ["text:0"]
    fetched = model.prune([], {"v": "scope/v/Read/ReadVariableOp:0"})()
    assert fetched["v"].numpy().tolist() == [10.0, 20.0, 30.0]
    assert model.graph.as_graph_element("x:0").dtype == tf.float32
    # What is computed inside may be fed.
    assert score.prune(
        "scope/v/Read/ReadVariableOp:0", "scope/v/Read/ReadVariableOp:0"
    )(tf.constant([1.0, 2.0, 3.0])).shape == [3]


def test_other_values_are_restored(folder, model, tmp_path):
    with tf.Graph().as_default(), v1.Session() as s:
        v1.saved_model.load(s, ["train", "gpu"], folder)
        v, shift = v1.global_variables()
        s.run([v.assign([1.0, 2.0, 3.0]), shift.assign(0.5)])
        path = v1.train.Saver().save(s, str(tmp_path / "other"))
    model.restore(path)
    assert model.variables[0].numpy().tolist() == [1.0, 2.0, 3.0]
    assert float(model.variables[1]) == 0.5
    with pytest.raises(tf.errors.NotFoundError):
        model.restore(str(tmp_path / "none"))


def test_the_graph_is_chosen_by_its_tags(folder):
    with pytest.raises(ValueError, match="but there are 2 MetaGraphs"):
        tf.saved_model.load(folder)
    train = tf.saved_model.load(folder, tags=["gpu", "train"])
    y = train.signatures["step"](x=tf.constant([1.0, 1.0, 1.0]))["y"]
    assert y.numpy().tolist() == [11.0, 21.0, 31.0]


def test_a_model_is_saved_with_its_table_and_file(folder, tmp_path):
    first = str(tmp_path / "first")
    shutil.copytree(folder, first)
    loaded = tf.saved_model.load(first, tags=["serve"])
    serve = {"serving_default": loaded.signatures["serving_default"]}
    loaded.variables[0].assign([1.0, 2.0, 3.0])
    tf.saved_model.save(loaded, str(tmp_path / "second"), serve)
    del loaded, serve
    shutil.rmtree(first)
    again = tf.saved_model.load(str(tmp_path / "second"))
    out = again.signatures["serving_default"](text=tf.constant(["blue", "pink"]))
    assert out["ids"].numpy().tolist() == [2, -1]
    assert out["score"].numpy().tolist() == [3.0, 1.0]


def test_composite_tensors_in_signatures(tmp_path):
    with tf.Graph().as_default(), v1.Session() as s:
        sparse = v1.sparse_placeholder(tf.int64, name="sp")
        ragged = v1.ragged.placeholder(tf.float32, 1, [])
        v1.saved_model.simple_save(
            s,
            str(tmp_path),
            {"s": sparse, "r": ragged},
            {"s2": sparse * 2, "r2": ragged * 2.0},
        )
    serve = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    values = tf.ragged.constant([[1.0], [2.0, 3.0]])
    out = serve(
        s_indices=tf.constant([[0, 1]], tf.int64),
        s_values=tf.constant([21], tf.int64),
        s_dense_shape=tf.constant([2, 2], tf.int64),
        r_component_0=values.values,
        r_component_1=values.row_splits,
    )
    assert out["s2"].values.numpy().tolist() == [42]
    assert out["r2"].to_list() == [[2.0], [4.0, 6.0]]


def test_a_signature_feeds_all_that_it_needs(tmp_path):
    with tf.Graph().as_default(), v1.Session() as s:
        x, z = (v1.placeholder(tf.float32, [None], name=n) for n in "xz")
        v1.saved_model.simple_save(s, str(tmp_path), {"x": x}, {"y": x * z})
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="needs an input for each placeholder.*'serving_default'.*z is not fed",
    ):
        tf.saved_model.load(str(tmp_path))


@pytest.mark.parametrize("version, expected", [("1.8.0", [False]), ("1.9.0", [True])])
def test_old_graphs_say_by_collections_what_is_trainable(tmp_path, version, expected):
    with tf.Graph().as_default(), v1.Session() as s:
        v1.get_variable("v", initializer=1.0)
        s.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(s, ["serve"])
        graph = builder._model.meta_graphs[0]
        graph.meta_info_def.tensorflow_version = version
        del graph.collection_def["trainable_variables"]
        builder.save()
    variables = tf.saved_model.load(str(tmp_path / "m")).variables
    assert [v.trainable for v in variables] == expected


def test_fingerprints_tell_models_apart(tmp_path):
    class Module(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.v = tf.Variable(value)

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def f(self, x):
            return x * self.v

    read = tf.saved_model.experimental.read_fingerprint
    module = Module([1.0, 2.0])
    for name in "ab":
        tf.saved_model.save(module, str(tmp_path / name))
    module.v.assign([3.0, 4.0])
    tf.saved_model.save(module, str(tmp_path / "c"))
    a, b, c = (read(str(tmp_path / name)) for name in "abc")
    assert a.singleprint() == b.singleprint()
    assert a.checkpoint_hash != c.checkpoint_hash
    assert a.graph_def_program_hash == c.graph_def_program_hash
    assert a == read(str(tmp_path / "a")) and a != c
    assert str(a).startswith("SavedModel Fingerprint\n  saved_model_checksum: ")
    golden = read(os.path.join(GOLDEN, "plain"))
    assert golden.version.producer and golden.singleprint().count("/") == 3
    with pytest.raises(FileNotFoundError, match="not found"):
        read(str(tmp_path))
    (tmp_path / "a/fingerprint.pb").write_bytes(b"garbage")
    with pytest.raises(RuntimeError, match="damaged"):
        read(str(tmp_path / "a"))
    with pytest.raises(ValueError, match="invalid fingerprint values"):
        tf.saved_model.experimental.Fingerprint().singleprint()


def test_all_operations_that_are_missing_are_named_at_once(tmp_path):
    folder = str(tmp_path / "m")
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [], name="x")
        tf.multiply(x, 2.0, name="y")
        builder = v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(sess, ["serve"])
        builder.save()
    path = os.path.join(folder, "saved_model.pb")
    with open(path, "rb") as f:
        model = f.read()
    # Names of the same length, so that sizes in the file hold.
    model = model.replace(b"Placeholder", b"NoSuchHolde").replace(
        b"\x12\x03Mul", b"\x12\x03Mul".replace(b"Mul", b"NoX")
    )
    with open(path, "wb") as f:
        f.write(model)
    with tf.Graph().as_default(), v1.Session() as sess:
        with pytest.raises(tf.errors.NotFoundError, match="NoSuchHolde") as error:
            v1.saved_model.load(sess, ["serve"], folder)
        assert "are: NoSuchHolde, NoX." in str(error.value)
    with pytest.raises(tf.errors.UnimplementedError, match="NoSuchHolde, NoX"):
        tf.saved_model.load(folder, tags=["serve"])
