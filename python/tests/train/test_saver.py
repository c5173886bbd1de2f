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


def test_meta_graphs_come_into_a_given_graph(tmp_path):
    with tf.Graph().as_default():
        tf.compat.v1.get_variable("v", initializer=3.0, use_resource=True)
        tf.compat.v1.add_to_collection("mine", "here")
        meta = tf.compat.v1.train.export_meta_graph()
    graph = tf.Graph()
    saver = tf.compat.v1.train.import_meta_graph(
        meta, graph=graph, restore_collections_predicate=lambda key: key != "mine"
    )
    (v,) = graph.get_collection("variables")
    assert v.name == "v:0" and graph.get_collection("mine") == []
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(v.initializer)
        path = saver.save(session, str(tmp_path / "v"))
        session.run(v.assign(5.0))
        saver.restore(session, path)
        assert session.run(v) == 3.0
