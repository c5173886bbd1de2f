"""Variables, gradients, functions, datasets and checkpoints with layouts. Values and
layouts are TensorFlow 2.21's for the same calls on a mesh of two by three CPUs."""

import os

import headrace as tf
import numpy as np
import pytest

d = tf.experimental.dtensor
errors = tf.errors
U = d.UNSHARDED


@pytest.fixture
def mesh():
    return d.create_mesh([("x", 2), ("y", 3)], devices=[f"CPU:{i}" for i in range(6)])


@pytest.fixture
def x(mesh):
    return d.relayout(data(), d.Layout(["y", U], mesh))


@pytest.fixture
def v(mesh):
    return d.DVariable(d.relayout(tf.ones([4, 2]), d.Layout([U, "x"], mesh)))


def data():
    return np.arange(24.0, dtype="f").reshape(6, 4)


def specs(value):
    return d.fetch_layout(value).sharding_specs


def whole(value, mesh):
    layout = d.Layout.replicated(mesh, value.shape.rank)
    return d.relayout(value, layout).numpy()


def test_variables(mesh, v):
    assert isinstance(v, tf.Variable) and d.is_dtensor(v)
    assert v.layout == d.fetch_layout(v) and specs(v) == [U, "x"]
    assert (v.name, v.device, v.trainable) == ("Variable:0", d.device_name(), True)
    ones = ", ".join(f'"CPU:{i}": [[1]\n [1]\n [1]\n [1]]' for i in range(6))
    assert repr(v).replace(mesh.to_string(), "M") == (
        "<tf.Variable 'Variable:0' shape=(4, 2) dtype=float32, value={" + ones + "}, "
        'layout="sharding_specs:unsharded,x, mesh:M">'
    )
    with pytest.raises(errors.UnimplementedError, match="non-replicated"):
        v.numpy()
    for read in (
        *(v.value(), v.read_value(), tf.convert_to_tensor(v), v + 1, v * v, v == v),
        *(v.sparse_read([0, 1]), tf.gather(v, [0, 1])),
    ):
        assert specs(read) == [U, "x"]
    assert specs(v[0]) == [U]


def test_ways_to_make_variables(mesh, v):
    ones, layout = tf.ones([6]), d.Layout(["x"], mesh)
    assert specs(d.DVariable(ones, layout=layout)) == ["x"]
    assert specs(d.DVariable(lambda: tf.ones([6]), layout=layout)) == ["x"]
    assert specs(d.DVariable(lambda: v.value())) == [U, "x"]
    named = d.DVariable(v.value(), name="foo", trainable=False)
    assert (named.name, named.trainable) == ("foo:0", False)
    for plain in (ones, [1.0, 2.0], 1.0):
        with pytest.raises(errors.InvalidArgumentError, match="Neither layout nor"):
            d.DVariable(plain)
    with pytest.raises(ValueError, match="requested dtype int32"):
        d.DVariable(v.value(), dtype=tf.int32)
    with pytest.raises(TypeError):
        d.DVariable()


def test_assignments_keep_the_layout(mesh, v):
    other = d.relayout(v.value() * 2.0, d.Layout.replicated(mesh, 2))
    assert specs(v.assign(other)) == specs(v) == [U, "x"]
    assert specs(v.assign_add(other)) == specs(v.assign_sub(v.value())) == [U, "x"]
    np.testing.assert_array_equal(whole(v, mesh), np.zeros((4, 2)))
    for change in (v.assign, v.assign_add):
        with pytest.raises(errors.UnimplementedError, match="got a regular tensor"):
            change(tf.zeros([4, 2]))
    for wrong in (1.0, d.relayout(data(), d.Layout([U, U], mesh))):
        with pytest.raises(ValueError, match="Shape mismatch|shape"):
            v.assign(wrong)


def test_gradients(mesh, x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.matmul(x, v)
        loss = tf.reduce_sum(y * y)
    of_v, of_x = tape.gradient(loss, [v, x])
    assert (specs(y), specs(loss)) == (["y", "x"], [])
    assert (specs(of_v), specs(of_x)) == ([U, "x"], ["y", U])
    assert float(loss) == 34352.0
    column = [7760.0, 8312.0, 8864.0, 9416.0]
    assert whole(of_v, mesh).tolist() == [[n, n] for n in column]
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(x)
    assert tape.gradient(z, v) is None


def test_functions(mesh, x, v):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, v) ** 2)
        gradient = tape.gradient(loss, v)
        v.assign_sub(0.01 * gradient)
        return loss, gradient

    loss, gradient = step(x)
    assert (float(loss), specs(loss), specs(gradient)) == (34352.0, [], [U, "x"])
    np.testing.assert_allclose(whole(v, mesh)[0], 1 - 77.6, rtol=1e-6)
    assert specs(step(x)[1]) == [U, "x"]  # of the trace that is there


@pytest.mark.parametrize(
    "function, wanted",
    [
        (lambda x, m: tf.nn.softmax(x), ["y", U]),
        (lambda x, m: d.relayout(x, d.Layout(["x", U], m)), ["x", U]),
        (lambda x, m: d.relayout_like(tf.ones(x.shape), x), ["y", U]),
        (lambda x, m: d.copy_to_mesh(x, d.Layout(["x", U], m)), ["x", U]),
        (lambda x, m: tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: x * 2), ["y", U]),
        (lambda x, m: tf.while_loop(lambda y: True, lambda y: (y * 2,), [x],
                                    maximum_iterations=3)[0], ["y", U]),
        (lambda x, m: x + tf.constant(np.ones((6, 4), "f")), ["y", U]),
        (lambda x, m: tf.ones([6, 4]), [U, U]),
        (lambda x, m: tf.shape(x), [U]),
        (lambda x, m: x + d.call_with_layout(tf.ones, d.Layout(["x", U], m), [6, 4]),
         ["y", U]),
        (lambda x, m: {"a": [x + 1]}["a"][0], ["y", U]),
    ],
)  # fmt: skip
def test_layouts_of_functions(mesh, x, function, wanted):
    traced = tf.function(lambda x: function(x, mesh))
    assert specs(traced(x)) == wanted
    assert specs(traced.get_concrete_function(x)(x)) == wanted


def test_what_functions_refuse(mesh, x):
    with pytest.raises(errors.UnimplementedError, match="got a regular tensor"):
        tf.function(lambda x, y: x + y)(x, tf.constant(data()))
    layout = d.Layout(["x"], mesh)
    for name, call in (
        ("unpack", lambda x: d.unpack(x)),
        ("pack", lambda x: d.pack([tf.zeros([1])] * 6, layout)),
        ("fetch_layout", lambda x: d.fetch_layout(x)),
        ("is_dtensor", lambda x: d.is_dtensor(x)),
    ):
        with pytest.raises(RuntimeError, match=f"`{name}` must be called eagerly"):
            tf.function(call)(x)


def test_plain_functions_stay_plain(x):
    double = tf.function(lambda x: x * 2)
    assert specs(double(x)) == ["y", U]
    assert not d.is_dtensor(double(tf.constant(data())))
    assert not d.is_dtensor(double(1.0))


# --- datasets ---


def dataset(of, rows=None, **changed):
    given = {
        "mesh": of,
        "layouts": d.Layout(["x", U], of),
        "global_batch_size": 6,
        "batch_dim": "x",
        **changed,
    }
    if rows is None:
        rows = tf.data.Dataset.from_tensor_slices(
            np.arange(48.0, dtype="f").reshape(12, 4)
        )
    return d.DTensorDataset(rows, **given)


def test_datasets(mesh):
    found = dataset(mesh)
    assert found.element_spec == tf.TensorSpec([6, 4])
    assert len(found) == 12  # as upstream: of what it was made of
    batches = list(found)
    assert [specs(b) for b in batches] == [["x", U]] * 2
    rows = np.arange(48.0).reshape(2, 6, 4)
    for batch, wanted in zip(batches, rows, strict=True):
        np.testing.assert_array_equal(whole(batch, mesh), wanted)
        np.testing.assert_array_equal(d.unpack(batch)[5].numpy(), wanted[3:])
    assert len(list(dataset(mesh, global_batch_size=8, prefetch=2))) == 1


def test_datasets_of_batches(mesh):
    rows = tf.data.Dataset.from_tensor_slices(data())
    # Batches are a replica's: two go together.
    batches = rows.batch(3, drop_remainder=True)
    (one,) = dataset(mesh, batches, dataset_already_batched=True)
    np.testing.assert_array_equal(whole(one, mesh), data())
    for wrong, words in (
        (rows.batch(6, drop_remainder=True), "got 6 but expected 3"),
        (rows.batch(3), "Ensure drop_remainder=True"),
    ):
        with pytest.raises(ValueError, match=words):
            dataset(mesh, wrong, dataset_already_batched=True)


def test_datasets_of_structures(mesh):
    rows = tf.data.Dataset.from_tensor_slices({"a": data(), "b": data()[:, 0]})
    layouts = {"a": d.Layout(["x", U], mesh), "b": d.Layout(["x"], mesh)}
    (one,) = dataset(mesh, rows, layouts=layouts)
    assert {k: specs(t) for k, t in one.items()} == {"a": ["x", U], "b": ["x"]}
    with pytest.raises(ValueError, match="same nested structure"):
        dataset(mesh, rows, layouts={"a": layouts["a"]})


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"batch_dim": "q"}, ValueError, "Dimension q does not exist in mesh"),
        ({"batch_dim": "y"}, ValueError, "batch_dim y was specified but"),
        ({"tf_data_service_config": 3}, NotImplementedError, "Multi-client"),
        ({"layouts": None}, AttributeError, "NoneType"),
        ({"mesh": None}, AttributeError, "NoneType"),
    ],
)
def test_wrong_arguments_of_datasets(mesh, changed, error, words):
    with pytest.raises(error, match=words):
        dataset(mesh, **changed)


def test_sizes_that_do_not_fit_datasets(mesh):
    with pytest.raises(ValueError, match="Expected layout with rank 2"):
        dataset(mesh, layouts=d.Layout(["x"], mesh))
    with pytest.raises(errors.UnknownError, match="dimension size=5 is not divisible"):
        list(dataset(mesh, global_batch_size=5))
    with pytest.raises(errors.InvalidArgumentError):
        list(dataset(mesh, global_batch_size=0))


# --- checkpoints ---


@pytest.mark.parametrize("make", [tf.train.Checkpoint, None])
def test_checkpoints(tmp_path, mesh, v, make):
    saver = d.DTensorCheckpoint(mesh, v=v) if make is None else make(v=v)
    v.assign(v * 3.0)
    path = saver.save(str(tmp_path / "c"))
    assert dict(tf.train.list_variables(path))["v/.ATTRIBUTES/VARIABLE_VALUE"] == [4, 2]
    v.assign(v * 0.0)
    saver.restore(path).assert_consumed()
    np.testing.assert_array_equal(whole(v, mesh), np.full((4, 2), 3.0))
    assert specs(v) == [U, "x"]
    later = d.DVariable(d.copy_to_mesh(tf.zeros([4, 2]), d.Layout([U, U], mesh)))
    tf.train.Checkpoint(v=later).restore(path)
    assert specs(later) == [U, U] and later.numpy()[0, 0] == 3.0


def test_values_saved_in_few_bits(tmp_path, mesh, v):
    v.assign(v / 3.0)
    d.enable_save_as_bf16([v, tf.Variable(1.0)])
    assert v.save_as_bf16
    saver = d.DTensorCheckpoint(mesh, v=v)
    path = saver.save(str(tmp_path / "c"))
    saved = tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
    assert saved.dtype.name == "bfloat16"
    saver.restore(path)
    assert whole(v, mesh)[0, 0] == 0.333984375 and v.dtype == tf.float32
    whole_numbers = d.DVariable(d.copy_to_mesh([1], d.Layout([U], mesh)))
    d.enable_save_as_bf16([whole_numbers])
    assert not whole_numbers.save_as_bf16


def test_values_saved_by_name(tmp_path, mesh, x, v):
    prefix = str(tmp_path / "n")
    assert d.name_based_save(mesh, prefix, {"a": x, "b/c": v}) is None
    assert tf.train.list_variables(prefix) == [("a", [6, 4]), ("b/c", [4, 2])]
    found = d.name_based_restore(mesh, prefix, {"a": x, "b/c": v})
    assert list(found) == ["a", "b/c"] and specs(found["a"]) == ["y", U]
    assert specs(found["b/c"]) == [U, "x"]
    np.testing.assert_array_equal(whole(found["a"], mesh), data())
    d.sharded_save(mesh, str(tmp_path / "s"), ["a"], [""], [x])
    assert tf.train.list_variables(str(tmp_path / "s")) == [("a", [6, 4])]
    assert os.path.exists(tmp_path / "s.index")


def test_what_is_not_saved_by_name(tmp_path, mesh, x, v):
    prefix = str(tmp_path / "n")
    d.name_based_save(mesh, prefix, {"a": x})
    restore = d.name_based_restore
    for given, error in (
        ({"q": x}, errors.NotFoundError),
        ({"a": v}, errors.InvalidArgumentError),
        ({"a": tf.cast(x, tf.int32)}, errors.InvalidArgumentError),
        ({"a": tf.constant(data())}, ValueError),
        ({}, ValueError),
    ):
        with pytest.raises(error):
            restore(mesh, prefix, given)
    with pytest.raises(errors.NotFoundError):
        restore(mesh, str(tmp_path / "none"), {"a": x})
    with pytest.raises(ValueError):
        d.name_based_save(mesh, prefix, {})
    with pytest.raises(AttributeError):
        d.name_based_save(3, prefix, {"a": x})
    with pytest.raises(errors.UnimplementedError, match="SaveV2"):
        d.name_based_save(mesh, prefix, {"a": tf.ones([2])})
    with pytest.raises(errors.InvalidArgumentError):
        d.sharded_save(mesh, prefix, ["a"], ["", ""], [x, x])
    with pytest.raises(errors.UnknownError, match="shape_and_slices"):
        d.sharded_save(mesh, prefix, ["a"], ["6 4 0,6:0,4"], [x])


# --- what dispatch does not reach ---


def test_operations_by_their_own_names(x):
    assert specs(tf.raw_ops.AddV2(x=x, y=x)) == ["y", U]
    values, _ = tf.raw_ops.TopKV2(input=x, k=2)
    assert specs(values) == ["y", U]
    assert not d.is_dtensor(tf.raw_ops.Neg(x=tf.ones([2])))


def test_maps_over_rows(mesh):
    x = d.relayout(data(), d.Layout(["y", "x"], mesh))
    found = tf.map_fn(lambda row: row * 2 + x[0], x)
    assert specs(found) == [U, "x"]
    np.testing.assert_array_equal(whole(found, mesh), data() * 2 + data()[0])
    plain = tf.map_fn(lambda row: row * 2, tf.constant(data()))
    assert not d.is_dtensor(plain)


@pytest.mark.parametrize(
    "make",
    [lambda: tf.keras.optimizers.SGD(0.01), lambda: tf.keras.optimizers.Adam(0.1)],
)
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_optimizers_do_as_with_plain_variables(mesh, make, wrap):
    def train(x, w, b):
        optimizer = make()

        @wrap
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.matmul(x, w) + b) ** 2)
            gradients = tape.gradient(loss, [w, b])
            optimizer.apply_gradients(zip(gradients, [w, b], strict=True))
            return loss

        return [float(step(x)) for _ in range(3)]

    ones, zeros = np.ones((4, 2), "f"), np.zeros(2, "f")
    w = d.DVariable(d.relayout(ones, d.Layout([U, "x"], mesh)))
    b = d.DVariable(d.relayout(zeros, d.Layout(["x"], mesh)))
    found = train(d.relayout(data() / 9, d.Layout(["y", U], mesh)), w, b)
    wanted = train(tf.constant(data() / 9), tf.Variable(ones), tf.Variable(zeros))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert (specs(w), specs(b)) == ([U, "x"], ["x"])


def test_gradients_lie_as_their_calls_do(mesh, x, v):
    b = d.DVariable(d.relayout(tf.zeros([2]), d.Layout([U], mesh)))
    rows = d.DVariable(d.relayout(tf.ones([4, 2]), d.Layout(["x", U], mesh)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = tf.reduce_mean(tf.nn.relu(tf.matmul(x, v) + b))
        of_rows = tf.reduce_mean(tf.matmul(x, rows))
        sums = tf.reduce_sum(x * 2.0, 0)
    assert [specs(g) for g in tape.gradient(loss, [v, b])] == [[U, "x"], ["x"]]
    assert specs(tape.gradient(of_rows, rows)) == [U, U]
    assert specs(tape.gradient(sums, x)) == [U, U]
