"""headrace show: models, checkpoints, graphs, events and records."""

import re

import numpy as np
import pytest
from command_line import golden

import headrace as tf

SIGNATURE = """signature_def['serving_default']:
  The given SavedModel SignatureDef contains the following input(s):
    inputs['x'] tensor_info:
        dtype: DT_FLOAT
        shape: (-1)
        name: serving_default_x:0
  The given SavedModel SignatureDef contains the following output(s):
    outputs['twice'] tensor_info:
        dtype: DT_FLOAT
        shape: (-1)
        name: StatefulPartitionedCall_1:0
    outputs['y'] tensor_info:
        dtype: DT_FLOAT
        shape: (2)
        name: StatefulPartitionedCall_1:1
  Method name is: tensorflow/serving/predict
"""

FUNCTIONS = """Concrete Functions:
  Function Name: 'chosen'
    Option #1
      Callable with:
        Argument #1
          x: TensorSpec(shape=(), dtype=tf.float32, name='x')
        Argument #2
          DType: bool
          Value: False
        Named Argument #1
          by
"""

# TensorFlow's words, its set in order.
OPS = """
AddV2 AssignVariableOp Cast Const DisableCopyOnRead FloorDiv FloorMod Identity Maximum
MergeV2Checkpoints Mul NoOp NotEqual Pack Placeholder Range ReadVariableOp RestoreV2
SaveV2 Select ShardedFilename StatefulPartitionedCall StaticRegexFullMatch StringJoin
Sub VarHandleOp While
"""


def test_saved_model_in_the_words_of_saved_model_cli(line):
    out = line("show", golden("saved_models/plain"))
    assert out.startswith(
        "\nMetaGraphDef with tag-set: 'serve' contains the following SignatureDefs:\n"
    )
    assert SIGNATURE in out
    assert FUNCTIONS in out
    ops = re.search(r"tag set \['serve'\] contains the following ops: {(.*)}\n", out)
    assert ops.group(1).replace("'", "").split(", ") == OPS.split()


def test_arguments_that_are_structures(line, tmp_path):
    class Model(tf.Module):
        @tf.function
        def f(self, x, some, pair, named, dtype=tf.float32, none=()):
            return x

    model, one = Model(), tf.constant([1.0])
    model.f(one, [one, [one, 2]], (one, (1, one)), {"k": one, "l": [one]})
    tf.saved_model.save(model, str(tmp_path))
    out = line("show", str(tmp_path))
    # TensorFlow's words: what is within a structure is written as Python does.
    spec = "TensorSpec(shape=(1,), dtype=tf.float32, name='%s')"
    values = [
        f"list\n          Value: [{spec % 'some_0'}, [{spec % 'some_1_0'}, 2]]\n",
        f"tuple\n          Value: [{spec % 'pair_0'}, (1, {spec % 'pair_1_1'})]\n",
        "dict\n          Value: {'k': "
        + f"{spec % 'named_k'}, 'l': [{spec % 'named_l_0'}]}}\n",
        "DType\n          Value: <dtype: 'float32'>\n",
        "tuple\n          Value: []\n",
    ]
    for number, value in enumerate(values, start=2):
        assert f"        Argument #{number}\n          DType: {value}" in out


def test_its_file_names_a_model_too(line):
    folder = golden("saved_models/plain")
    assert line("show", folder + "/saved_model.pb") == line("show", folder + "/")


def test_one_signature(line):
    out = line(
        "show", golden("saved_models/plain"), "--signature_def", "serving_default"
    )
    lines = SIGNATURE.splitlines()[1:]
    assert out == "".join(text[2:] + "\n" for text in lines)
    err = line.fails("show", golden("saved_models/plain"), "--signature_def=none")
    assert "has no signature none" in err


def test_tags(line):
    folder = golden("saved_models/session")
    assert "MetaGraphDef with tag-set: 'serve'" in line(
        "show", folder, "--tag_set", "serve"
    )
    assert "could not be found" in line.fails("show", folder, "--tag_set", "other")


def test_saved_model_as_json(line):
    shown = line.json("show", golden("saved_models/plain"))
    assert shown["kind"] == "saved_model"
    (graph,) = shown["meta_graphs"]
    assert graph["tags"] == ["serve"]
    assert graph["signatures"]["serving_default"]["inputs"]["x"] == {
        "dtype": "float32",
        "shape": [-1],
        "name": "serving_default_x:0",
    }
    one = ("--signature_def", "serving_default")
    assert (
        line.json("show", golden("saved_models/plain"), *one)
        == graph["signatures"]["serving_default"]
    )
    assert len(graph["functions"]["chosen"]) == 3
    assert {v["name"] for v in graph["variables"]} >= {"v"}


def test_checkpoint_in_the_words_of_inspect_checkpoint(line, tmp_path):
    root = tf.train.Checkpoint(w=tf.Variable([[1.0, 2.0], [3.0, 4.5]]))
    prefix = root.save(tmp_path / "model")
    key = "w/.ATTRIBUTES/VARIABLE_VALUE"
    assert line("show", prefix) == (
        "_CHECKPOINTABLE_OBJECT_GRAPH (DT_STRING) []\n"
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE (DT_INT64) []\n"
        f"{key} (DT_FLOAT) [2,2]\n\n# Total number of params: 6\n"
    )
    one = (
        f"tensor: {key} (float32) [2, 2]\n[[1.  2. ]\n [3.  4.5]]\n"
        "# Total number of params: 6\n"
    )
    assert line("show", prefix, "--tensor", key) == one
    assert one.splitlines()[1] in line("show", prefix, "--all")
    # Its folder, and any of its files, stand for it.
    for path in (tmp_path, prefix + ".index", prefix + ".data-00000-of-00001"):
        assert key in line("show", path)
    assert "has no tensor none" in line.fails("show", prefix, "--tensor=none")
    shown = line.json("show", prefix, "--tensor", key)
    assert shown["tensors"] == [
        {
            "name": key,
            "dtype": "float32",
            "shape": [2, 2],
            "value": [[1.0, 2.0], [3.0, 4.5]],
        }
    ]


@pytest.mark.parametrize(
    "path",
    [
        "all_dtypes/ckpt",
        "saver_format_v1/old",
        "sharded_by_size/ckpt-1",
        "empty_tensors/ckpt-1",
        "saver_partitioned/ckpt",
        "int4_constant_reader/ckpt",
        "escaped_names/ckpt-1",
    ],
)
def test_checkpoints_of_all_kinds(line, path):
    path = golden("checkpoints", path)
    names = [name for name, _ in tf.train.list_variables(path)]
    shown = line.json("show", path, "--all")
    assert [t["name"] for t in shown["tensors"]] == sorted(names)
    assert line("show", path, "--all").count("tensor: ") == len(names)


@pytest.mark.parametrize(
    "value",
    [
        np.float32([0.1, 1 / 3, 100]),
        np.float32([1e-5, 1.5, 2e10]),
        np.float64([[np.nan, -np.inf], [1, 2.25]]),
        np.arange(2000).reshape(40, 50),
        np.linspace(-1, 1, 60, dtype=np.float32),
        np.array([True, False]),
        np.int8([[-128, 5], [0, 17]]),
        np.float32(0.1),
        np.float64(1e-7),
        np.float32(12.0),
        np.int64(-3),
        np.complex64([1 + 2j, -0.5j]),
        np.zeros((2, 0), np.float32),
        np.float32(np.random.RandomState(3).randn(3, 2, 4)),
        np.float64(np.random.RandomState(4).randn(1001)),
        np.uint64([2**63, 1]),
        np.array([-0.0, 0.0]),
        np.float16([0.1, 1 / 3, 100]),
        np.float16(0.1),
    ],
    ids=range(19),
)
def test_values_print_as_numpy_prints_them(line, tmp_path, value):
    prefix = tf.train.Checkpoint(w=tf.Variable(value)).write(str(tmp_path / "c"))
    out = line("show", prefix, "--tensor", "w/.ATTRIBUTES/VARIABLE_VALUE")
    shown = out.partition("\n")[2].rpartition("# Total")[0]
    assert shown == str(value) + "\n"


def graph_of_a_product():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
        tf.identity(tf.matmul(x, [[1.0], [2.0]]) + 1.0, name="y")
    return graph.as_graph_def()


@pytest.mark.parametrize("as_text", [False, True])
def test_graph(line, tmp_path, as_text):
    name = "g.pbtxt" if as_text else "g.pb"
    tf.io.write_graph(graph_of_a_product(), str(tmp_path), name, as_text)
    out = line("show", tmp_path / name)
    assert "  x (float32, [?,2])\n" in out
    assert "  y (Identity)\n" in out
    assert "  MatMul: 1\n" in out
    assert "y = Identity(add) {T=float32}" in line("show", tmp_path / name, "--all")
    shown = line.json("show", tmp_path / name)
    assert shown["placeholders"] == ["x"] and shown["not_read"] == ["y"]


def test_meta_graph(line, tmp_path):
    path = str(tmp_path / "m.meta")
    with tf.Graph().as_default():
        tf.compat.v1.get_variable("w", [2])
        tf.compat.v1.train.export_meta_graph(path)
    out = line("show", path)
    assert out.startswith("MetaGraphDef with tag-set: ''")
    assert "  trainable_variables\n" in out


def test_events(line, tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("loss", 0.5 * step, step=step)
    writer.close()
    (path,) = tmp_path.iterdir()
    out = line("show", path)
    assert out.startswith("Event file brain.Event:2: ")
    assert "  loss (scalars): 3 values, steps 0 to 2, last 1.0\n" in out
    assert "step 1 loss: 0.5\n" in line("show", path, "--all")
    assert line.json("show", path)["tags"]["loss"]["count"] == 3


@pytest.mark.parametrize("name", ["events_v1", "events_v2"])
def test_events_of_tensorflow(line, name):
    shown = line.json("show", golden("records", name + ".tfevents"))
    assert shown["kind"] == "events" and shown["tags"]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records(line, tmp_path, compression):
    path = str(tmp_path / "r.tfrecord")
    feature = {
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a\n"])),
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=range(20))),
        "w": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    with tf.io.TFRecordWriter(path, compression) as writer:
        for _ in range(5):
            writer.write(example.SerializeToString())
        writer.write(b"no example")
    out = line("show", path)
    assert out.startswith("TFRecord file: 6 records, ")
    assert out.count("an Example") == 3
    assert "  n: int64[20] 0, 1, 2, 3, 4, 5, 6, 7, ...\n" in out
    assert "  name: bytes[1] b'a\\n'\n  w: float[1] 0.5\n" in out
    assert "Record 5: b'no example'" in line("show", path, "--limit", 6)
    shown = line.json("show", path, "--all")
    assert shown["count"] == 6
    assert shown["records"][0]["example"]["w"] == {"float": [0.5]}


def test_names_are_escaped(line, tmp_path):
    path = str(tmp_path / "c")
    tensors = [tf.constant(1.0)]
    tf.raw_ops.SaveV2(
        prefix=path,
        tensor_names=["evil\x1b[2J\nname\u202e"],
        shape_and_slices=[""],
        tensors=tensors,
    )
    out = line("show", path)
    assert out.startswith("evil\\x1b[2J\\nname\\u202e (DT_FLOAT) []\n")
