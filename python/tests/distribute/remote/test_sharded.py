"""ShardedVariable, with the values that TensorFlow 2.21 gives."""

import headrace as tf
import numpy as np
import pytest
import servers

WHOLE = np.arange(10.0).reshape(5, 2)
ROWS = WHOLE.tolist()


@pytest.fixture(scope="module")
def sharding(cluster):
    parts = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    return servers.strategy_of(cluster, parts)


@pytest.fixture
def w(sharding):
    with sharding.scope():
        return tf.Variable(WHOLE, name="w")


def test_parts(sharding, w):
    assert not isinstance(w, tf.Variable)
    assert [(v.name, v.shape.as_list()) for v in w.variables] == [
        ("w/part_0:0", [3, 2]),
        ("w/part_1:0", [2, 2]),
    ]
    assert len({v.device for v in w.variables}) == 2
    assert (w.shape, w.dtype, w.is_sharded_variable) == ([5, 2], tf.float64, True)
    assert [v.shape[0] for v in w] == [3, 2]
    with sharding.scope():
        assert isinstance(tf.Variable(1.0), tf.Variable)
        assert isinstance(tf.Variable([1.0]), tf.Variable)
        module = tf.Module()
        module.w, module.v = w, tf.Variable(1.0, name="v")
    names = ["w/part_0:0", "w/part_1:0"]
    assert [v.name for v in module.trainable_variables] == ["v:0", *names]


def test_bad_partitioners(cluster):
    for counts in ([1, 2], [2, 2], [0, 1], []):
        strategy = servers.strategy_of(cluster, lambda shape, dtype, c=counts: c)
        with pytest.raises(ValueError, match="variable_partitioner must return a list"):
            with strategy.scope():
                tf.Variable(WHOLE)
    strategy = servers.strategy_of(cluster, lambda shape, dtype: [9, 1])
    with strategy.scope():
        assert [v.shape[0] for v in tf.Variable(WHOLE[:2]).variables] == [1, 1]


@pytest.mark.parametrize(
    "key",
    [
        *(1, -1, slice(1, 4), slice(None, -1), slice(None, None, 2), slice(2, 10)),
        *(slice(-1, 0, -1), slice(3, 1), slice(0, 5, 3), slice(3, 5), None, (..., 1)),
        (slice(1, 4), 0),
    ],
    ids=repr,
)
def test_indexing(w, key):
    assert w[key].numpy().tolist() == WHOLE[key].tolist()


def test_bad_indices(w):
    with pytest.raises(IndexError, match="slice index 7 of dimension 0 out of bounds"):
        w[7]
    with pytest.raises(TypeError, match="using Tensor for indexing is not allowed"):
        w[tf.constant(3)]
    with pytest.raises(TypeError):
        w[[True, False]]


@pytest.mark.parametrize(
    "method, first, last",
    [
        ("scatter_add", [3.0, 5.0], [9.0, 11.0]),
        ("scatter_sub", [-3.0, -3.0], [7.0, 7.0]),
        ("scatter_mul", [0.0, 4.0], [8.0, 18.0]),
        ("scatter_div", [0.0, 0.25], [8.0, 4.5]),
        ("scatter_max", [3.0, 4.0], [8.0, 9.0]),
        ("scatter_min", [0.0, 1.0], [1.0, 2.0]),
        ("scatter_update", [3.0, 4.0], [1.0, 2.0]),
        ("batch_scatter_update", [3.0, 4.0], [1.0, 2.0]),
    ],
)
def test_scatters(w, method, first, last):
    values = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.float64)
    done = getattr(w, method)(tf.IndexedSlices(values, tf.constant([4, 0])))
    assert done is w
    assert w.numpy().tolist() == [first, *ROWS[1:4], last]


def test_assignments(w):
    assert w.assign(np.ones([5, 2])) is w
    w.assign_add(WHOLE)
    w.assign_sub(np.ones([5, 2]))
    assert w.numpy().tolist() == ROWS
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(4, 2\)"):
        w.assign(np.ones([4, 2]))
    with pytest.raises(ValueError, match="requested dtype float64"):
        w.assign(tf.ones([5, 2]))


def test_as_a_tensor(w):
    assert tf.convert_to_tensor(w).numpy().tolist() == ROWS
    assert (w + 1.0).numpy().tolist() == (1.0 + WHOLE).tolist()
    assert (2.0 - w).numpy().tolist() == (2.0 - WHOLE).tolist()
    assert (w > 1).numpy().tolist() == (WHOLE > 1).tolist()
    assert (-w).numpy().tolist() == (-WHOLE).tolist()
    assert (w == w).numpy().all()
    assert tf.reduce_sum(w) == 45.0
    ones = tf.ones([2, 1], tf.float64)
    assert (w @ ones).numpy().tolist() == (WHOLE @ np.ones([2, 1])).tolist()
    assert tf.gather(w, [0, 4]).numpy().tolist() == [ROWS[0], ROWS[4]]


def test_embedding_lookup(w):
    look = tf.nn.embedding_lookup
    found = [[ROWS[0], ROWS[4]], [ROWS[1], ROWS[2]]]
    assert look(w, [[0, 4], [1, 2]]).numpy().tolist() == found
    assert look(w.variables, [0, 3, 4]).numpy().tolist() == [ROWS[i] for i in (0, 3, 4)]
    assert w.sparse_read([0, 4]).numpy().tolist() == found[0]
    ids = tf.sparse.from_dense(tf.constant([[1, 4]], tf.int64))
    sum_of = tf.nn.embedding_lookup_sparse(w, ids, None, combiner="sum")
    assert sum_of.numpy().tolist() == [[10.0, 12.0]]
    safe = tf.nn.safe_embedding_lookup_sparse(w, ids, None)
    assert safe.numpy().tolist() == [[5.0, 6.0]]


def test_gradients(w):
    with tf.GradientTape(persistent=True) as tape:
        rows = tf.nn.embedding_lookup(w, [0, 4]) * 3.0
        all_of_it = w * 3.0
    found = tape.gradient(rows, w.variables)
    assert [tf.convert_to_tensor(g).numpy().tolist() for g in found] == [
        [[3.0, 3.0], [0.0, 0.0], [0.0, 0.0]],
        [[0.0, 0.0], [3.0, 3.0]],
    ]
    found = tape.gradient(all_of_it, w.variables)
    assert [g.numpy().tolist() for g in found] == [[[3.0, 3.0]] * 3, [[3.0, 3.0]] * 2]


def test_checkpoints(w, tmp_path):
    checkpoint = tf.train.Checkpoint(w=w)
    path = checkpoint.save(str(tmp_path / "c"))
    listed = dict(tf.train.list_variables(path))
    assert listed["w/.ATTRIBUTES/VARIABLE_VALUE"] == [5, 2]
    w.assign(np.zeros([5, 2]))
    checkpoint.restore(path).assert_consumed()
    assert w.numpy().tolist() == ROWS
    plain = tf.Variable(np.zeros([5, 2]))
    tf.train.Checkpoint(w=plain).restore(path)
    assert plain.numpy().tolist() == ROWS
    plain.assign(WHOLE * 2)
    path = tf.train.Checkpoint(w=plain).save(str(tmp_path / "d"))
    checkpoint.restore(path)
    assert w.numpy().tolist() == (WHOLE * 2).tolist()


def test_saved_models_have_one_variable(sharding, w, tmp_path):
    """As TensorFlow's: also of values that changed since it was saved before, and saved
    within the scope."""
    module = tf.Module()
    module.w, one = w, tf.TensorSpec([None], tf.int32)
    module.rows = tf.function(
        lambda i: tf.nn.embedding_lookup(module.w, i), input_signature=[one]
    )
    module.whole = tf.function(lambda: tf.convert_to_tensor(module.w) * 2.0, [])
    before = w.numpy()
    with sharding.scope():
        tf.saved_model.save(module, tmp_path / "first")
    w.assign_add(tf.ones_like(before))
    tf.saved_model.save(module, tmp_path / "second")
    for folder, want in (("first", before), ("second", before + 1)):
        loaded = tf.saved_model.load(tmp_path / folder)
        assert loaded.w.shape == w.shape
        np.testing.assert_array_equal(loaded.w, want)
        np.testing.assert_array_equal(loaded.rows([4, 0]), want[[4, 0]])
        np.testing.assert_array_equal(loaded.whole(), want * 2)
        found = dict(tf.train.list_variables(tmp_path / folder / "variables/variables"))
        assert found["w/.ATTRIBUTES/VARIABLE_VALUE"] == w.shape.as_list()
    np.testing.assert_array_equal(module.rows([4, 0]), (before + 1)[[4, 0]])


def test_saved_models_of_keras(sharding, tmp_path):
    with sharding.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Input((4,)),
                tf.keras.layers.Dense(6),
                tf.keras.layers.Dense(2),
            ]
        )
    x = tf.constant([[1.0, 2.0, 3.0, 4.0]])
    want = model(x)
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    (given,) = loaded.signatures["serving_default"](x).values()
    np.testing.assert_allclose(given, want, rtol=1e-6)
    assert [v.shape.as_list() for v in loaded.variables] == [[4, 6], [6], [6, 2], [2]]
