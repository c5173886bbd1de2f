"""CheckpointOptions: asynchronous writes, data files; writes in traced functions."""

import os
import threading

import headrace as tf
import numpy as np
import pytest

Options = tf.train.CheckpointOptions
experimental = tf.train.experimental


def names(folder):
    return sorted(os.listdir(folder))


def test_async(tmp_path):
    v = tf.Variable([1.0, 2.0])
    c = tf.train.Checkpoint(v=v)
    seen, release = [], threading.Event()
    options = Options(
        enable_async=True,
        experimental_write_callbacks=[
            lambda path: seen.append(path),
            lambda: release.wait(20),
        ],
    )
    path = c.save(str(tmp_path / "c"), options=options)
    v.assign([7.0, 8.0])  # what is written was taken before
    release.set()
    c.sync()
    assert seen == [path]
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    np.testing.assert_array_equal(
        tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE"), [1, 2]
    )
    assert Options(experimental_enable_async_checkpoint=True).enable_async


def test_async_errors_come_out_later(tmp_path):
    (tmp_path / "file").write_text("")
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    c.write(str(tmp_path / "file" / "c"), Options(enable_async=True))
    with pytest.raises(tf.errors.OpError):
        c.sync()
    c.sync()
    c.write(str(tmp_path / "c"), Options(enable_async=True))
    c.sync()
    assert names(tmp_path) == ["c.data-00000-of-00001", "c.index", "file"]


def test_async_manager(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(c, str(tmp_path / "m"), max_to_keep=2)
    for _ in range(4):
        c.v.assign_add(1.0)
        manager.save(options=Options(enable_async=True))
    manager.sync()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-3", "ckpt-4"]
    assert names(tmp_path / "m") == [
        "checkpoint",
        "ckpt-3.data-00000-of-00001",
        "ckpt-3.index",
        "ckpt-4.data-00000-of-00001",
        "ckpt-4.index",
    ]
    c.v.assign(0.0)
    c.restore(manager.latest_checkpoint)
    assert float(c.v) == 5.0


def test_max_shard_size(tmp_path):
    values = [
        np.arange(300, dtype=np.float32).reshape(3, 100),
        np.arange(7),
        np.array([b"x" * 100, b""]),
        np.float32(3),
    ]
    v = [tf.Variable(x) for x in values]
    c = tf.train.Checkpoint(v=v)
    policy = experimental.MaxShardSizePolicy(max_shard_size=120)
    path = c.write(str(tmp_path / "c"), Options(experimental_sharding_callback=policy))
    files = [n for n in names(tmp_path) if ".data-" in n]
    assert len(files) >= 10
    for variable in v:
        variable.assign(
            tf.fill(variable.shape, "")
            if variable.dtype == tf.string
            else tf.zeros_like(variable)
        )
    c.read(path).assert_consumed()
    for variable, value in zip(v, values):
        np.testing.assert_array_equal(variable.numpy(), value)
    # Written again in one piece: the other files go.
    c.write(path)
    assert names(tmp_path) == ["c.data-00000-of-00001", "c.index"]
    c.read(path).assert_consumed()
    with pytest.raises(ValueError, match="must be positive"):
        experimental.MaxShardSizePolicy(0)


class Each(experimental.ShardingCallback):
    """A file a tensor."""

    description = "A file a tensor."

    def __call__(self, shardable_tensors):
        return [{t.checkpoint_key: {t.slice_spec: t.tensor}} for t in shardable_tensors]


class Halves(experimental.ShardingCallback):
    description = "Two slices of v, the rest in the first file."

    def __call__(self, shardable_tensors):
        first, second = {}, {}
        for t in shardable_tensors:
            if not t.checkpoint_key.startswith("v/"):
                first[t.checkpoint_key] = {"": t.tensor}
                continue
            first[t.checkpoint_key] = {"4 0,3": t.tensor[:3]}
            second[t.checkpoint_key] = {"4 3,1": t.tensor[3:]}
        return [first, second]


class Loses(experimental.ShardingCallback):
    description = "Loses tensors."

    def __call__(self, shardable_tensors):
        return [{}]


@pytest.mark.parametrize("callback,count", [(Each(), 2), (Halves(), 2)])
def test_own_callbacks(tmp_path, callback, count):
    c = tf.train.Checkpoint(v=tf.Variable([1, 2, 3, 4]))
    path = c.write(
        str(tmp_path / "c"), Options(experimental_sharding_callback=callback)
    )
    assert len([n for n in names(tmp_path) if ".data-" in n]) == count
    c.v.assign([0, 0, 0, 0])
    c.read(path).assert_consumed()
    assert c.v.numpy().tolist() == [1, 2, 3, 4]


def test_callback_must_keep_all(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable(1))
    with pytest.raises(RuntimeError, match="left out"):
        c.write(str(tmp_path / "c"), Options(experimental_sharding_callback=Loses()))
    with pytest.raises(ValueError, match="must be of type ShardingCallback"):
        Options(experimental_sharding_callback=len)
    with pytest.raises(AssertionError):
        Options(experimental_write_callbacks=[lambda a, b: 0])
    assert names(tmp_path) == []


def test_in_a_traced_function(tmp_path):
    v = tf.Variable(1.0)
    c = tf.train.Checkpoint(v=v, more=[tf.Variable([2, 3])])
    prefix = str(tmp_path / "w")

    @tf.function
    def write():
        v.assign_add(1.0)
        return c.write(prefix)

    assert write().numpy().decode() == prefix
    assert write().numpy().decode() == prefix
    v.assign(0.0)
    c.read(prefix).assert_consumed()
    assert float(v) == 3.0

    @tf.function
    def save():
        return c.save(prefix)

    with pytest.raises(NotImplementedError, match="is not supported, as save"):
        save()


def test_skip_slot_variables(tmp_path):
    """Slots stay what they are."""
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    path = c.write(str(tmp_path / "c"))
    c.v.assign(0.0)
    c.read(path, Options(experimental_skip_slot_variables=True)).assert_consumed()
    assert float(c.v) == 1.0


def test_tables(tmp_path):
    e = tf.lookup.experimental

    def tables():
        return (
            e.MutableHashTable(tf.string, tf.int64, -1),
            e.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0]),
            e.DenseHashTable(tf.int64, tf.int64, -1, -10, -11),
        )

    a, b, d = tables()
    a.insert(["x", "y"], [1, 2])
    b.insert([5], [[1.0, 2.0]])
    d.insert([7], [70])
    path = tf.train.Checkpoint(a=a, b=b, d=d).save(str(tmp_path / "c"))
    keys = [k for k, _ in tf.train.list_variables(path)]
    assert "a/.ATTRIBUTES/table-keys" in keys and "a/.ATTRIBUTES/table-values" in keys
    a, b, d = tables()
    a.insert(["old"], [9])
    tf.train.Checkpoint(a=a, b=b, d=d).restore(path).assert_consumed()
    assert a.lookup(["x", "y", "old"]).numpy().tolist() == [1, 2, -1]
    assert b.lookup([5, 6]).numpy().tolist() == [[1, 2], [0, 0]]
    assert d.lookup([7, 8]).numpy().tolist() == [70, -1]


def test_buckets_of_dense_tables():
    """Layouts that TensorFlow 2.21 exported."""

    def exported(keys, values, fallback, **more):
        kinds = tf.convert_to_tensor(keys).dtype, tf.convert_to_tensor(values).dtype
        reserved = ("e", "x") if kinds[0] == tf.string else (-10, -11)
        table = tf.lookup.experimental.DenseHashTable(
            *kinds, fallback, *reserved, **dict(initial_num_buckets=8, **more)
        )
        for key, value in zip(keys, values):
            table.insert([key], [value])
        keys, values = table.export()
        return keys.numpy()[:, 0].tolist(), values.numpy().tolist()

    keys = np.array([7, 15, 23, 31])
    found, values = exported(keys, np.array([70, 1, 2, 3]), -1)
    assert found == [15, -10, 23, -10, -10, 31, -10, 7]
    assert values == [[1], [0], [2], [0], [0], [3], [0], [70]]
    assert exported(np.array([-1, -2, -9]), np.arange(3), -1)[0] == [
        *[-9, -10, -10, -10, -10, -10, -2, -1]
    ]
    assert len(exported(np.arange(6), np.arange(6), -1)[0]) == 8
    assert len(exported(np.arange(7), np.arange(7), -1)[0]) == 16
    found, _ = exported(["a", "b", "c", "d"], [1, 2, 3, 4], -1)
    assert found == [b"e", b"e", b"b", b"d", b"a", b"c", b"e", b"e"]
    _, values = exported(np.array([5]), [[1.0, 2.0]], [0.0, 0.0])
    assert values == [[0, 0]] * 5 + [[1, 2]] + [[0, 0]] * 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="a power of 2, got: 7"):
        tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, -1, -10, -11, initial_num_buckets=7
        )


def test_options_can_be_changed_and_copied():
    import copy

    options = tf.train.CheckpointOptions(
        experimental_write_callbacks=[len], enable_async=True
    )
    other = copy.copy(options)
    other.experimental_enable_async_checkpoint = False
    other.experimental_write_callbacks.append(len)
    assert options.enable_async and not other.enable_async
    assert options.experimental_write_callbacks == [len]


class _State(tf.train.experimental.PythonState):
    def __init__(self):
        self.value = b""

    def serialize(self):
        return self.value

    def deserialize(self, string_value):
        self.value = string_value


def test_graphs_save_objects_with_values_of_their_own(tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        state = _State()
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        checkpoint = tf.train.Checkpoint(s=state, t=table, v=tf.Variable(1.0))
        session.run(v1.global_variables_initializer())
        session.run(table.insert(["a", "b"], tf.constant([1, 2], tf.int64)))
        state.value = b"first\0"
        path = checkpoint.save(str(tmp_path / "c"))
        session.run(table.insert(["a", "z"], tf.constant([7, 8], tf.int64)))
        state.value = b"second"
        size = len(graph.get_operations())
        checkpoint.save(str(tmp_path / "c"))
        assert len(graph.get_operations()) == size
        found = table.lookup(tf.constant(["a", "b", "z"]))
        checkpoint.restore(path).assert_consumed().run_restore_ops()
        assert state.value == b"first\0"
        assert session.run(found).tolist() == [1, 2, -1]


def test_dense_tables_take_the_buckets_of_a_checkpoint(tmp_path):
    def make(buckets):
        return tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, -1, 0, -1, initial_num_buckets=buckets
        )

    saved, other = make(32), make(64)
    saved.insert(tf.constant([11, 12], tf.int64), tf.constant([1, 2], tf.int64))
    path = tf.train.Checkpoint(t=saved).save(str(tmp_path / "c"))
    assert len(other.export()[0]) == 64
    tf.train.Checkpoint(t=other).restore(path)
    assert len(other.export()[0]) == 32 and other.size() == 2
