"""tf.compat.v1.train.Saver and meta graphs."""

import os

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def build(scale=1.0):
    with v1.variable_scope("layer"):
        w = v1.get_variable("w", initializer=tf.reshape(tf.range(6.0), [2, 3]) * scale)
    r = v1.Variable([9, 8], name="ref", use_resource=False)
    return w, r


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as s:
        yield s


def test_saved_by_name(session, tmp_path):
    w, r = build()
    saver = v1.train.Saver(max_to_keep=2)
    session.run(v1.global_variables_initializer())
    paths = [saver.save(session, str(tmp_path / "m"), global_step=i) for i in range(3)]
    assert [os.path.basename(p) for p in saver.last_checkpoints] == ["m-1", "m-2"]
    assert not os.path.exists(paths[0] + ".index")
    assert not os.path.exists(paths[0] + ".meta")
    assert os.path.exists(paths[2] + ".meta")
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[2]
    assert tf.train.list_variables(paths[2]) == [("layer/w", [2, 3]), ("ref", [2])]
    session.run([w.assign(tf.zeros([2, 3])), r.assign([0, 0])])
    saver.restore(session, paths[2])
    assert session.run(w).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert session.run(r).tolist() == [9, 8]


def test_names_given_and_reshaped(session, tmp_path):
    w, r = build()
    session.run(v1.global_variables_initializer())
    saver = v1.train.Saver({"other": w, "r": r}, restore_sequentially=True)
    path = saver.save(session, str(tmp_path / "m"), write_meta_graph=False)
    assert [k for k, _ in tf.train.list_variables(path)] == ["other", "r"]
    flat = v1.get_variable("flat", initializer=tf.zeros([6]))
    session.run(flat.initializer)
    v1.train.Saver({"other": flat}, reshape=True).restore(session, path)
    assert session.run(flat).tolist() == [0, 1, 2, 3, 4, 5]


def test_sharded(session, tmp_path):
    with tf.device("CPU:0"):
        w, r = build()
    saver = v1.train.Saver(sharded=True)
    session.run(v1.global_variables_initializer())
    path = saver.save(session, str(tmp_path / "m"), write_meta_graph=False)
    session.run(w.assign(tf.zeros([2, 3])))
    saver.restore(session, path)
    assert session.run(w).sum() == 15
    assert not [n for n in os.listdir(tmp_path) if "_temp_" in n]


def test_into_objects(session, tmp_path):
    build()
    session.run(v1.global_variables_initializer())
    path = v1.train.Saver().save(session, str(tmp_path / "m"))
    with tf.init_scope():
        pass
    check_objects(path)


def check_objects(path):
    import subprocess
    import sys

    code = f"""
import headrace as tf
w = tf.Variable(tf.zeros([2, 3]), name="layer/w")
status = tf.train.Checkpoint(x=w).restore({path!r})
status.assert_consumed()
print(type(status).__name__, float(tf.reduce_sum(w)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["NameBasedSaverStatus", "15.0"]


def test_meta_graph(session, tmp_path):
    w, _ = build()
    tf.identity(w * 2.0, name="doubled")
    session.run(v1.global_variables_initializer())
    path = v1.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default(), v1.Session() as s:
        saver = v1.train.import_meta_graph(path + ".meta")
        saver.restore(s, path)
        assert [v.name for v in v1.global_variables()] == ["layer/w:0", "ref:0"]
        assert s.run("doubled:0").sum() == 30
        w = v1.global_variables()[0]
        np.testing.assert_array_equal(
            s.run(w.assign_add(tf.ones([2, 3])))[0], [1, 2, 3]
        )
    with tf.Graph().as_default(), v1.Session() as s:
        saver = v1.train.import_meta_graph(path + ".meta", import_scope="again")
        saver.restore(s, path)
        assert s.run("again/doubled:0").sum() == 30


def test_errors(session, tmp_path):
    with pytest.raises(ValueError, match="No variables to save"):
        v1.train.Saver()
    w, _ = build()
    saver = v1.train.Saver()
    with pytest.raises(ValueError, match="Can't load save_path when it is None"):
        saver.restore(session, None)
    with pytest.raises(ValueError, match="is not a valid checkpoint"):
        saver.restore(session, str(tmp_path / "nothing"))
    with pytest.raises(TypeError, match="must be a Session"):
        saver.save(None, str(tmp_path / "m"))
    with pytest.raises(ValueError, match="At least two variables have the same name"):
        v1.train.Saver([w, w])
    session.run(v1.global_variables_initializer())
    path = saver.save(session, str(tmp_path / "m"))
    extra = v1.get_variable("extra", initializer=tf.zeros([6]))
    with pytest.raises(tf.errors.NotFoundError, match="a Variable name or other graph"):
        v1.train.Saver({"extra": extra}).restore(session, path)


def test_the_first_format(session, tmp_path):
    w, r = build()
    text = v1.get_variable("text", initializer=tf.constant(["a", "bcd"]))
    old = v1.train.SaverDef.V1
    saver = v1.train.Saver(write_version=old, max_to_keep=1)
    assert saver.as_saver_def().version == old
    session.run(v1.global_variables_initializer())
    paths = [saver.save(session, str(tmp_path / "m"), global_step=i) for i in range(2)]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "m-1", "m-1.meta"]
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[1]
    reader = tf.train.load_checkpoint(paths[1])
    assert reader.get_tensor("text").tolist() == [b"a", b"bcd"]
    session.run([w.assign(tf.zeros([2, 3])), r.assign([0, 0]), text.assign(["", ""])])
    saver.restore(session, paths[1])
    assert session.run(w).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert session.run(r).tolist() == [9, 8]
    with pytest.raises(ValueError, match="write_version"):
        v1.train.Saver([w], write_version=3)


def test_shards_and_slices_of_the_first_format(session, tmp_path):
    ones = v1.ones_initializer()
    parts = v1.fixed_size_partitioner(3)
    table = v1.get_variable("p", shape=[5, 2], initializer=ones, partitioner=parts)
    saver = v1.train.Saver(write_version=1, sharded=True, max_to_keep=1)
    session.run(v1.global_variables_initializer())
    saver.save(session, str(tmp_path / "s"), global_step=1)
    path = saver.save(session, str(tmp_path / "s"), global_step=2)
    assert path == str(tmp_path / "s-2-?????-of-00001")
    names = ["checkpoint", "s-2-00000-of-00001", "s-2.meta"]
    assert sorted(os.listdir(tmp_path)) == names
    session.run([v.assign(v * 0) for v in table])
    saver.restore(session, path)
    assert [session.run(v).sum() for v in table] == [4, 4, 2]


def test_every_dtype_of_the_first_format(tmp_path):
    names = "float32 float64 int8 uint8 int16 uint16 int32 int64 bool float16 bfloat16"
    names = f"{names} complex64 complex128".split()
    values = {d: tf.Variable(tf.cast([1, 0, 3], d), name=d) for d in names}
    values["empty"] = tf.Variable(tf.zeros([0, 3]), name="empty")
    values["scalar"] = tf.Variable(-7, name="scalar")
    v1.train.Saver(values, write_version=1).save(None, str(tmp_path / "d"))
    reader = tf.train.load_checkpoint(str(tmp_path / "d"))
    for name, variable in values.items():
        np.testing.assert_array_equal(reader.get_tensor(name), variable.numpy())
        assert reader.get_variable_to_dtype_map()[name] == variable.dtype


def test_a_meta_graph_is_imported_into_a_graph_and_a_scope(tmp_path):
    v1 = tf.compat.v1
    path = str(tmp_path / "m")
    with tf.Graph().as_default(), v1.Session() as session:
        weight = v1.get_variable("w", initializer=3.0)
        tf.identity(weight, name="out")
        session.run(weight.initializer)
        v1.train.Saver().save(session, path)

    def restored(scope, **options):
        graph = tf.Graph()
        with v1.Session(graph=graph) as session, graph.as_default():
            with graph.name_scope(scope):
                saver = v1.train.import_meta_graph(path + ".meta", **options)
            saver.restore(session, path)
            outs = [o for o in graph.get_operations() if o.name.endswith("out")]
            return outs[0].name, session.run(outs[0].outputs[0])

    assert restored("") == ("out", 3.0)
    assert restored("", import_scope="s") == ("s/out", 3.0)
    assert restored("t") == ("t/out", 3.0)
    graph = tf.Graph()
    saver = v1.train.import_meta_graph(path + ".meta", graph=graph, import_scope="u")
    with v1.Session(graph=graph) as session:
        saver.restore(session, path)
        assert session.run("u/out:0") == 3.0


def test_an_imported_graph_without_variables_has_no_saver(tmp_path):
    v1 = tf.compat.v1
    path = str(tmp_path / "m")
    with tf.Graph().as_default():
        tf.constant(1.0)
        v1.train.export_meta_graph(path)
    with tf.Graph().as_default():
        v1.Variable(1.0, name="mine/v")
        assert v1.train.import_meta_graph(path, import_scope="other") is None
        saver = v1.train.import_meta_graph(path, import_scope="mine")
        assert isinstance(saver, v1.train.Saver)


def test_slices_and_whole_variables_do_not_share_a_name(session):
    whole, part = v1.Variable([1.0], name="w"), v1.Variable([2.0], name="p")
    part._set_save_slice_info(tf.Variable.SaveSliceInfo("w", [1], [0], [1]))
    assert part._get_save_slice_info().spec == "1 0,1"
    with pytest.raises(ValueError, match="Mixing slices and non-slices with the same"):
        v1.train.Saver([whole, part])
    with pytest.raises(
        ValueError, match="At least two variables have the same name: w"
    ):
        v1.train.Saver([part, whole])


def test_values_are_brought_to_a_processor_of_their_task(session):
    with tf.device("/job:ps/device:GPU:0"):
        variable = v1.get_variable("v", shape=[2])
    v1.train.Saver({"v": variable})
    saves = [o for o in session.graph.get_operations() if o.type == "SaveV2"]
    assert [x.device for x in saves[0].inputs[3:]] == ["/job:ps/device:CPU:0"]


def test_another_object_may_say_which_variables_are_saved(session, tmp_path):
    class Owner(tf.__internal__.tracking.Trackable):
        def __init__(self):
            self.inner = v1.get_variable("inner", initializer=6.0)

        def _gather_saveables_for_checkpoint(self):
            return {"VARIABLE_VALUE": self.inner}

    owner = Owner()
    for listed in ([owner], {"o": owner}):
        saver = v1.train.Saver(listed)
        session.run(owner.inner.assign(1.0))
        path = saver.save(session, str(tmp_path / "m"))
        session.run(owner.inner.assign(2.0))
        saver.restore(session, path)
        assert session.run(owner.inner) == 1.0
    assert tf.train.list_variables(path) == [("o", [])]


def test_default_attributes_are_left_out_where_that_is_wanted(session):
    tf.complex(tf.constant(1.0), tf.constant(2.0), name="c")

    def attributes(strip):
        meta = v1.train.export_meta_graph(strip_default_attrs=strip)
        (node,) = [n for n in meta.graph_def.node if n.name == "c"]
        return {"T", "Tout"} & set(node.attr), meta

    assert attributes(False)[0] == {"T", "Tout"}
    left, meta = attributes(True)
    assert left == set() and meta.meta_info_def.stripped_default_attrs
    with tf.Graph().as_default(), v1.Session() as other:
        v1.train.import_meta_graph(meta)
        assert other.run("c:0") == 1 + 2j


def test_a_cut_variable_is_not_listed_twice(session):
    cut = v1.fixed_size_partitioner(2)
    variable = v1.get_variable("p", shape=[4], partitioner=cut)
    with pytest.raises(
        ValueError, match="At least two variables have the same name: p"
    ):
        v1.train.Saver([variable, variable])
    saver = v1.train.Saver([variable])
    assert saver.saver_def.save_tensor_name


def test_collections_of_several_kinds_are_left_out(session, caplog):
    collections = {
        "numbers": [3, 4],
        "floats": [3.5, 4],
        "mixed": [3, 3.5],
        "texts": ["a", 1],
        "objects": [object()],
        "nodes": [tf.constant(1.0, name="c"), 3],
    }
    for key, values in collections.items():
        for value in values:
            v1.add_to_collection(key, value)
    with caplog.at_level("WARNING"):
        found = v1.train.export_meta_graph().collection_def
    assert sorted(found) == ["floats", "numbers"]
    assert list(found["floats"].float_list.value) == [3.5, 4.0]
    for key in ("mixed", "texts", "objects", "nodes"):
        assert f"Issue encountered when serializing {key}" in caplog.text


def test_a_predicate_picks_the_collections_that_come():
    with tf.Graph().as_default():
        v1.get_variable("v", initializer=3.0, use_resource=True)
        v1.add_to_collection("mine", "here")
        meta = v1.train.export_meta_graph()
    graph = tf.Graph()
    v1.train.import_meta_graph(
        meta, graph=graph, restore_collections_predicate=lambda key: key != "mine"
    )
    (variable,) = graph.get_collection("variables")
    assert variable.name == "v:0" and graph.get_collection("mine") == []
