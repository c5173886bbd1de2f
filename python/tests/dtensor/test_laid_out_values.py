"""Tensors with layouts: pack, unpack, relayout, scopes. Texts are TensorFlow 2.21's for
the same calls with six logical CPUs, `M` standing for what the mesh prints."""

import copy
import subprocess
import sys

import headrace as tf
import numpy as np
import pytest

d = tf.experimental.dtensor
errors = tf.errors
U = d.UNSHARDED


@pytest.fixture
def mesh():
    return d.create_mesh([("x", 3), ("y", 2)], devices=[f"CPU:{i}" for i in range(6)])


@pytest.fixture
def xy(mesh):
    return d.Layout(["x", "y"], mesh)


def data():
    return np.arange(24.0, dtype="f").reshape(6, 4)


def text(value, mesh):
    return repr(value).replace(mesh.to_string(), "M")


def specs(value):
    return d.fetch_layout(value).sharding_specs


SHARDED = """<tf.Tensor: shape=(6, 4), dtype=float32, value={"CPU:0": [[0 1]
 [4 5]], "CPU:1": [[2 3]
 [6 7]], "CPU:2": [[8 9]
 [12 13]], "CPU:3": [[10 11]
 [14 15]], "CPU:4": [[16 17]
 [20 21]], "CPU:5": [[18 19]
 [22 23]]}, layout="sharding_specs:x,y, mesh:M">"""


def test_texts(mesh, xy):
    assert text(d.relayout(data(), xy), mesh) == SHARDED
    whole = d.copy_to_mesh([1, 2], d.Layout([U], mesh))
    layout = 'layout="sharding_specs:unsharded, mesh:M"'
    assert text(whole, mesh) == (
        f"<tf.Tensor: shape=(2,), dtype=int32, value=[1 2], {layout}>"
    )
    assert str(whole).replace(mesh.to_string(), "M") == (
        f"tf.Tensor([1 2], {layout}, shape=(2,), dtype=int32)"
    )
    long = d.copy_to_mesh(np.arange(2000), d.Layout([U], mesh))
    assert "value=[0 1 2 ... 1997 1998 1999], " in repr(long)
    assert 'value="ab", ' in repr(d.pack([b"ab"] * 6, d.Layout([], mesh)))


def test_it_is_a_tensor_on_the_device_of_meshes(mesh, xy):
    x = d.relayout(data(), xy)
    assert isinstance(x, tf.Tensor) and tf.is_tensor(x) and d.is_dtensor(x)
    assert (
        x.device
        == d.device_name()
        == ("/job:localhost/replica:0/task:0/device:CUSTOM:0")
    )
    assert (x.shape, x.dtype, len(x)) == ([6, 4], tf.float32, 6)
    assert d.fetch_layout(x) == xy and not hasattr(x, "layout")
    assert specs(copy.deepcopy(x)) == specs(copy.copy(x)) == ["x", "y"]
    d.check_layout(x, xy)
    with pytest.raises(ValueError, match="did not match expected layout"):
        d.check_layout(x, d.Layout.replicated(mesh, 2))


def test_only_whole_values_are_read(mesh, xy):
    x = d.relayout(data(), xy)
    with pytest.raises(errors.UnimplementedError, match="non-replicated DTensor"):
        x.numpy()
    whole = d.relayout(x, d.Layout.replicated(mesh, 2))
    np.testing.assert_array_equal(whole.numpy(), data())
    assert float(tf.reduce_sum(x)) == 276.0
    assert int(d.copy_to_mesh(5, d.Layout([], mesh))) == 5


def test_parts(mesh, xy):
    x = d.relayout(data(), xy)
    parts = d.unpack(x)
    assert not any(d.is_dtensor(p) for p in parts)
    expected = [
        data()[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] for i in range(3) for j in (0, 1)
    ]
    for part, wanted in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(part.numpy(), wanted)
    again = d.pack(parts, xy)
    assert text(again, mesh) == SHARDED
    rows = d.pack([[[i]] for i in range(6)], d.Layout(["x", U], mesh))
    assert rows.shape == [3, 1]
    # Each device keeps what it was given.
    assert [p.numpy().item() for p in d.unpack(rows)] == list(range(6))
    whole = d.relayout(rows, d.Layout([U, U], mesh))
    assert whole.numpy().ravel().tolist() == [0, 2, 4]


@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x"), (U, "y"), ("y", U), (U, U)])
def test_packing_is_the_inverse_of_unpacking(mesh, axes):
    layout = d.Layout([*axes, U], mesh)
    value = np.arange(6 * 6 * 2).reshape(6, 6, 2)
    again = d.pack(d.unpack(d.relayout(value, layout)), layout)
    whole = d.relayout(again, d.Layout.replicated(mesh, 3))
    np.testing.assert_array_equal(whole.numpy(), value)


def test_wrong_parts(mesh, xy):
    part = tf.zeros([2, 2])
    for count in (0, 5, 7):
        with pytest.raises(errors.InvalidArgumentError, match=f"but got {count}"):
            d.pack([part] * count, xy)
    with pytest.raises(errors.UnimplementedError, match="all have the same shape"):
        d.pack([part] * 5 + [tf.zeros([3, 3])], xy)
    with pytest.raises(errors.InternalError, match="all have the same dtype"):
        d.pack([part] * 5 + [tf.zeros([2, 2], tf.int32)], xy)
    with pytest.raises(errors.InvalidArgumentError, match="component is: 1"):
        d.pack([tf.zeros([3])] * 6, xy)
    with pytest.raises(errors.InvalidArgumentError, match="already on dtensor device"):
        d.pack([d.relayout(data(), xy)] * 6, xy)
    with pytest.raises(errors.UnimplementedError, match="sparse"):
        d.pack([tf.sparse.from_dense([[1.0]])] * 6, xy)
    with pytest.raises(TypeError):
        d.pack(None, xy)
    with pytest.raises(AttributeError):
        d.pack([part] * 6, None)
    with pytest.raises(TypeError, match="Expecting a Tensor"):
        d.unpack(3)
    with pytest.raises(errors.InvalidArgumentError, match="DTensorUnpack expects"):
        d.unpack(part)


def test_what_has_no_layout(xy):
    plain = tf.zeros([2])
    assert not d.is_dtensor(plain) and not d.is_dtensor(3)
    assert d.fetch_layout(3) is None
    for function in (d.fetch_layout, lambda t: d.check_layout(t, xy)):
        with pytest.raises(errors.InvalidArgumentError, match="FetchLayout expects"):
            function(plain)


def test_relayout(mesh, xy):
    x = d.copy_to_mesh(data(), d.Layout([U], mesh))  # of another rank: whole
    assert specs(x) == [U, U]
    y = d.relayout(x, d.Layout(["x", U], mesh))
    assert specs(d.relayout(y, d.Layout(["match", U], mesh))) == ["x", U]
    assert specs(d.relayout_like(data(), d.relayout(x, xy))) == ["x", "y"]
    assert specs(d.relayout_like(y, tf.zeros([6, 4]))) == [U, U]
    other = d.create_mesh([("q", 2)], devices=["CPU:0", "CPU:1"])
    assert d.fetch_layout(d.relayout(x, d.Layout(["q", U], other))).mesh == other
    with pytest.raises(ValueError, match="mesh dimension match"):
        d.relayout(y, d.Layout(["match", "match"], mesh))


@pytest.mark.parametrize(
    "axes, words",
    [
        (["x"], "got 1 as suggested rank from layout but 2 from shape"),
        ([U, "x"], "dimension size=4 is not divisible by .* dimension=3"),
    ],
)
def test_layouts_that_do_not_fit(mesh, axes, words):
    with pytest.raises(errors.UnknownError, match=words):
        d.relayout(data(), d.Layout(axes, mesh))


def test_operands_without_layouts(mesh, xy):
    x = d.relayout(data(), xy)
    for small in (1, 1.0, tf.constant(1.0), np.float32(1)):
        assert specs(x + small) == specs(small + x) == ["x", "y"]
    for large in (tf.ones([6, 4]), np.ones((6, 4), "f"), tf.ones([4])):
        with pytest.raises(
            errors.UnimplementedError, match="regular tensor for input 1"
        ):
            x + large
    other = d.create_mesh([("q", 6)], devices=[f"CPU:{i}" for i in range(6)])
    with pytest.raises(errors.UnknownError, match="same mesh"):
        x + d.copy_to_mesh(data(), d.Layout([U, U], other))


def test_default_mesh(mesh):
    plain = tf.ones([2])
    with d.default_mesh(mesh):
        assert d.get_default_mesh() == mesh
        assert specs(tf.zeros([2, 3])) == [U, U]
        assert specs(tf.constant([1, 2]) + 1) == [U]
        assert specs(tf.range(3)) == specs(tf.fill([2], 3.0)) == [U]
        assert specs(tf.function(lambda: tf.ones([2]))()) == [U]
        for constant in (tf.constant([1, 2]), tf.convert_to_tensor([1])):
            assert not d.is_dtensor(constant)
        v = tf.Variable(1.0)
        assert d.is_dtensor(v) and specs(v + 1.0) == []
        with tf.device("CPU:0"):
            assert not d.is_dtensor(tf.ones([2]))
        assert d.is_dtensor(tf.ones([2]))
    assert not d.is_dtensor(tf.ones([2])) and not d.is_dtensor(plain)
    assert d.get_default_mesh() is not None  # as upstream: one that was
    with d.run_on(mesh):
        assert d.is_dtensor(tf.ones([2]))
    with tf.device(d.device_name()):
        assert d.is_dtensor(tf.ones([2]))
    for wrong in (None, 3):
        with pytest.raises(ValueError, match="Expect `mesh` to be `Mesh`"):
            with d.default_mesh(wrong):
                pass


def test_call_with_layout(mesh, xy):
    assert specs(d.call_with_layout(tf.zeros, xy, shape=[6, 4])) == ["x", "y"]
    assert not d.is_dtensor(d.call_with_layout(tf.zeros, None, [2]))
    assert d.call_with_layout(lambda: 3, xy) == 3
    seeded = tf.random.stateless_uniform([6], [1, 2])
    found = d.call_with_layout(
        tf.random.stateless_uniform, d.Layout([U], mesh), shape=[6], seed=[1, 2]
    )
    np.testing.assert_array_equal(found.numpy(), seeded.numpy())
    with pytest.raises(errors.UnknownError, match="divisible"):
        d.call_with_layout(tf.zeros, d.Layout(["x"], mesh), [4])
    with pytest.raises(errors.UnknownError, match="rank"):
        d.call_with_layout(tf.zeros, d.Layout(["x"], mesh), [3, 4])
    with pytest.raises(AttributeError):
        d.call_with_layout(tf.zeros, 3, [3])


def test_meshes_of_other_processes():
    remote = d.Mesh.from_string("|x=2|0,1||")
    layout = d.Layout(["x"], remote)
    x = d.relayout([1.0, 2.0], layout)
    assert remote.is_remote() and d.unpack(x) == [] and "value=[1 2], " in repr(x)
    with pytest.raises(errors.InvalidArgumentError, match="expected 0 inputs"):
        d.pack([], layout)


PROGRAM = """
import headrace as tf

d = tf.experimental.dtensor
cpu = tf.config.list_physical_devices("CPU")[0]
six = [tf.config.LogicalDeviceConfiguration()] * 6
tf.config.set_logical_device_configuration(cpu, six)
print(d.num_local_devices("CPU"), d.num_global_devices("cpu"), d.num_local_devices("GPU"))
print(d.local_devices("CPU")[5].to_string(), d.local_devices("CPU", 1)[0].task)
mesh = d.create_mesh([("x", 3), ("y", 2)])
parts = d.unpack(d.call_with_layout(tf.zeros, d.Layout(["x"], mesh), [3]))
print([p.device[-5:] for p in parts])
try:
    d.create_distributed_mesh([("x", 6)])
except ValueError as e:
    print(e)
try:
    d.initialize_accelerator_system("CPU")
except ValueError as e:
    print(e)
print(d.initialize_accelerator_system("CPU", experimental_reset_context=True))
print(d.create_distributed_mesh({"x": 3, "y": 2}).shape())
for dims in ([("x", 4)], [("x", -1)]):
    try:
        d.create_distributed_mesh(dims)
    except ValueError as e:
        print(e)
for function in (d.initialize_accelerator_system, d.initialize_multi_client):
    try:
        function()
    except ValueError as e:
        print(e)
d.shutdown_accelerator_system()
d.initialize_accelerator_system(
    num_logical_cpu_devices=3, experimental_reset_context=True
)
print(d.num_local_devices("CPU"))
d.shutdown_accelerator_system()
try:
    d.shutdown_accelerator_system()
except ValueError as e:
    print(e)
"""


def test_logical_devices():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    already = (
        "Accelerator system has already been initialized. Call "
        "tf.experimental.dtensor.shutdown_accelerator_system() first."
    )
    devices = (
        "Global number of devices (6 per client * 1 clients = 6) must be equal to "
    )
    assert done.stdout.splitlines() == [
        "6 6 0",
        "/job:localhost/replica:0/task:0/device:CPU:5 1",
        str([f"CPU:{i}" for i in range(6)]),
        "Accelerators are uninitialized, please run "
        "dtensor.initialize_accelerator_system() first.",
        "TensorFlow has already been initialized. "
        "tf.experimental.dtensor.initialize_accelerator_system() must be called before "
        "TensorFlow is initialized.",
        "CPU",
        "[3, 2]",
        devices + "total size of the mesh of shape (4,)",
        devices + "total size of the mesh of shape (-1,)",
        already,
        already,
        "3",
        "Accelerator system is not initialized. Call "
        "tf.experimental.dtensor.initialize_accelerator_system first.",
    ]


def test_the_one_client(monkeypatch, mesh):
    assert (d.client_id(), d.num_clients(), d.jobs()) == (0, 1, [])
    assert (d.job_name(), d.full_job_name()) == (
        "localhost",
        "localhost/replica:0/task:0",
    )
    assert d.preferred_device_type() == "CPU" and d.heartbeat_enabled() is True
    with pytest.raises(ValueError, match="Unexpected task ID 2 in local runs"):
        d.full_job_name(2)
    assert d.barrier(mesh) is None and d.barrier(mesh, "name", 100) is None
    with pytest.raises(AttributeError):
        d.barrier(3)
    monkeypatch.setenv("DTENSOR_NUM_CLIENTS", "2")
    assert d.job_name() == "worker"
    with pytest.raises(errors.UnimplementedError, match="2 clients"):
        d.initialize_accelerator_system("CPU")
    monkeypatch.setenv("DTENSOR_NUM_CLIENTS", "0")
    with pytest.raises(ValueError):
        d.num_clients()


@pytest.mark.parametrize(
    "kind, error", [("FOO", ValueError), ("TPU", errors.NotFoundError)]
)
def test_systems_that_are_not_there(kind, error):
    with pytest.raises(error):
        d.initialize_accelerator_system(kind)


@pytest.mark.parametrize(
    "name", ["create_tpu_mesh", "initialize_tpu_system", "shutdown_tpu_system"]
)
def test_tpus(name):
    with pytest.raises(AttributeError, match="there are no TPUs"):
        getattr(d, name)
