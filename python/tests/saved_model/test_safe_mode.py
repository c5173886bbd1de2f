"""Models of strangers in tf.experimental.SafeMode: what they try is refused, wherever it
hides, and others are not concerned."""

import gc
import os

import headrace as tf
import numpy as np
import pytest
from headrace.v1.saved import loader

SafeMode = tf.experimental.SafeMode
errors = tf.errors
GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/saved_models")


def saved(folder, function, *specs, **attributes):
    """The folder of a model whose `f` is the function."""
    module = tf.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    module.f = tf.function(function, input_signature=list(specs))
    tf.saved_model.save(module, str(folder))
    return str(folder)


X = tf.TensorSpec([], tf.float32)


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("s3cret")
    return str(path)


def _reads(path):
    return tf.io.read_file(path)


def _in_a_dataset(path):
    rows = tf.data.Dataset.range(2).map(lambda _: tf.io.read_file(path))
    return rows.reduce(tf.constant(""), lambda s, row: s + row)


def _in_a_branch(path):
    return tf.cond(tf.random.uniform([]) < 2, lambda: tf.io.read_file(path), lambda: "")


def _in_a_loop(path):
    return tf.while_loop(
        lambda i, s: i < 2, lambda i, s: (i + 1, tf.io.read_file(path)), (0, "")
    )[1]


def _in_a_called_function(path):
    return tf.function(lambda: tf.io.read_file(path))()


def _records(path):
    return tf.data.TFRecordDataset(path).reduce(0, lambda n, _: n + 1)


def _matching(path):
    return tf.io.matching_files(path + "*")


def _writes(path):
    tf.io.write_file(path, "changed")


def _saves(path):
    tf.raw_ops.SaveV2(
        prefix=path, tensor_names=["x"], shape_and_slices=[""], tensors=[[1.0]]
    )


def _restores(path):
    return tf.raw_ops.RestoreV2(
        prefix=path, tensor_names=["x"], shape_and_slices=[""], dtypes=[tf.float32]
    )[0]


def _constant(path):
    return tf.raw_ops.ImmutableConst(dtype=tf.uint8, shape=[1], memory_region_name=path)


FILES = [
    _reads,
    _in_a_dataset,
    _in_a_branch,
    _in_a_loop,
    _in_a_called_function,
    _records,
    _matching,
    _writes,
    _saves,
    _restores,
    _constant,
]


@pytest.mark.parametrize("hidden", FILES, ids=lambda f: f.__name__)
def test_files_are_refused_at_load(tmp_path, secret, hidden):
    folder = saved(tmp_path / "m", lambda: hidden(secret))
    with pytest.raises(errors.PermissionDeniedError, match="safe mode: op .* files"):
        tf.saved_model.load(folder, options=SafeMode())
    assert open(secret).read() == "s3cret"


def test_refusals_name_node_op_function_and_what_would_permit_it(tmp_path, secret):
    folder = saved(tmp_path / "m", lambda: tf.io.read_file(secret, name="peek"))
    with pytest.raises(errors.PermissionDeniedError) as refused:
        tf.saved_model.load(folder, options=SafeMode())
    text = str(refused.value)
    for part in ("ReadFile", "peek", "in function", 'allow "reads"', folder):
        assert part in text
    for allow in ("reads", "files", "ReadFile"):
        model = tf.saved_model.load(folder, options=SafeMode(allow=[allow]))
        assert model.f().numpy() == b"s3cret"


def test_files_by_name_in_models_that_have_assets(tmp_path, secret):
    """Assets may be read, so the op may be there; other files may not."""
    words = tmp_path / "words"
    words.write_text("a\nb\n")
    asset = tf.saved_model.Asset(str(words))
    folder = saved(
        tmp_path / "m",
        lambda path: tf.io.read_file(path),
        tf.TensorSpec([], tf.string),
        asset=asset,
    )
    model = tf.saved_model.load(folder, options=SafeMode())
    own = model.asset.asset_path
    assert model.f(own).numpy() == b"a\nb\n"
    around = os.path.join(
        os.path.dirname(own.numpy().decode()), "..", "..", "..", "secret"
    )
    for path in (secret, around, "file://" + secret, folder + "/saved_model.pb"):
        with pytest.raises(errors.PermissionDeniedError, match="may not read the file"):
            model.f(path)
    with pytest.raises(errors.PermissionDeniedError, match="may not read the file"):
        tf.function(lambda: model.f(secret) + "!")()


def test_asset_paths_that_lead_out(tmp_path, secret):
    words = tmp_path / "words"
    words.write_text("a\nb\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            str(words),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        -1,
    )
    folder = saved(
        tmp_path / "m", table.lookup, tf.TensorSpec([None], tf.string), table=table
    )
    model = tf.saved_model.load(folder, options=SafeMode())
    assert model.f(["b", "c"]).numpy().tolist() == [1, -1]
    asset = os.path.join(folder, "assets", "words")
    os.remove(asset)
    os.symlink(secret, asset)
    with pytest.raises(
        errors.PermissionDeniedError, match="does not lie in its folder"
    ):
        tf.saved_model.load(folder, options=SafeMode())
    os.remove(asset)
    proto = loader.parse_saved_model(folder)
    proto.meta_graphs[0].asset_file_def[0].filename = "../../secret"
    with open(os.path.join(folder, "saved_model.pb"), "wb") as file:
        file.write(proto.SerializeToString())
    with pytest.raises(
        errors.PermissionDeniedError, match="does not lie in its folder"
    ):
        tf.saved_model.load(folder, options=SafeMode())


def test_prints_and_python(tmp_path, capfd):
    folder = saved(tmp_path / "p", lambda: (tf.print("hello"), tf.constant(1))[1])
    with pytest.raises(errors.PermissionDeniedError, match='PrintV2 prints.*"prints"'):
        tf.saved_model.load(folder, options=SafeMode())
    tf.saved_model.load(folder, options=SafeMode(allow="prints")).f()
    assert "hello" in capfd.readouterr().err

    def called():
        raise AssertionError("a stranger's graph called Python")

    kept = tf.function(lambda: tf.numpy_function(called, [], tf.float32))
    graph_def = kept.get_concrete_function().graph.as_graph_def()
    with tf.Graph().as_default() as graph:
        with SafeMode():
            tf.import_graph_def(graph_def, name="")
        node = next(n.name for n in graph_def.node if "PyFunc" in n.op)
        with tf.compat.v1.Session() as session:
            with pytest.raises(errors.PermissionDeniedError, match="calls Python"):
                session.run(node + ":0")


def test_deny_and_only(tmp_path):
    folder = saved(tmp_path / "m", lambda x: tf.exp(x) * 2.0, X)
    with pytest.raises(errors.PermissionDeniedError, match="op Exp is denied"):
        tf.saved_model.load(folder, options=SafeMode(deny=["Exp"]))
    with pytest.raises(errors.PermissionDeniedError, match="`only` names them"):
        tf.saved_model.load(folder, options=SafeMode(only=["Mul", "Const"]))
    with pytest.raises(errors.InvalidArgumentError, match="there is no op NoSuchOp"):
        SafeMode(deny=["NoSuchOp"])


def _endless(x):
    return tf.while_loop(lambda x: x > -1, lambda x: x * 0.5, [x])[0]


def _endless_in_a_dataset(x):
    rows = tf.data.Dataset.range(1).repeat().filter(lambda i: i < 0)
    return rows.reduce(x, lambda s, _: s)


def _endless_in_threads(x):
    rows = tf.data.Dataset.range(4).map(lambda _: _endless(x), num_parallel_calls=2)
    return rows.prefetch(1).reduce(x, lambda s, _: s)


def _endless_in_a_parallel_body(x):
    return tf.map_fn(_endless, tf.stack([x, x]), parallel_iterations=2)


@pytest.mark.parametrize(
    "f",
    [_endless, _endless_in_a_dataset, _endless_in_threads, _endless_in_a_parallel_body],
    ids=lambda f: f.__name__,
)
def test_time(tmp_path, f):
    folder = saved(tmp_path / "m", f, X)
    model = tf.saved_model.load(folder, options=SafeMode(time=0.2))
    calls = [
        lambda: model.f(1.0),
        lambda: tf.function(lambda x: model.f(x) + 1.0)(1.0),
        lambda: model.signatures["serving_default"](tf.constant(1.0)),
    ]
    for call in (
        calls if hasattr(model, "signatures") and model.signatures else calls[:2]
    ):
        with pytest.raises(errors.DeadlineExceededError, match="`time`"):
            call()


class _SlowToFill(tf.saved_model.experimental.TrackableResource):
    def __init__(self):
        super().__init__()
        self.v = self._track_trackable(tf.Variable(1.0), "v")

    def _create_resource(self):
        return tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)

    def _initialize(self):
        self.v.assign(_endless(self.v))


def test_time_of_loading(tmp_path):
    module = tf.Module()
    module.resource = _SlowToFill()
    assert module.resource.resource_handle is not None
    tf.saved_model.save(module, str(tmp_path / "m"))
    with pytest.raises(errors.DeadlineExceededError, match="`time`"):
        tf.saved_model.load(str(tmp_path / "m"), options=SafeMode(time=0.2))


def _tiled(x):
    return tf.tile([x], [2**30])


def _filled(x):
    return tf.fill([2**20, 2**20], x)


def _grown_by_tiles(x):
    return tf.while_loop(
        lambda y: True,
        lambda y: tf.tile(y, [2]),
        [tf.reshape(x, [1])],
        shape_invariants=[tf.TensorShape([None])],
    )[0]


def _list_of_many(x):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
    return tf.while_loop(
        lambda i, a: True,
        lambda i, a: (i + 1, a.write(i, tf.fill([100_000], x))),
        [0, array],
    )[1].stack()


def _text_bomb(x):
    def doubled(s):
        return tf.strings.join([s, s])

    return tf.while_loop(lambda s: True, doubled, [tf.strings.as_string(x)])[0]


def _kept_in_a_variable(x):
    rows = tf.data.Dataset.range(10**9).map(lambda i: tf.fill([10**6], x))
    return rows.batch(10**6).reduce(x, lambda s, b: s + b[0, 0])


BOMBS = [
    _tiled,
    _filled,
    _grown_by_tiles,
    _list_of_many,
    _text_bomb,
    _kept_in_a_variable,
]


@pytest.mark.parametrize("f", BOMBS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "limits",
    [{"memory": 64 << 20}, {"output": 16 << 20, "memory": 256 << 20}],
    ids=["memory", "output"],
)
def test_memory_and_output(tmp_path, f, limits):
    folder = saved(tmp_path / "m", f, X)
    model = tf.saved_model.load(folder, options=SafeMode(time=30, **limits))
    before = _held()
    for _ in range(2):
        with pytest.raises(errors.ResourceExhaustedError) as refused:
            model.f(1.0)
        assert "safe mode" in str(refused.value) or "OOM" in str(refused.value)
    gc.collect()
    assert _held() - before < 300 << 20
    # Others have what they need.
    assert tf.zeros([100 << 20], tf.uint8).shape == [100 << 20]


def _held():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_is_given_back(tmp_path):
    v = tf.Variable(tf.zeros([1000]))
    folder = saved(tmp_path / "m", lambda x: v + x, X, v=v)
    mode = SafeMode(memory=10 << 20)
    with mode:
        model = tf.saved_model.load(folder)
        assert mode.memory_in_use >= 4000
        for _ in range(10_000):
            model.f(1.0)
        assert mode.memory_in_use < 1 << 20
    del model
    gc.collect()
    assert mode.memory_in_use < 10_000


def test_recursion():
    graph_def = _recursive_graph()
    with tf.Graph().as_default():
        with SafeMode(recursion=50):
            (y,) = tf.import_graph_def(graph_def, return_elements=["call:0"])
        with tf.compat.v1.Session() as session:
            with pytest.raises(errors.ResourceExhaustedError, match="`recursion`"):
                session.run(y)


def _recursive_graph():
    """A function that calls itself without end."""
    from google.protobuf import text_format

    graph_def = tf.compat.v1.GraphDef()
    text_format.Parse(
        """
        node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
          attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {}
                                                float_val: 1 } } } }
        node { name: "call" op: "StatefulPartitionedCall" input: "x"
          attr { key: "Tin" value { list { type: DT_FLOAT } } }
          attr { key: "Tout" value { list { type: DT_FLOAT } } }
          attr { key: "f" value { func { name: "again" } } } }
        library { function {
          signature { name: "again"
            input_arg { name: "a" type: DT_FLOAT }
            output_arg { name: "b" type: DT_FLOAT } }
          node_def { name: "inner" op: "StatefulPartitionedCall" input: "a"
            attr { key: "Tin" value { list { type: DT_FLOAT } } }
            attr { key: "Tout" value { list { type: DT_FLOAT } } }
            attr { key: "f" value { func { name: "again" } } } }
          ret { key: "b" value: "inner:output:0" } } }
        versions { producer: 2474 }
        """,
        graph_def,
    )
    return graph_def


def test_nodes(tmp_path):
    def chain(x):
        for _ in range(300):
            x = tf.sin(x)
        return x

    folder = saved(tmp_path / "m", chain, X)
    with pytest.raises(errors.ResourceExhaustedError, match="`nodes`"):
        tf.saved_model.load(folder, options=SafeMode(nodes=200))
    mode = SafeMode(nodes=2000)
    for _ in range(10):  # nodes of models that are gone do not count
        with mode:
            tf.saved_model.load(folder).f(1.0)
        gc.collect()


def test_gradients_of_a_model_stay_inside(tmp_path):
    folder = saved(tmp_path / "m", lambda x: tf.reduce_sum(tf.fill([1000], x) ** 2), X)
    model = tf.saved_model.load(folder, options=SafeMode(output=3000))
    x = tf.constant(2.0)
    with pytest.raises(errors.ResourceExhaustedError, match="`output`"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model.f(x)
        tape.gradient(y, x)
    model = tf.saved_model.load(folder, options=SafeMode())
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model.f(x)
    assert float(tape.gradient(y, x)) == 4000.0

    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model.f(x) * 3.0
        return tape.gradient(y, x)

    assert float(outer(x)) == 12000.0


def test_functions_of_the_program_are_none_of_the_models():
    @tf.function
    def mine():
        return tf.constant(42.0)

    name = mine.get_concrete_function().name
    graph_def = tf.compat.v1.GraphDef()
    node = graph_def.node.add()
    node.name, node.op = "call", "StatefulPartitionedCall"
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.type.append(tf.float32.as_datatype_enum)
    if isinstance(name, bytes):
        name = name.decode()
    node.attr["f"].func.name = name
    with tf.Graph().as_default():
        with SafeMode():
            with pytest.raises(errors.PermissionDeniedError, match="is none of"):
                tf.import_graph_def(graph_def)


def test_blocks_confine_what_runs_in_them(secret):
    peek = tf.function(tf.io.read_file)

    def read():
        return peek(tf.constant(secret))

    assert read().numpy() == b"s3cret"
    with SafeMode():
        for call in (read, lambda: tf.io.read_file(secret)):
            with pytest.raises(errors.PermissionDeniedError):
                call()
        made = tf.function(lambda x: tf.fill([x], 1.0))
        assert made(3).shape == [3]
    assert read().numpy() == b"s3cret"
    with SafeMode(output=1000, time=0.2):
        with pytest.raises(errors.ResourceExhaustedError, match="`output`"):
            tf.zeros([1000])
        with pytest.raises(errors.DeadlineExceededError):
            tf.function(_endless)(1.0)
        traced = tf.function(lambda x: tf.fill([x], 1.0))
        traced(tf.constant(3))
    with pytest.raises(errors.ResourceExhaustedError, match="`output`"):
        traced(tf.constant(1000))


@pytest.mark.parametrize("name", ["plain", "tables", "session", "gradients"])
def test_honest_models_of_tensorflow_load(name):
    tags = ["serve"] if name == "session" else None
    tf.saved_model.load(os.path.join(GOLDEN, name), tags, SafeMode())


def test_models_of_sessions(tmp_path, secret):
    words = tmp_path / "words"
    words.write_text("a\nb\n")
    v1 = tf.compat.v1
    folder = str(tmp_path / "m")
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=3.0)
        x = v1.placeholder(tf.float32, [], name="x")
        v1.identity(x * v, name="y")
        v1.identity(tf.io.read_file(secret), name="peek")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(
            session, folder, {"x": x}, {"y": session.graph.get_tensor_by_name("y:0")}
        )
    model = tf.saved_model.load(folder, options=SafeMode())
    y = model.signatures["serving_default"](tf.constant(2.0))["y"]
    assert float(y) == 6.0
    with tf.Graph().as_default(), v1.Session() as session:
        with SafeMode():
            v1.saved_model.load(session, ["serve"], folder)
        assert session.run("y:0", {"x:0": 2.0}) == 6.0
        with pytest.raises(errors.PermissionDeniedError, match="ReadFile"):
            session.run("peek:0")


def test_policies_as_text():
    mode = SafeMode(allow=["prints", "ReadFile"], memory=1 << 20, time=1.5, output=None)
    again = SafeMode.from_text(mode.text)
    assert again.text == mode.text
    assert "allow: ReadFile prints" in mode.text and "time: 1.500000000" in mode.text
    assert "output: none" in mode.text and "SafeMode" in repr(mode)
    with pytest.raises(errors.InvalidArgumentError, match="line 2"):
        SafeMode.from_text("memory: 1 MiB\ncolour: red")
    for wrong in ({"memory": "1"}, {"allow": [3]}, {"nodes": 1.5}, {"time": "x"}):
        with pytest.raises(TypeError):
            SafeMode(**wrong)
    for wrong in ({"memory": 0}, {"time": -1.0}, {"allow": ["read file"]}):
        with pytest.raises((errors.InvalidArgumentError, ValueError)):
            SafeMode(**wrong)


def test_other_models_are_not_concerned(tmp_path):
    folder = saved(tmp_path / "m", _filled_vector, tf.TensorSpec([], tf.int32))
    small = tf.saved_model.load(folder, options=SafeMode(output=1000))
    free = tf.saved_model.load(folder)
    with pytest.raises(errors.ResourceExhaustedError):
        small.f(10_000)
    assert free.f(10_000).shape == [10_000]
    assert small.f(10).shape == [10]
    both = tf.function(lambda n: (free.f(n), small.f(10)))
    assert np.array_equal(both(10_000)[0], np.ones(10_000))


def _filled_vector(n):
    return tf.ones([n])
