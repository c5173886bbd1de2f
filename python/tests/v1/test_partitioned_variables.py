"""Variables in parts: tf.compat.v1's partitioners and PartitionedVariable."""

import headrace as tf
import pytest

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as s:
        yield s


def parts_of(partitioner, shape, dtype=tf.float32):
    return partitioner(shape=tf.TensorShape(shape), dtype=dtype)


@pytest.mark.parametrize(
    ("limit", "size", "wanted"),
    [(1, 1, 1), (3, 64, 3), (10, 64, 3), (100, 16, 10), (4, 256 << 10, 1), (7, 17, 7)],
)
def test_min_max(limit, size, wanted):
    found = v1.min_max_variable_partitioner(limit, min_slice_size=size)
    assert parts_of(found, [10, 4]) == [wanted, 1]


def test_axis_size():
    def count(limit, dtype=tf.float32, **more):
        found = v1.variable_axis_size_partitioner(limit, **more)
        return parts_of(found, [10, 4], dtype)[0]

    assert [count(n) for n in (1, 16, 64, 1 << 20)] == [10, 10, 3, 1]
    assert count(64, max_shards=2) == 2
    assert (count(64, tf.int8), count(64, tf.string)) == (1, 10)
    with pytest.raises(ValueError, match="must be positive"):
        v1.variable_axis_size_partitioner(0)
    with pytest.raises(ValueError, match="not fully defined"):
        parts_of(v1.variable_axis_size_partitioner(4), [4, None])


def test_fixed_size():
    assert parts_of(v1.fixed_size_partitioner(3), [7, 2]) == [3, 1]
    assert parts_of(v1.fixed_size_partitioner(3, axis=1), [7, 2]) == [1, 2]


def test_parts_make_one_variable(session):
    with v1.variable_scope("s", partitioner=v1.fixed_size_partitioner(3)):
        w = v1.get_variable("w", [7, 2], initializer=v1.ones_initializer())
        c = v1.get_variable("c", initializer=tf.reshape(tf.range(8.0), [4, 2]))
        scalar = v1.get_variable("scalar", [], initializer=v1.ones_initializer())
    assert type(w).__name__ == "PartitionedVariable" and len(w) == 3
    assert (w.name, w.shape, w.dtype) == ("s/w", [7, 2], tf.float32)
    assert [v.name for v in w] == ["s/w/part_0:0", "s/w/part_1:0", "s/w/part_2:0"]
    assert [v.shape[0] for v in w] == [3, 2, 2]
    assert scalar.name == "s/scalar:0"
    session.run(v1.global_variables_initializer())
    assert session.run(c.as_tensor()).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert session.run(tf.convert_to_tensor(w)).shape == (7, 2)
    session.run(w.assign(tf.zeros([7, 2])))
    assert not session.run(w.as_tensor()).any()


def test_parts_are_reused(session):
    partitioner = v1.fixed_size_partitioner(2)
    with v1.variable_scope("s", partitioner=partitioner):
        w = v1.get_variable("w", [4])
        with pytest.raises(ValueError, match="Partitioned variable with name s/w"):
            v1.get_variable("w", [4])
    with v1.variable_scope("s", reuse=True):
        assert v1.get_variable("w", [4]) is w


def test_saved_as_slices_of_one(session, tmp_path):
    w = v1.get_variable(
        "w",
        [5, 2],
        initializer=lambda shape, dtype, partition_info: tf.fill(
            shape, tf.cast(partition_info.single_offset(shape), dtype)
        ),
        partitioner=v1.fixed_size_partitioner(2),
    )
    step = v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w))
    session.run(v1.global_variables_initializer())
    path = v1.train.Saver().save(session, str(tmp_path / "m"))
    assert tf.train.load_variable(path, "w").tolist() == [[0, 0]] * 3 + [[3, 3]] * 2
    assert tf.train.list_variables(path) == [
        ("beta1_power", []),
        ("beta2_power", []),
        ("w", [5, 2]),
        ("w/Adam", [5, 2]),
        ("w/Adam_1", [5, 2]),
    ]
    session.run(step)
    with tf.Graph().as_default(), v1.Session() as other:
        v = v1.get_variable("w", [5, 2], partitioner=v1.fixed_size_partitioner(4))
        v1.train.Saver().restore(other, path)
        assert [other.run(p)[0, 0] for p in v] == [0, 0, 3, 3]


def test_bad_partitions(session):
    with pytest.raises(ValueError, match="only slice a variable along one"):
        v1.get_variable("a", [4, 4], partitioner=lambda shape, dtype: [2, 2])
    with pytest.raises(ValueError, match="does not match the Variable's rank"):
        v1.get_variable("b", [4, 4], partitioner=lambda shape, dtype: [2])
    with pytest.raises(ValueError, match="zero partitions"):
        v1.get_variable("c", [4, 4], partitioner=lambda shape, dtype: [0, 1])
