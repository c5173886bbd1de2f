"""Loaded functions in other shapes than their traces', in plain graphs; models of
objects in sessions; what cannot be saved."""

import os
import shutil

import headrace as tf
import pytest
from headrace.v1.saved.loader import load, parse_saved_model

v1 = tf.compat.v1


def module(**attributes):
    made = tf.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def test_signatures_take_tensors_of_other_ranks(tmp_path):
    model = module(v=tf.Variable(2.0))
    spec = tf.TensorSpec([None, 1], tf.float32, "x")
    model.f = tf.function(lambda x: x * model.v, input_signature=[spec])
    tf.saved_model.save(model, str(tmp_path), signatures=model.f)
    loaded = tf.saved_model.load(str(tmp_path))
    served = loaded.signatures["serving_default"]
    for x in ([[1.0], [2.0]], [3.0], 4.0, [[5.0, 6.0]]):
        found = served(x=tf.constant(x))["output_0"]
        assert found.numpy().tolist() == (tf.constant(x) * 2.0).numpy().tolist()
    loaded.v.assign(3.0)
    assert served(x=tf.constant(4.0))["output_0"].numpy() == 12
    # Functions choose by shapes.
    with pytest.raises((TypeError, ValueError)):
        loaded.f(tf.constant(4.0))


def test_what_no_operation_takes_is_an_error(tmp_path):
    spec = tf.TensorSpec([None, 2], tf.float32, "x")
    f = tf.function(lambda x: x @ tf.ones([2, 2]), input_signature=[spec])
    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=f)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        served(x=tf.ones([3]))
    assert served(x=tf.ones([1, 2]))["output_0"].numpy().tolist() == [[2, 2]]


def test_a_call_in_a_plain_graph(tmp_path):
    model = module(v=tf.Variable([1.0, 2.0]))
    spec = tf.TensorSpec([2], tf.float32, "x")
    model.f = tf.function(lambda x: x + model.v, input_signature=[spec])
    tf.saved_model.save(model, str(tmp_path))
    with tf.Graph().as_default(), v1.Session() as session:
        loaded = tf.saved_model.load(str(tmp_path))
        x = v1.placeholder(tf.float32, [2])
        y = loaded.signatures["serving_default"](x=x)["output_0"]
        session.run(loaded.v.initializer)
        assert session.run(y, {x: [3.0, 4.0]}).tolist() == [4, 6]
    # The variables of a model that is loaded outside are those of this process.
    loaded = tf.saved_model.load(str(tmp_path))
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [2])
        y = loaded.signatures["serving_default"](x=x)["output_0"]
        assert session.run(y, {x: [3.0, 4.0]}).tolist() == [4, 6]


def test_assets_in_a_session_lie_where_the_model_does(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            str(words),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        -1,
    )
    model = module(file=tf.saved_model.Asset(str(words)), table=table)
    model.path = tf.function(lambda: model.file.asset_path, input_signature=[])
    spec = tf.TensorSpec([None], tf.string, "words")
    model.ids = tf.function(table.lookup, input_signature=[spec])
    signatures = {"path": model.path, "ids": model.ids}
    tf.saved_model.save(model, str(tmp_path / "m"), signatures)
    words.unlink()
    shutil.move(tmp_path / "m", tmp_path / "moved")
    with tf.Graph().as_default(), v1.Session() as session:
        graph = load(session, ["serve"], str(tmp_path / "moved"))
        path, ids = graph.signature_def["path"], graph.signature_def["ids"]
        found = session.run(path.outputs["output_0"].name).decode()
        assert os.path.samefile(os.path.dirname(found), tmp_path / "moved" / "assets")
        (given,) = (i.name for i in ids.inputs.values())
        out = session.run(ids.outputs["output_0"].name, {given: ["b", "c"]})
        assert out.tolist() == [1, -1]


def test_what_is_not_tracked_is_named(tmp_path):
    v = tf.Variable(1.0, name="nobody_has_me")
    model = module(f=tf.function(lambda: v + 1.0, input_signature=[]))
    with pytest.raises(
        AssertionError, match="Trackable referencing this tensor.*nobody_has_me"
    ):
        tf.saved_model.save(model, str(tmp_path))
    model = module(f=tf.function(lambda x: v + x))
    model.f(1.0)
    with pytest.raises(KeyError, match="not reachable from root"):
        tf.saved_model.save(model, str(tmp_path))
    initializer = tf.lookup.KeyValueTensorInitializer([1], [2])
    table = tf.lookup.StaticHashTable(initializer, -1)
    spec = tf.TensorSpec(None, tf.int32)
    model = module(f=tf.function(table.lookup, input_signature=[spec]))
    with pytest.raises(AssertionError, match="StaticHashTable"):
        tf.saved_model.save(model, str(tmp_path))


def test_a_signature_has_the_shapes_that_were_asked_for(tmp_path):
    @tf.function
    def f(x):
        x.set_shape((5, 1))
        return x

    spec = tf.TensorSpec((None, 1), name="name")
    tf.saved_model.save(
        tf.Module(), str(tmp_path), {"f": f.get_concrete_function(spec)}
    )
    loaded = tf.saved_model.load(str(tmp_path)).signatures["f"]
    assert loaded.structured_input_signature[1] == {"name": spec}


def test_slots_of_optimizers(tmp_path):
    model = module(v=tf.Variable([1.0, 2.0]))
    model.optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.optimizer.apply_gradients([(tf.constant([1.0, 1.0]), model.v)])
    tf.saved_model.save(model, str(tmp_path))
    nodes = parse_saved_model(str(tmp_path)).meta_graphs[0].object_graph_def.nodes
    (slot,) = (s for n in nodes for s in n.slot_variables)
    assert slot.slot_name == "momentum"
    assert nodes[slot.original_variable_node_id].HasField("variable")
    assert nodes[slot.slot_variable_node_id].HasField("variable")
    tf.saved_model.load(str(tmp_path))


def test_functions_of_kinds_that_are_not_there_are_left_out(tmp_path):
    model = module()
    model.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(model, str(tmp_path))
    path = tmp_path / "saved_model.pb"
    proto = parse_saved_model(str(tmp_path))
    functions = proto.meta_graphs[0].object_graph_def.concrete_functions
    name = next(n for n in functions if "signature" not in n)
    spec = functions[name].output_signature.type_spec_value
    spec.type_spec_class = 6
    spec.type_spec_class_name = "IteratorSpec"
    path.write_bytes(proto.SerializeToString())
    loaded = tf.saved_model.load(str(tmp_path))
    with pytest.raises(ValueError, match="zero restored functions"):
        loaded.f(1.0)
    assert loaded.signatures["serving_default"](x=tf.constant(2.0))
