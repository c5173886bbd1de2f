"""Gradients of the program's own in SavedModels."""

import gc
import os

import headrace as tf
import models
import numpy as np
import pytest
from headrace.v1.saved.loader import parse_saved_model

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/saved_models")
X = [0.5, 1.0]


def saved(model, folder, **options):
    options = tf.saved_model.SaveOptions(**options)
    tf.saved_model.save(model, str(folder), options=options)
    return tf.saved_model.load(str(folder))


def gradients_of(function, *sources):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    found = tape.gradient(y, [x, *sources])
    return [None if g is None else np.asarray(g).tolist() for g in found]


def check_gradients_model(model):
    # d(steep)/dh is 10 h + (h + 1), of v 3 v, of x 3; v's is 5 times the sum.
    h = 3 * np.array(X)
    x = 6.0 * 3 * (10 * h + h + 1)
    for function, times in ((model.f, 1), (model.called, 2)):
        of_x, of_v = gradients_of(function, model.v)
        np.testing.assert_allclose(of_x, times * x, rtol=1e-6)
        np.testing.assert_allclose(of_v, times * 5 * np.sum(h * h), rtol=1e-6)


def test_a_model_that_tensorflow_wrote():
    check_gradients_model(tf.saved_model.load(os.path.join(GOLDEN, "gradients")))


def test_written_read_and_written_again(tmp_path):
    models.gradients(tf, str(tmp_path / "a"))
    loaded = tf.saved_model.load(str(tmp_path / "a"))
    check_gradients_model(loaded)
    check_gradients_model(saved(loaded, tmp_path / "b"))


def test_two_models_do_not_meet(tmp_path):
    def model(slope):
        @tf.custom_gradient
        def own(x):
            return x + 0.0, lambda dy: dy * slope

        m = tf.Module()
        m.f = tf.function(own, input_signature=[tf.TensorSpec([None])])
        return saved(m, tmp_path / str(slope))

    a, b = model(3.0), model(4.0)
    assert gradients_of(a.f) == [[3, 3]]
    assert gradients_of(b.f) == [[4, 4]]
    del a
    gc.collect()
    assert gradients_of(b.f) == [[4, 4]]


@tf.custom_gradient
def steep(x, z):
    return x * z, lambda dy: (dy * z * 2.0, dy * 100.0)


def test_in_branches_and_loops(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def branch(x):
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: steep(x, x + 1.0), lambda: x)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def loop(x):
        for _ in tf.range(2):
            x = steep(x, x * 0.0 + 3.0)
        return x

    model = tf.Module()
    model.branch, model.loop = branch, loop
    expected = [gradients_of(f) for f in (branch, loop)]
    loaded = saved(model, tmp_path)
    assert [gradients_of(f) for f in (loaded.branch, loaded.loop)] == expected


def test_slices_stay_slices(tmp_path):
    @tf.custom_gradient
    def rows(table):
        def backward(dy):
            return tf.IndexedSlices(dy * 2.0, tf.constant([1, 1]), tf.constant([3, 1]))

        return tf.gather(table, [1, 1]), backward

    model = tf.Module()
    model.f = tf.function(rows, input_signature=[tf.TensorSpec([3, 1])])
    loaded = saved(model, tmp_path)
    x = tf.constant([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    found = tf.convert_to_tensor(tape.gradient(y, x))
    assert found.numpy().tolist() == [[0], [4], [0]]


def test_registered_gradients_by_name(tmp_path):
    @tf.RegisterGradient("SavedGradientsTestTwice")
    def _(op, grad):
        return grad * op.inputs[0] * 2.0

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def f(x):
        graph = tf.compat.v1.get_default_graph()
        with graph.gradient_override_map({"Identity": "SavedGradientsTestTwice"}):
            return tf.identity(x) + tf.identity(x * 3.0)

    model = tf.Module()
    model.f = f
    expected = gradients_of(f)
    assert gradients_of(saved(model, tmp_path).f) == expected


def test_left_out_where_they_are_not_wanted(tmp_path):
    model = tf.Module()
    model.f = tf.function(
        tf.custom_gradient(lambda x: (x * 1.0, lambda dy: dy * 7.0)),
        input_signature=[tf.TensorSpec([None])],
    )
    loaded = saved(model, tmp_path, experimental_custom_gradients=False)
    assert loaded.f(tf.constant(X)).numpy().tolist() == X
    with pytest.raises(LookupError):
        gradients_of(loaded.f)


def test_a_gradient_that_raises(tmp_path):
    def backward(dy):
        raise RuntimeError("not today")

    model = tf.Module()
    model.f = tf.function(
        tf.custom_gradient(lambda x: (x * 1.0, backward)),
        input_signature=[tf.TensorSpec([None])],
    )
    with pytest.raises(ValueError, match="Error when tracing gradients for SavedModel"):
        tf.saved_model.save(model, str(tmp_path))


def test_files_name_them_as_tensorflow_does(tmp_path):
    models.gradients(tf, str(tmp_path))
    graph = parse_saved_model(str(tmp_path)).meta_graphs[0]
    library = graph.graph_def.library
    assert len(library.registered_gradients) == 2
    functions = {f.signature.name for f in library.function}
    for entry in library.registered_gradients:
        assert entry.gradient_func in functions
        assert entry.gradient_func in graph.object_graph_def.concrete_functions
    captured = [
        n.captured_tensor
        for n in graph.object_graph_def.nodes
        if n.WhichOneof("kind") == "captured_tensor"
    ]
    assert captured
    for tensor in captured:
        assert tensor.concrete_function in functions
