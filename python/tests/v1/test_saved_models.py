"""tf.compat.v1.saved_model: SavedModels of sessions."""

import os

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
sm = v1.saved_model


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as s:
        yield s


def predict(**given):
    return sm.predict_signature_def(given, given)


def loaded(folder, tags=("serve",), **given):
    """A session with a model in it, and its MetaGraphDef."""
    s = v1.Session(graph=tf.Graph())
    return s, sm.load(s, list(tags), str(folder), **given)


def test_a_model_keeps_values_signatures_and_its_main_op(session, tmp_path):
    x = v1.placeholder(tf.float32, [None], name="x")
    v = v1.get_variable("v", initializer=[1.0, 2.0])
    r = v1.get_variable("r", initializer=5.0, use_resource=False)
    local = v1.get_local_variable("local", initializer=0.0)
    session.run(v1.global_variables_initializer())
    session.run(v.assign([3.0, 4.0]))
    builder = sm.Builder(str(tmp_path / "m"))
    y = x * v + r + local
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        {"k": sm.predict_signature_def({"x": x}, {"y": y})},
        main_op=tf.group(v1.assign(local, 100.0)),
    )
    assert builder.save() == str(tmp_path / "m/saved_model.pb").encode()
    for scope in (None, "in/scope"):
        s, model = loaded(tmp_path / "m", import_scope=scope)
        d = model.signature_def["k"]
        prefix = scope + "/" if scope else ""
        feed = {prefix + d.inputs["x"].name: [1.0, 1.0]}
        assert s.run(prefix + d.outputs["y"].name, feed).tolist() == [108.0, 109.0]
        assert d.method_name == sm.PREDICT_METHOD_NAME
        assert [z.name for z in s.graph.get_collection("variables")] == [
            prefix + "v:0",
            prefix + "r:0",
        ]


def test_graphs_share_variables_and_are_found_by_their_tags(session, tmp_path):
    v = v1.get_variable("v", initializer=1.0)
    session.run(v1.global_variables_initializer())
    builder = sm.Builder(str(tmp_path / "m"))
    with pytest.raises(AssertionError, match="has not been saved yet"):
        builder.add_meta_graph(["a"])
    builder.add_meta_graph_and_variables(session, ["a"])
    with pytest.raises(AssertionError, match="already been saved"):
        builder.add_meta_graph_and_variables(session, ["b"])
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=7.0)
        tf.identity(v, name="out")
        builder.add_meta_graph(["b", "c"])
    assert builder.save(as_text=True).endswith(b"saved_model.pbtxt")
    s, _ = loaded(tmp_path / "m", ["c", "b"])
    assert s.run("out:0") == 1.0
    with pytest.raises(
        RuntimeError, match="associated with tags 'b' could not be found"
    ):
        loaded(tmp_path / "m", ["b"])
    with pytest.raises(AssertionError, match="isn't empty"):
        sm.Builder(str(tmp_path / "m"))
    with pytest.raises(OSError, match="does not exist at: /none"):
        loaded("/none")
    assert sm.contains_saved_model(str(tmp_path / "m"))
    assert not sm.maybe_saved_model_directory(str(tmp_path))


def test_assets_are_copied_under_names_of_their_own(session, tmp_path):
    paths = []
    for i, text in enumerate(["one", "two", "one"]):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "words.txt").write_text(text)
        paths.append(tf.constant(str(folder / "words.txt"), name=f"path_{i}"))
    found = v1.get_variable("found", initializer="", use_resource=True)
    session.run(v1.global_variables_initializer())
    read = v1.assign(found, tf.io.read_file(paths[1]))
    builder = sm.Builder(str(tmp_path / "m"))
    builder.add_meta_graph_and_variables(
        session, ["serve"], assets_collection=paths, main_op=tf.group(read)
    )
    builder.save()
    (tmp_path / "1/words.txt").unlink()
    assets = tmp_path / "m/assets"
    assert sorted(os.listdir(assets)) == ["words.txt", "words.txt_1"]
    assert (assets / "words.txt_1").read_text() == "two"
    s, _ = loaded(tmp_path / "m")
    assert s.run("found/Read/ReadVariableOp:0") == b"two"
    for bad, message in (
        (tf.constant(1), "must be of dtype string"),
        (v1.placeholder(tf.string), "must be of type constant"),
        ("a", "must be a Tensor"),
    ):
        with pytest.raises(TypeError, match=message):
            builder.add_meta_graph(["x"], assets_collection=[bad])


def test_what_a_builder_refuses(session, tmp_path):
    x = v1.placeholder(tf.float32, [2], name="x")
    builder = sm.Builder(str(tmp_path / "m"))
    bad = sm.build_signature_def({"x": v1.TensorInfo(name="x:0")})
    with pytest.raises(AssertionError, match="must have the dtype field set"):
        builder.add_meta_graph_and_variables(session, ["a"], {"k": bad})
    bad = sm.build_signature_def({"x": v1.TensorInfo(dtype=1)})
    with pytest.raises(AssertionError, match="one of the 'encoding' fields"):
        builder.add_meta_graph_and_variables(session, ["a"], {"k": bad})
    with pytest.raises(KeyError, match="is reserved for the train op"):
        builder.add_meta_graph_and_variables(
            session, ["a"], {"__saved_model_train_op": predict(x=x)}
        )
    with pytest.raises(TypeError, match="to be an Operation"):
        builder.add_meta_graph_and_variables(session, ["a"], main_op=x)
    builder.add_meta_graph_and_variables(session, ["a"], legacy_init_op=tf.no_op())
    with pytest.raises(ValueError, match="already contains one or more main ops"):
        builder.add_meta_graph(["b"], main_op=tf.no_op())


def test_default_attributes_are_stripped_and_come_back(session, tmp_path):
    a, b = (v1.placeholder(tf.float32, [1, 1], name=n) for n in "ab")
    with tf.device("/cpu:0"):
        tf.matmul(a, b, name="product")
    builder = sm.Builder(str(tmp_path / "m"))
    builder.add_meta_graph_and_variables(
        session, ["serve"], strip_default_attrs=True, clear_devices=True
    )
    builder.add_meta_graph(["kept"])
    builder.save()
    parse = tf.__internal__.saved_model.parse_saved_model
    stripped, kept = parse(str(tmp_path / "m")).meta_graphs
    nodes = [
        next(n for n in g.graph_def.node if n.name == "product")
        for g in (stripped, kept)
    ]
    assert ["transpose_a" in n.attr for n in nodes] == [False, True]
    assert [bool(n.device) for n in nodes] == [False, True]
    assert stripped.meta_info_def.stripped_default_attrs
    assert stripped.meta_info_def.tensorflow_version == tf.__version__
    _, again = loaded(tmp_path / "m")
    product = next(n for n in again.graph_def.node if n.name == "product")
    assert "transpose_a" in product.attr


def test_a_given_saver_and_initial_ops_in_fields(session, tmp_path):
    v = v1.get_variable("v", initializer=1.0)
    session.run(v1.global_variables_initializer())
    builder = tf.__internal__.saved_model.SavedModelBuilder(str(tmp_path / "m"))
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        saver=v1.train.Saver(name="mine"),
        init_op=v1.assign(v, 5.0).op,
        train_op=tf.no_op(name="step"),
    )
    builder.save()
    s, model = loaded(tmp_path / "m")
    assert model.saver_def.restore_op_name == "mine/restore_all"
    train = model.signature_def["__saved_model_train_op"]
    name = train.outputs["__saved_model_train_op"].name
    assert s.graph.get_operation_by_name(name).type == "NoOp"
    assert s.run("v/Read/ReadVariableOp:0") == 5.0


def test_simple_save(session, tmp_path):
    x = v1.placeholder(tf.float32, [None], name="x")
    sm.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": x * 2.0})
    s, model = loaded(tmp_path / "m", [sm.SERVING])
    d = model.signature_def[sm.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
    assert s.run(d.outputs["y"].name, {d.inputs["x"].name: [3.0]}) == [6.0]


def names(*tensors):
    return [x.name for x in tensors]


def test_tensor_infos_lead_back_to_their_tensors(session):
    x = v1.placeholder(tf.float32, [None, 2], name="x")
    info = sm.build_tensor_info(x)
    assert (info.name, info.dtype) == ("x:0", 1)
    assert sm.get_tensor_from_tensor_info(info).ref() == x.ref()
    sparse = v1.sparse_placeholder(tf.float32, name="sp")
    found = sm.get_tensor_from_tensor_info(sm.build_tensor_info(sparse))
    assert names(found.values, found.indices) == names(sparse.values, sparse.indices)
    ragged = v1.ragged.placeholder(tf.int32, 1, [])
    info = sm.build_tensor_info(ragged)
    assert info.composite_tensor.type_spec.type_spec_class_name == "RaggedTensorSpec"
    found = sm.get_tensor_from_tensor_info(info)
    parts = (ragged.values, ragged.row_splits)
    assert names(found.values, found.row_splits) == names(*parts)
    variable = v1.get_variable("v", initializer=1.0)
    assert sm.build_tensor_info(variable).name == "v:0"
    with pytest.raises(KeyError, match="scope/x"):
        sm.get_tensor_from_tensor_info(sm.build_tensor_info(x), import_scope="scope")
    with pytest.raises(ValueError, match="Invalid TensorInfo.encoding: None"):
        sm.get_tensor_from_tensor_info(v1.TensorInfo())


def test_tensor_infos_are_of_graphs():
    with pytest.raises(RuntimeError, match="not supported in eager execution"):
        sm.build_tensor_info(tf.constant(1))


def test_signatures_of_methods(session):
    text = v1.placeholder(tf.string, [None])
    number = v1.placeholder(tf.float32, [None])
    for made, method in (
        (sm.classification_signature_def(text, text, number), sm.CLASSIFY_METHOD_NAME),
        (sm.classification_signature_def(text, None, number), sm.CLASSIFY_METHOD_NAME),
        (sm.regression_signature_def(text, number), sm.REGRESS_METHOD_NAME),
        (predict(a=number), sm.PREDICT_METHOD_NAME),
    ):
        assert made.method_name == method
        assert sm.is_valid_signature(made)
        made.method_name = "other"
        assert not sm.is_valid_signature(made)
    regress = sm.regression_signature_def(text, number)
    regress.outputs["more"].CopyFrom(regress.outputs["outputs"])
    assert not sm.is_valid_signature(regress)
    for refused, message in (
        (lambda: sm.regression_signature_def(number, number), "must be of type string"),
        (lambda: sm.regression_signature_def(text, text), "must be of type float"),
        (lambda: sm.classification_signature_def(text, number, None), "type string"),
        (lambda: sm.classification_signature_def(text, None, None), "cannot both be"),
        (lambda: sm.predict_signature_def({}, {"a": text}), "`inputs` cannot be None"),
    ):
        with pytest.raises(ValueError, match=message):
            refused()
    made = sm.build_signature_def(defaults={"a": 2.5, "b": tf.constant(3)})
    assert made.defaults["a"].float_val[0] == 2.5
    assert np.ravel(tf.make_ndarray(made.defaults["b"])).tolist() == [3]


def test_names_of_methods_are_changed_on_disk(session, tmp_path):
    x = v1.placeholder(tf.float32, [None], name="x")
    sm.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": x})
    updater = sm.signature_def_utils.MethodNameUpdater(str(tmp_path / "m"))
    updater.replace_method_name("serving_default", "mine", tags="serve")
    updater.save(str(tmp_path / "new"))
    _, model = loaded(tmp_path / "new")
    assert model.signature_def["serving_default"].method_name == "mine"
    with pytest.raises(ValueError, match="with key: 'other'"):
        updater.replace_method_name("other", "mine")
    with pytest.raises(ValueError, match=r"tags \['gpu'\] could not be found"):
        updater.replace_method_name("serving_default", "mine", tags=["gpu"])
    with pytest.raises(OSError):
        sm.signature_def_utils.MethodNameUpdater("/none")


def test_main_op_initializes_all(session):
    v1.get_variable("v", initializer=1.0)
    v1.get_local_variable("l", initializer=2.0)
    done = v1.get_variable("done", initializer=0.0, use_resource=True)
    with tf.control_dependencies([sm.main_op.main_op()]):
        after = v1.assign(done, 1.0).op
    session.run(sm.main_op_with_restore(after))
    assert len(session.run(v1.report_uninitialized_variables())) == 0
