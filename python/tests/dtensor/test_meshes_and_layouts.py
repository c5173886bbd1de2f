"""Meshes and layouts without tensors. Texts are TensorFlow 2.21's: each literal is what
its `Mesh` and `Layout` print for the same calls, made with six logical CPUs."""

import copy
import pickle

import headrace as tf
import numpy as np
import pytest

d = tf.experimental.dtensor
U = d.UNSHARDED
CPU = "/job:localhost/replica:0/task:0/device:CPU:"
SIX = [f"CPU:{i}" for i in range(6)]
DEVICES = ",".join(CPU + str(i) for i in range(6))
TEXT = f"|x=3,y=2|0,1,2,3,4,5|0,1,2,3,4,5|{DEVICES}"


@pytest.fixture
def mesh():
    return d.create_mesh([("x", 3), ("y", 2)], devices=SIX)


def test_a_mesh_tells_what_it_is(mesh):
    assert mesh.to_string() == TEXT
    assert repr(mesh) == str(mesh) == f"Mesh.from_string({TEXT})"
    assert (mesh.name, mesh.dim_names, mesh.shape()) == ("", ["x", "y"], [3, 2])
    assert (mesh.size, mesh.strides, mesh.single_device) == (6, [2, 1], "")
    assert (mesh.device_type(), mesh.global_devices()) == ("CPU", [])
    assert mesh.global_device_ids().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert mesh.local_devices() == DEVICES.split(",")
    assert mesh.local_device_ids() == list(range(6)) and mesh.num_local_devices() == 6
    places = [{"x": x, "y": y} for x in range(3) for y in range(2)]
    assert mesh.local_device_locations() == places
    assert mesh.unravel_index() == dict(enumerate(places))
    assert mesh.min_global_device_id() == 0
    assert not mesh.is_remote() and not mesh.is_single_device()
    assert not mesh.use_xla_spmd() and mesh.host_mesh() == mesh
    assert mesh.coords(3).numpy().tolist() == [1, 1] == mesh.device_location(3)
    assert mesh.coords(3).dtype == tf.int32
    assert (
        mesh["x"] == ("x", 3) and repr(mesh["x"]) == "MeshDimension(name='x', size=3)"
    )
    assert mesh.dim_size("y") == 2 and "x" in mesh and not mesh.contains_dim("q")


def test_equal_meshes_are_one_key(mesh):
    other = d.Mesh.from_string(TEXT)
    assert mesh == other and hash(mesh) == hash(other)
    assert mesh != d.create_mesh([("x", 2), ("y", 3)], devices=SIX)
    assert pickle.loads(pickle.dumps(mesh)) == mesh == copy.deepcopy(mesh)
    assert d.Mesh.from_proto(mesh.as_proto()) == mesh
    with pytest.raises(TypeError):
        mesh == 3


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("a|x=2|0,1|0,1|/job:l/device:CPU:0,/job:l/device:CPU:1", None),
        (
            "|x=2|*CPU",
            "|x=2|0,1|0,1|/job:localhost/task:0/device:CPU:0,"
            "/job:localhost/task:0/device:CPU:1",
        ),
        ("|x=0|*CPU", "empty_mesh"),
        (CPU + "0", CPU + "0"),
    ],
)
def test_texts_of_meshes(text, wanted):
    assert d.Mesh.from_string(text).to_string() == (wanted or text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "CPU:0", "|x=2", "||||||||", "|x=2,x=3|*TPU", "|x=-1|*CPU"),
        *("|x=99999999999|*CPU", "|x=2|CPU", "|x=2|*", "|x|*CPU", "|x=1=2|*CPU"),
        "|x=a|0,1|0,1|a",
        "|x=2|0,b|0,1|/job:l/device:CPU:0,/job:l/device:CPU:1",
        "|x=2|0,1|0,1|foo,bar",
        "|x=2|0,1|0,1|/job:l/device:CPU:0,/job:l/device:GPU:1",
        "|x=3|0,1|0,1|/job:l/device:CPU:0,/job:l/device:CPU:1",
        "|x=2|0,1|0|/job:l/device:CPU:0,/job:l/device:CPU:1",
        "|x=2|0,18446744073709551616|0,1|/job:l/device:CPU:0,/job:l/device:CPU:1",
    ],
)
def test_texts_that_are_no_mesh(text):
    with pytest.raises(ValueError):
        d.Mesh.from_string(text)


@pytest.mark.parametrize(
    "changed, error, text",
    [
        ({"dim_names": ["x"]}, ValueError, "Number of mesh dimensions does not match"),
        ({"dim_names": "xy"}, TypeError, "dim_names"),
        ({"global_device_ids": [0, 1]}, ValueError, "must be an ndarray"),
        ({"global_device_ids": np.zeros((3, 2), int)}, ValueError, "sequentially"),
        ({"global_device_ids": np.zeros((0, 2), int)}, ValueError, "non-empty"),
        ({"local_device_ids": [0]}, ValueError, "does not have same size"),
        ({"local_devices": []}, ValueError, "Empty list of devices not allowed."),
        ({"local_devices": ["foo"] * 6}, ValueError, "Unknown attribute 'foo'"),
        (
            {"local_devices": ["CPU:0"] * 5 + ["GPU:0"]},
            ValueError,
            "multiple device_types",
        ),
        ({"use_xla_spmd": True}, ValueError, "XLA SPMD"),
    ],
)
def test_wrong_arguments_of_meshes(changed, error, text):
    given = {
        "dim_names": ["x", "y"],
        "global_device_ids": np.arange(6).reshape(3, 2),
        "local_device_ids": list(range(6)),
        "local_devices": DEVICES.split(","),
    }
    assert d.Mesh(**given).to_string() == TEXT
    with pytest.raises(error, match=text):
        d.Mesh(**{**given, **changed})


@pytest.mark.parametrize(
    "dims, text",
    [
        ([("x", 4)], r"length of devices \(6\) must be equal .* shape \[4\]"),
        ([("x", -1), ("y", 2)], r"shape \[-1, 2\]"),
        ([], r"shape \[\]"),
        ([("x", 0)], r"shape \[0\]"),
    ],
)
def test_meshes_that_do_not_fit_their_devices(dims, text):
    with pytest.raises(ValueError, match=text):
        d.create_mesh(dims, devices=SIX)


def test_meshes_of_fewer_words():
    assert d.create_mesh([("x", -1)], devices=SIX).shape() == [6]
    assert d.create_mesh(devices=SIX[:2]).to_string() == (f"|x=2|0,1|0,1|{CPU}0,{CPU}1")
    assert d.create_mesh({"x": 2, "y": 3}, "nm", SIX).name == "nm"
    with pytest.raises(ValueError, match="XLA SPMD"):
        d.create_mesh([("x", 6)], devices=SIX, use_xla_spmd=True)


def test_what_a_mesh_does_not_have(mesh):
    with pytest.raises(ValueError, match="Dimension z does not exist in mesh"):
        mesh["z"]
    for offset in (6, -1):
        with pytest.raises(ValueError, match="Mesh offset cannot be negative"):
            mesh.device_location(offset)


def test_a_layout_tells_what_it_is(mesh):
    layout = d.Layout(["x", U], mesh)
    text = f"sharding_specs:x,unsharded, mesh:{TEXT}"
    assert layout.to_string() == text
    assert repr(layout) == str(layout) == f"Layout.from_string({text})"
    assert (layout.rank, layout.shape, layout.mesh) == (2, [3, 2], mesh)
    assert layout.sharding_specs == ["x", "unsharded"]
    assert layout.type == 1 and layout.type.name == "STATIC"
    assert layout.is_batch_parallel() and not layout.is_fully_replicated()
    assert (layout.num_shards(0), layout.num_shards(1)) == (3, 1)
    assert layout.offset_to_shard() == [(i // 2, 0) for i in range(6)]
    assert layout.local_shape_from_global_shape([6, 4]) == (2, 4)
    assert layout.global_shape_from_local_shape([2, 4]) == (6, 4)
    assert layout.to_parted().to_string() == f"parted:x,unsharded, mesh:{TEXT}"
    assert layout != layout.to_parted()
    assert d.Layout(["x", U, "y"], mesh).delete([1]).sharding_specs == ["x", "y"]
    assert d.Layout(["x", "y"], mesh).offset_tuple_to_global_index((2, 1)) == 5
    assert layout.as_proto().type == 1
    for other in (
        d.Layout.from_string(text),
        d.Layout.from_proto(layout.as_proto()),
        pickle.loads(pickle.dumps(layout)),
        copy.deepcopy(layout),
    ):
        assert other == layout and hash(other) == hash(layout)


def test_ways_to_make_layouts(mesh):
    layout = d.Layout
    assert layout.replicated(mesh, 2) == layout([U, U], mesh)
    assert layout.batch_sharded(mesh, "x", 2) == layout(["x", U], mesh)
    assert layout.batch_sharded(mesh, "x", 2, axis=1) == layout([U, "x"], mesh)
    assert layout.inner_sharded(mesh, "y", 3) == layout([U, U, "y"], mesh)
    one = layout.from_device(CPU + "0")
    assert one.to_string() == f"maximal:true, mesh:{CPU}0"
    assert one.is_single_device() and one.mesh.is_single_device()
    assert layout.from_string(one.to_string()) == one
    with pytest.raises(ValueError, match="mesh is not single device"):
        layout.from_single_device_mesh(mesh)


@pytest.mark.parametrize(
    "specs, error, text",
    [
        (["z"], ValueError, "z: A dimension sharding must either be a valid mesh"),
        (["x", "x"], ValueError, "Mesh dimension x was repeated"),
        ([""], ValueError, "A dimension sharding"),
        (["x", 3], TypeError, "must be a str"),
        (["x", None], TypeError, "must be a str"),
        ("xy", TypeError, "list of str"),
        (None, TypeError, "not iterable"),
    ],
)
def test_wrong_specs(mesh, specs, error, text):
    with pytest.raises(error, match=text):
        d.Layout(specs, mesh)


def test_wrong_arguments_of_layouts(mesh):
    with pytest.raises(ValueError, match="not a valid Mesh"):
        d.Layout([], 3)
    with pytest.raises(TypeError):
        d.Layout.replicated(3, 1)
    with pytest.raises(TypeError):
        d.Layout.replicated(mesh, "a")
    for rank in (-1, 1 << 40):
        with pytest.raises(ValueError, match="rank"):
            d.Layout.replicated(mesh, rank)
    for axis in (2, -3):
        with pytest.raises(ValueError, match="axis"):
            d.Layout.batch_sharded(mesh, "x", 2, axis=axis)
    with pytest.raises(ValueError, match="axis"):
        d.Layout.inner_sharded(mesh, "x", 0)
    with pytest.raises(RuntimeError, match="not contained in mesh"):
        d.Layout.batch_sharded(mesh, "q", 2)
    layout = d.Layout(["x", U], mesh)
    for index in (2, -1):
        with pytest.raises(IndexError):
            layout.num_shards(index)
        with pytest.raises(IndexError):
            layout.delete([index])
    with pytest.raises(ValueError, match="rank"):
        layout.local_shape_from_global_shape([6])
    with pytest.raises(TypeError):
        layout == 3


def test_texts_cut_at_every_byte():
    # TensorFlow takes these lengths of the text alone: an index may be missing.
    text = f"sharding_specs:x,unsharded, mesh:nm|x=2,y=1|0,1|0,1|{CPU}0,{CPU}1"
    taken = []
    for length in range(len(text) + 1):
        try:
            d.Layout.from_string(text[:length])
        except ValueError:
            continue
        taken.append(length)
    assert taken == [139, 141]


@pytest.mark.parametrize(
    "specs", ["static:x,", "single_device:x,", "sharding_specs:q,", "parted:x,x,", ""]
)
def test_texts_that_are_no_layout(specs):
    with pytest.raises(ValueError):
        d.Layout.from_string(f"{specs} mesh:|x=3|*CPU")


def test_wrong_protos(mesh):
    proto = d.Layout(["x"], mesh).as_proto()
    proto.sharding_specs[0].sharding_spec = "q"
    with pytest.raises(ValueError, match="not contained in mesh"):
        d.Layout.from_proto(proto)
    proto.type = 0
    with pytest.raises(ValueError):
        d.Layout.from_proto(proto)
    of_mesh = mesh.as_proto()
    of_mesh.mesh_dimensions[0].size = 5
    with pytest.raises(ValueError):
        d.Mesh.from_proto(of_mesh)
    for wrong in (None, 3, proto):
        with pytest.raises(TypeError):
            d.Mesh.from_proto(wrong)
