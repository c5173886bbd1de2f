"""Variables on parameter servers, used by the coordinator itself."""

import pickle

import headrace as tf
import pytest
import servers


def make(strategy, value, **given):
    with strategy.scope():
        return tf.Variable(value, **given)


def test_servers_in_turn(strategy):
    made = [make(strategy, float(i), name=f"v{i}") for i in range(3)]
    where = [v.device for v in made]
    both = {f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in range(2)}
    assert where[0] == where[2] and {where[0], where[1]} == both
    v = made[2]
    assert isinstance(v, tf.Variable)
    assert (v.name, v.dtype, v.shape) == ("v2:0", tf.float32, [])
    assert repr(v) == "<tf.Variable 'v2:0' shape=() dtype=float32, numpy=2.0>"
    assert v.trainable and v.aggregation == tf.VariableAggregation.NONE
    assert v.is_initialized().numpy()
    with strategy.scope():
        with strategy.extended.colocate_vars_with(v):
            assert tf.Variable(1.0).device == tf.Variable(1.0).device == v.device
        assert strategy.extended.variable_created_in_scope(v)
        with pytest.raises(ValueError, match="colocate_vars_with"):
            strategy.extended.colocate_vars_with(tf.distribute)


def test_reads_and_changes(strategy):
    v = make(strategy, [1.0, 2.0])
    assert v.assign_add([1.0, 1.0]) is v
    assert v.assign_sub([0.5, 0.5], read_value=False) is None
    assert v.numpy().tolist() == [1.5, 2.5]
    assert (v * 2.0).numpy().tolist() == [3.0, 5.0]
    assert v[1].numpy() == 2.5
    v[0].assign(7.0)
    v.scatter_add(tf.IndexedSlices([3.0], [1]))
    assert v.numpy().tolist() == [7.0, 5.5]
    v.scatter_nd_update([[0]], [9.0])
    assert v.sparse_read([0, 0]).numpy().tolist() == [9.0, 9.0]
    assert v.gather_nd([[1]]).numpy().tolist() == [5.5]
    w = make(strategy, v)
    v.assign([0.0, 0.0])
    assert w.numpy().tolist() == [9.0, 5.5]
    with pytest.raises(ValueError, match="Shape mismatch.The variable shape"):
        v.assign([1.0])
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(v)
    s = make(strategy, ["a", "b"])
    assert s.numpy().tolist() == [b"a", b"b"]
    n = make(strategy, 0, synchronization=tf.VariableSynchronization.NONE)
    assert n.count_up_to(5).numpy() == 0 and n.numpy() == 1
    on_read = tf.VariableSynchronization.ON_READ
    assert make(strategy, 0.0, trainable=True, synchronization=on_read).trainable


def test_functions_and_gradients_of_the_coordinator(strategy):
    v, w = make(strategy, 2.0), make(strategy, [1.0, 2.0, 3.0])

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * w, "text"

    first, text = f(tf.constant(1.0))
    assert first.numpy().tolist() == [3.0, 6.0, 9.0] and text.numpy() == b"text"
    assert f.get_concrete_function(tf.TensorSpec([]))(tf.constant(1.0))[0][0] == 4.0
    assert v.numpy() == 4.0
    with tf.GradientTape() as tape:
        y = v * v
        z = tf.nn.embedding_lookup(w, [2, 0]) * 3.0
    assert [x.name for x in tape.watched_variables()] == [v.name, w.name]
    dv, dw = tape.gradient([y, z], [v, w])
    assert dv.numpy() == 8.0
    assert tf.convert_to_tensor(dw).numpy().tolist() == [3.0, 0.0, 3.0]
    with pytest.raises(tf.errors.UnimplementedError, match="the tape is to be within"):
        with tf.GradientTape():
            f(tf.constant(1.0))


def test_checkpoints_and_saved_models(strategy, tmp_path):
    v = make(strategy, [1.0, 2.0], name="v")
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(str(tmp_path / "c"))
    v.assign([0.0, 0.0])
    checkpoint.restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]
    plain = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(v=plain).restore(path)
    assert plain.numpy().tolist() == [1.0, 2.0]
    later = tf.train.Checkpoint()
    status = later.restore(path)
    later.v = make(strategy, [5.0, 5.0])
    status.assert_existing_objects_matched()
    assert later.v.numpy().tolist() == [1.0, 2.0]

    module = tf.Module()
    module.v = v
    module.f = tf.function(lambda x: x * v, [tf.TensorSpec([])], autograph=False)
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.f(2.0).numpy().tolist() == [2.0, 4.0]


def test_values_end_with_their_objects(strategy):
    made = [make(strategy, float(i)) for i in range(6)]
    tasks = {v._store.server for v in made}
    names = [v._store.name for v in made]
    del made
    last = [make(strategy, 0.0) for _ in range(2)]
    for task in tasks:
        task.collect()
        assert not any(name in task._resources for name in names)
    assert all(v.numpy() == 0.0 for v in last)


def test_many_variables_lie_in_small_graphs(strategy):
    made = [make(strategy, float(i)) for i in range(100)]
    assert len({v._store.server for v in made}) >= 3
    assert [v.numpy() for v in made] == list(range(100))


def test_the_cluster_is_checked():
    make = tf.distribute.ParameterServerStrategy
    for spec, text in (
        ({}, "must be non-empty"),
        ({"worker": ["a:1"]}, "at least one ps"),
        ({"ps": ["a:1"]}, "at least one worker"),
        ({"chief": ["a:1", "b:1"], "worker": ["c:1"], "ps": ["d:1"]}, "one 'chief'"),
    ):
        resolver = servers.Resolver(tf.train.ClusterSpec(spec))
        with pytest.raises(ValueError, match=text):
            make(resolver)
