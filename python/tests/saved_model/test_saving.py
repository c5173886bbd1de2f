"""What tf.saved_model.save writes and refuses."""

import collections
import os

import headrace as tf
import numpy as np
import pytest


def saved(model, tmp_path, signatures=None, **options):
    """The model, written and read again."""
    options = tf.saved_model.SaveOptions(**options)
    tf.saved_model.save(model, str(tmp_path / "m"), signatures, options)
    return tf.saved_model.load(str(tmp_path / "m"))


def scalar(**more):
    return tf.TensorSpec([], tf.float32, **more)


def module(**attributes):
    made = tf.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def function(f, *specs):
    return tf.function(f, input_signature=list(specs) if specs else None)


def test_the_class_is_not_needed_and_loops_stay_loops(tmp_path):
    class Saved(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def f(self, x):
            for _ in tf.range(3):
                x = x * 2.0
            return x

    tf.saved_model.save(Saved(), str(tmp_path / "m"))
    del Saved
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.f(tf.constant([1.0])).numpy().tolist() == [8]
    concrete = loaded.f.get_concrete_function()
    inner = [op.type for op in concrete.graph.get_operations()]
    assert inner.count("Mul") == 0
    assert sum("While" in t for t in inner) == 1


def test_what_lies_in_the_folder(tmp_path):
    model = module(v=tf.Variable(1.0))
    saved(model, tmp_path)
    found = sorted(
        os.path.relpath(os.path.join(d, f), tmp_path / "m")
        for d, _, files in os.walk(tmp_path / "m")
        for f in files
    )
    assert found == [
        "fingerprint.pb",
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    ]


def test_the_only_function_with_a_signature_is_the_default(tmp_path):
    one = module(f=function(lambda x: x * 2.0, scalar()), g=function(lambda x: x))
    found = saved(one, tmp_path).signatures
    assert list(found) == ["serving_default"]
    assert float(found["serving_default"](tf.constant(3.0))["output_0"]) == 6.0
    two = module(f=function(lambda x: x, scalar()), g=function(lambda x: x, scalar()))
    assert not saved(two, tmp_path).signatures


def test_outputs_of_signatures_have_names(tmp_path):
    model = module(
        a=function(lambda x: [x, x + 1.0], scalar()),
        b=function(lambda x: {"twice": x * 2.0}, scalar()),
    )
    found = saved(model, tmp_path, {"a": model.a, "b": model.b}).signatures
    out = found["a"](x=tf.constant(1.0))
    assert {k: float(v) for k, v in out.items()} == {"output_0": 1.0, "output_1": 2.0}
    assert list(found["b"].structured_outputs) == ["twice"]


@pytest.mark.parametrize(
    ("signatures", "text"),
    [
        (
            3,
            "Expected a TensorFlow function for which to generate a signature, but got 3",
        ),
        (tf.function(lambda x: x), "Only `tf.functions` with an input signature or"),
        (
            function(lambda x: {"a": {"b": x}}, scalar()),
            "Got a non-Tensor value .* for key 'a' in the output of the function",
        ),
        (function(lambda x: {1: x}, scalar()), "dictionary with a non-string key 1"),
        (
            function(lambda x: None, scalar()),
            "non-Tensor value None for key 'output_0'",
        ),
    ],
)
def test_what_can_be_no_signature(tmp_path, signatures, text):
    with pytest.raises(ValueError, match=text):
        tf.saved_model.save(tf.Module(), str(tmp_path / "m"), signatures)
    assert not (tmp_path / "m").exists()


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(
        ValueError, match="Expected an object of type `Trackable`, such"
    ):
        tf.saved_model.save(3, str(tmp_path / "m"))
    hidden = tf.Variable(1.0)
    model = module(f=function(lambda x: x + hidden, scalar()))
    with pytest.raises(AssertionError, match="references an 'untracked' resource"):
        tf.saved_model.save(model, str(tmp_path / "m"))
    shadowing = module(signatures=3)
    with pytest.raises(ValueError, match="has an attribute named 'signatures'"):
        tf.saved_model.save(shadowing, str(tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_not_inside_of_functions(tmp_path):
    @tf.function
    def f():
        tf.saved_model.save(tf.Module(), str(tmp_path / "m"))

    with pytest.raises(AssertionError, match="inside a traced @tf.function"):
        f()
    # Values that no session holds can be had while a graph is built.
    model = module(v=tf.Variable(1.0))
    with tf.Graph().as_default():
        tf.saved_model.save(model, str(tmp_path / "m"))
    assert tf.saved_model.load(str(tmp_path / "m")).v.numpy() == 1


Point = collections.namedtuple("Point", "x y")


def test_structures_and_plain_values_are_kept(tmp_path):
    class M(tf.Module):
        @tf.function
        def f(self, d, t=(1.0, 2.0), *rest, scale=3.0, again=None):
            total = d["a"] * scale + t[0] + sum(rest)
            return Point(total, {"l": [d["b"], again]})

    m = M()
    d = {"a": tf.constant(1.0), "b": tf.constant([2])}
    m.f(d)
    m.f(d, (tf.constant(8.0), 9.0), tf.constant(0.5), scale=tf.constant(2.0))
    loaded = saved(m, tmp_path)
    first = loaded.f(d)
    assert float(first.x) == 4.0 and first.y["l"][1] is None
    assert first.y["l"][0].numpy().tolist() == [2]
    half = tf.constant(0.5)
    second = loaded.f(d, (tf.constant(8.0), 9.0), half, scale=tf.constant(2.0))
    assert float(second.x) == 10.5
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(d, scale=4.0)


def test_keywords_come_by_name(tmp_path):
    class M(tf.Module):
        @tf.function
        def f(self, *, z, a):
            return z - a

    m = M()
    m.f(z=tf.constant(5.0), a=tf.constant(2.0))
    loaded = saved(m, tmp_path)
    for _ in range(2):  # the second goes by the native signature
        assert float(loaded.f(z=tf.constant(5.0), a=tf.constant(2.0))) == 3.0
    assert [v.op.name for v in loaded.f.concrete_functions[0].inputs] == ["a", "z"]


def test_composites_are_arguments_and_results(tmp_path):
    ragged = tf.RaggedTensorSpec([None, None], tf.int32)
    sparse = tf.SparseTensorSpec([None, 4], tf.float32)
    model = module(
        rows=function(lambda r: r * 2, ragged),
        dense=function(lambda s: (tf.sparse.to_dense(s), s), sparse),
    )
    loaded = saved(model, tmp_path)
    assert loaded.rows(tf.ragged.constant([[1, 2], [], [3]])).to_list() == [
        [2, 4],
        [],
        [6],
    ]
    s = tf.SparseTensor([[0, 1]], [2.0], [1, 4])
    dense, same = loaded.dense(s)
    assert dense.numpy().tolist() == [[0.0, 2.0, 0.0, 0.0]]
    assert same.values.numpy().tolist() == [2.0]


def test_arguments_that_have_no_form_leave_a_function_out(tmp_path):
    class Odd:
        pass

    class M(tf.Module):
        @tf.function
        def f(self, x, odd=None):
            return x

    m = M()
    odd = Odd()
    m.f(tf.constant(1.0), odd)
    assert not hasattr(saved(m, tmp_path), "f")


def test_functions_without_traces(tmp_path):
    loaded = saved(module(f=tf.function(lambda x: x)), tmp_path)
    with pytest.raises(
        ValueError, match="Found zero restored functions for caller function"
    ):
        loaded.f(tf.constant(1.0))


def test_loaded_models_are_saved_again(tmp_path):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    model = module(
        v=tf.Variable([1.0]),
        table=table,
        f=function(
            lambda s: (table.lookup(s), table.insert(s, [7]))[:1],
            tf.TensorSpec([1], tf.string),
        ),
    )
    model.g = tf.function(lambda x, by=2.0: x * by * model.v)
    model.g(tf.constant(1.0))
    loaded = saved(model, tmp_path / "1")
    loaded.v.assign([5.0])
    loaded.f(["x"])
    again = saved(loaded, tmp_path / "2")
    assert again.g(tf.constant(2.0)).numpy().tolist() == [20.0]
    assert again.f(["x"])[0].numpy().tolist() == [7]
    with tf.GradientTape() as tape:
        y = again.g(tf.constant(2.0))
    assert tape.gradient(y, again.v).numpy().tolist() == [4.0]


def test_a_model_replaces_the_one_that_was_there(tmp_path):
    for value in (1.0, 2.0):
        loaded = saved(module(v=tf.Variable(value)), tmp_path)
        assert float(loaded.v) == value


def test_assets_of_one_name_and_of_tables(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").write_text(f"{name}\nx\n")
    lines = tf.lookup.TextFileInitializer(
        str(tmp_path / "a/words.txt"), tf.string, -2, tf.int64, -1
    )
    table = tf.lookup.StaticVocabularyTable(lines, 1)
    model = module(
        table=table,
        files=[tf.saved_model.Asset(str(tmp_path / f"{d}/words.txt")) for d in "ab"],
        f=function(table.lookup, tf.TensorSpec([None], tf.string)),
    )
    tf.saved_model.save(model, str(tmp_path / "m"))
    (tmp_path / "a/words.txt").unlink()
    os.rename(tmp_path / "m", tmp_path / "moved")
    loaded = tf.saved_model.load(str(tmp_path / "moved"))
    assert sorted(os.listdir(tmp_path / "moved/assets")) == ["words.txt", "words.txt_1"]
    assert loaded.f(["a", "x", "y"]).numpy().tolist() == [0, 1, 2]
    texts = [tf.io.read_file(f).numpy().decode() for f in loaded.files]
    assert texts == ["a\nx\n", "b\nx\n"]


def test_resources_of_the_users_own(tmp_path):
    class Counts(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.string, value_dtype=tf.int64, shared_name="counts"
            )

        def _initialize(self):
            tf.raw_ops.LookupTableImportV2(
                table_handle=self.resource_handle,
                keys=["a"],
                values=tf.constant([3], tf.int64),
            )

    counts = Counts()

    def find(s):
        return tf.raw_ops.LookupTableFindV2(
            table_handle=counts.resource_handle,
            keys=s,
            default_value=tf.constant(0, tf.int64),
        )

    loaded = saved(
        module(counts=counts, f=function(find, tf.TensorSpec([None], tf.string))),
        tmp_path,
    )
    assert loaded.f(["a", "b"]).numpy().tolist() == [3, 0]


def test_tags_and_paths(tmp_path):
    model = module(v=tf.Variable(np.float64(2)))
    options = tf.saved_model.SaveOptions(extra_tags=["gpu"])
    tf.saved_model.save(model, tmp_path / "m", options=options)
    loaded = tf.saved_model.load(tmp_path / "m", tags=["gpu", "serve"])
    assert loaded.v.dtype == tf.float64
    with pytest.raises(ValueError, match=r"one MetaGraph with tags \['serve', 'gpu'\]"):
        tf.saved_model.load(tmp_path / "m", tags="serve")
    tf.saved_model.save(model, "ram://saved/m")
    assert float(tf.saved_model.load("ram://saved/m").v) == 2.0


def test_options_that_are_not_there():
    with pytest.raises(NotImplementedError, match="experimental_skip_saver"):
        tf.saved_model.SaveOptions(experimental_skip_saver=True)
    with pytest.raises(ValueError, match="Received invalid VariablePolicy value: x."):
        tf.saved_model.SaveOptions(experimental_variable_policy="x")


def test_names_of_signatures_are_texts(tmp_path):
    model, spec = tf.Module(), tf.TensorSpec([], tf.float32)
    model.f = tf.function(lambda x: x, input_signature=[spec])
    with pytest.raises(TypeError, match="name of a signature must be a str, got 1"):
        tf.saved_model.save(model, tmp_path / "m", signatures={1: model.f})


def test_aliases_may_be_of_lists_of_concrete_functions(tmp_path):
    square = tf.function(lambda x: {"out": x * x})
    traces = [
        square.get_concrete_function(tf.TensorSpec(None, dtype))
        for dtype in (tf.float32, tf.int32)
    ]
    options = tf.saved_model.SaveOptions(function_aliases={"square": traces})
    tf.saved_model.save(tf.Module(), str(tmp_path / "m"), traces[0], options)
    parse = tf.__internal__.saved_model.parse_saved_model
    found = parse(str(tmp_path / "m")).meta_graphs[0].meta_info_def.function_aliases
    assert dict(found) == {t.name.decode(): "square" for t in traces}
    options = tf.saved_model.SaveOptions(function_aliases={"square": len})
    with pytest.raises(TypeError, match="Unsupported type"):
        tf.saved_model.save(tf.Module(), str(tmp_path / "n"), traces[0], options)
