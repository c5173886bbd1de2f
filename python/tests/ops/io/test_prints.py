"""tf.print as an operation: in functions, sessions, branches, loops and imports."""

import sys

import headrace as tf
import pytest

v1 = tf.compat.v1


def _print(*values, **arguments):
    return tf.print(*values, output_stream=sys.stdout, **arguments)


def test_in_functions_prints_keep_their_order(capfd):
    def turn(i):
        _print("turn", i)
        return i + 1

    def branch(name):
        def run():
            _print(name)
            return 0

        return run

    @tf.function(autograph=False)
    def run(x):
        _print("first", x)
        tf.cond(x > 0, branch("positive"), branch("not"))
        tf.while_loop(lambda i: i < 2, turn, [0])
        _print("last", x + 1)

    run(tf.constant(1))
    run(tf.constant(-1))
    out = "first {}\n{}\nturn 0\nturn 1\nlast {}\n"
    assert capfd.readouterr().out == out.format(1, "positive", 2) + out.format(
        -1, "not", 0
    )


def test_sessions_print_what_is_asked_for(capfd):
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(3)
        first = _print("first", x)
        with tf.control_dependencies([first]):
            second = _print("second", x)
        with tf.control_dependencies([second]):
            after = x + 1
        beside = x + 2
        _print("never")
        assert session.run(beside) == 5
        assert capfd.readouterr().out == ""
        assert session.run(first) is None
        assert capfd.readouterr().out == "first 3\n"
        assert session.run([after, beside]) == [4, 5]
        assert capfd.readouterr().out == "first 3\nsecond 3\n"


def test_pruned_functions_and_data_print(capfd):
    def f(x):
        _print("f", x)
        return x * 2

    wrapped = v1.wrap_function(f, [tf.TensorSpec([], tf.int32)])
    pruned = wrapped.prune(wrapped.inputs[0], wrapped.outputs[0])
    assert (int(wrapped(tf.constant(2))), int(pruned(tf.constant(3)))) == (4, 6)
    assert capfd.readouterr().out == ""  # as TensorFlow 1 does: nobody asked for it
    assert list(tf.data.Dataset.range(2).map(f).as_numpy_iterator()) == [0, 2]
    assert capfd.readouterr().out == "f 0\nf 1\n"


def test_imported_prints(capfd):
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.int32, [], name="x")
        printed = _print("{braces}", x, "end", name="shown")
        with tf.control_dependencies([printed]):
            tf.identity(x, name="y")
    nodes = {n.name: n for n in graph.as_graph_def().node}
    assert nodes["shown"].op == "PrintV2"
    assert nodes["shown_format"].attr["template"].s == b"{braces} {} end"
    with tf.Graph().as_default(), v1.Session() as session:
        (y,) = tf.import_graph_def(
            graph.as_graph_def(), return_elements=["y:0"], name="m"
        )
        assert session.run(y, {"m/x:0": 8}) == 8
    assert capfd.readouterr().out == "{braces} 8 end\n"


@pytest.mark.parametrize(
    "values, arguments, text",
    [
        (lambda: ("{}", tf.constant(1), "{a}", "{{"), {}, "{} 1 {a} {{\n"),
        (lambda: (tf.range(9),), {"summarize": 2}, "[0 1 ... 7 8]\n"),
        (lambda: (tf.range(5),), {"summarize": -1}, "[0 1 2 3 4]\n"),
        (
            lambda: (
                {"b": (1, "x"), "a": tf.constant([1.5, 2.0])},
                [tf.constant("s"), None],
            ),
            {"sep": "|", "end": "!\n"},
            "{'a': [1.5 2], 'b': (1, 'x')}|[\"s\", None]!\n",
        ),
        (lambda: (tf.ragged.constant([[1], [2, 3]]),), {}, "[[1], [2, 3]]\n"),
        (lambda: (tf.constant("alone"),), {"end": ""}, "alone"),
        (lambda: (), {}, "\n"),
    ],
)
def test_what_is_printed(values, arguments, text, capfd):
    _print(*values(), **arguments)
    tf.function(lambda: _print(*values(), **arguments) and None, autograph=False)()
    with tf.Graph().as_default(), v1.Session() as session:
        session.run(_print(*values(), **arguments))
    assert capfd.readouterr().out == text * 3


def test_files_and_streams_that_are_none(tmp_path):
    file = tmp_path / "printed"

    @tf.function(autograph=False)
    def run(x):
        tf.print("x", x, output_stream=f"file://{file}")
        tf.print("more", output_stream=f"file://{file}")

    run(tf.constant(4))
    assert file.read_text() == "x 4\nmore\n"
    for stream in (3, "printed.txt"):
        with pytest.raises(ValueError, match="Unsupported output stream"):
            tf.print(1, output_stream=stream)
    with pytest.raises(ValueError, match="Unrecognized keyword arguments"):
        tf.print(1, stream=sys.stdout)
