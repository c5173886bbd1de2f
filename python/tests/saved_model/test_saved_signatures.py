"""Signatures: what they take by default, composite tensors, names of nodes."""

import headrace as tf
import numpy as np
from headrace.v1.saved.loader import load, parse_saved_model

v1 = tf.compat.v1
FLOAT = tf.TensorSpec([], tf.float32)


def graph_of(folder):
    return parse_saved_model(str(folder)).meta_graphs[0]


def save(folder, signatures):
    tf.saved_model.save(tf.Module(), str(folder), signatures=signatures)
    return graph_of(folder)


def in_session(folder, key, **inputs):
    """{output: value} of a signature of tensors in a session."""
    with tf.Graph().as_default(), v1.Session() as session:
        signature = load(session, ["serve"], str(folder)).signature_def[key]
        fetches = {k: info.name for k, info in signature.outputs.items()}
        feeds = {signature.inputs[k].name: v for k, v in inputs.items()}
        return session.run(fetches, feeds)


def test_tensors_that_are_defaults(tmp_path):
    @tf.function(input_signature=[FLOAT, FLOAT, tf.TensorSpec([], tf.int32)])
    def f(a, b=2.0, c=tf.constant(3)):
        return a + b + tf.cast(c, tf.float32)

    graph = save(tmp_path, {"f": f, "concrete": f.get_concrete_function()})
    signature = graph.signature_def["f"]
    # A number is no tensor: b has to be given.
    assert list(signature.defaults) == ["c"]
    assert tf.make_ndarray(signature.defaults["c"]) == 3
    assert not graph.signature_def["concrete"].defaults
    assert in_session(tmp_path, "f", a=1.0, b=2.0) == {"output_0": 6}
    assert in_session(tmp_path, "f", a=1.0, b=2.0, c=5) == {"output_0": 8}


def test_defaults_within_structures(tmp_path):
    spec = {"x": FLOAT, "y": tf.TensorSpec([2], tf.float32)}

    @tf.function(input_signature=[spec])
    def f(d={"x": tf.constant(1.0), "y": tf.constant([1.0, 2.0])}):  # noqa: B006
        return d["x"] * d["y"]

    graph = save(tmp_path, f)
    assert sorted(graph.signature_def["serving_default"].defaults) == ["d", "d_1"]
    found = in_session(tmp_path, "serving_default", d=3.0)["output_0"]
    assert found.tolist() == [3, 6]


def test_defaults_beyond_the_input_signature(tmp_path):
    @tf.function(input_signature=[FLOAT])
    def f(x, y=tf.constant(5.0)):
        return x + y

    save(tmp_path, f)
    assert in_session(tmp_path, "serving_default", x=2.0) == {"output_0": 7}


def test_composite_tensors(tmp_path):
    ragged = tf.RaggedTensorSpec([None, None])

    @tf.function(input_signature=[ragged, tf.SparseTensorSpec([None, 3])])
    def f(r, s):
        return {"ragged": r * 2.0, "sparse": s, "flat": r.flat_values}

    graph = save(tmp_path, {"foo:bar": f})
    signature = graph.signature_def["foo:bar"]
    assert sorted(signature.inputs) == ["r", "r_1", "s", "s_1", "s_2"]
    assert {info.name for info in signature.inputs.values()} == {
        f"foo_bar_{name}:0" for name in signature.inputs
    }
    out = signature.outputs
    assert len(out["ragged"].composite_tensor.components) == 2
    assert out["sparse"].coo_sparse.values_tensor_name
    assert len(out["sparse"].tensor_shape.dim) == 2
    assert out["flat"].name

    given = {
        "r": tf.constant([1.0, 2.0, 3.0]),
        "r_1": tf.constant([0, 1, 3], tf.int64),
        "s": tf.constant([[0, 1]], tf.int64),
        "s_1": tf.constant([7.0]),
        "s_2": tf.constant([2, 3], tf.int64),
    }
    loaded = tf.saved_model.load(str(tmp_path))
    found = loaded.signatures["foo:bar"](**given)
    assert found["ragged"].to_list() == [[2], [4, 6]]
    assert tf.sparse.to_dense(found["sparse"]).numpy().tolist() == [[0, 7, 0], [0] * 3]

    with tf.Graph().as_default(), v1.Session() as session:
        signature = load(session, ["serve"], str(tmp_path)).signature_def["foo:bar"]
        feeds = {signature.inputs[k].name: v.numpy() for k, v in given.items()}
        parts = signature.outputs["ragged"].composite_tensor.components
        values, splits = session.run([p.name for p in parts], feeds)
    assert values.tolist() == [2, 4, 6]
    assert splits.tolist() == [0, 1, 3]


def test_node_names_keep_dots_and_dashes(tmp_path):
    f = tf.function(lambda x: x, input_signature=[FLOAT])
    graph = save(tmp_path, {"a b-c/d.e_f": f})
    assert [i.name for i in graph.signature_def["a b-c/d.e_f"].inputs.values()] == [
        "a_b-c_d.e_f_x:0"
    ]


def test_attributes_that_are_defaults_are_left_out(tmp_path):
    @tf.function(input_signature=[])
    def f():
        return tf.complex(tf.constant(1.0), tf.constant(2.0))

    graph = save(tmp_path, f)
    assert graph.meta_info_def.stripped_default_attrs
    nodes = [n for g in graph.graph_def.library.function for n in g.node_def]
    (node,) = (n for n in nodes if n.op == "Complex")
    assert not set(node.attr) & {"T", "Tout"}
    loaded = tf.saved_model.load(str(tmp_path))
    assert np.asarray(loaded.signatures["serving_default"]()["output_0"]) == 1 + 2j


def test_outputs_are_named_by_their_places(tmp_path):
    """As TensorFlow's files name them."""
    spec = [tf.TensorSpec([None], tf.float32, "x")]

    class Model(tf.Module):
        single = tf.function(lambda self, x: x * 2.0, spec)
        several = tf.function(lambda self, x: [x, (x, None, {"z z": x})], spec)
        nested = tf.function(lambda self, x: {"a": (x, x), "b": {"c": x}}, spec)

    model = Model()
    tf.saved_model.save(model, tmp_path, {"one": model.single})
    loaded = tf.saved_model.load(tmp_path)

    def names(function):
        outputs = function.concrete_functions[0].structured_outputs
        return tf.nest.map_structure(lambda s: s and s.name, outputs)

    assert names(loaded.single) == "unknown"
    places = ["tensor_0", ("tensor_1_0", None, {"z z": "tensor_1_2_z_z"})]
    assert names(loaded.several) == places
    assert names(loaded.nested) == {"a": ("a_0", "a_1"), "b": {"c": "b_c"}}
    (output,) = loaded.signatures["one"].structured_outputs.values()
    assert output.name == "output_0"
