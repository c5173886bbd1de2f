"""Graphs cut out of others."""

import headrace as tf
import pytest

v1 = tf.compat.v1
extract = v1.graph_util.extract_sub_graph


@pytest.fixture(scope="module")
def whole():
    with tf.Graph().as_default() as graph:
        a = v1.placeholder(tf.float32, [2], name="a")
        b = tf.negative(a, name="b")
        c = tf.multiply(b, b, name="c")
        d = tf.identity(a, name="d")
        with tf.control_dependencies([d]):
            tf.negative(c, name="e")
        tf.identity(tf.unstack(a, name="two")[1], name="f")
        tf.function(lambda x: x + 1.0)(a)
    return graph.as_graph_def()


@pytest.mark.parametrize(
    "wanted, nodes",
    [
        (["c"], "a b c"),
        (["e"], "a b c d e"),
        (["e", "e"], "a b c d e"),
        (["f"], "a two f"),
        ({"d", "b"}, "a b d"),
        (iter(["d"]), "a d"),
        ((), ""),
    ],
)
def test_what_nodes_need_is_cut_out(whole, wanted, nodes):
    part = extract(whole, wanted)
    assert [n.name for n in part.node] == nodes.split()
    assert part.library == whole.library and len(part.library.function) == 1
    assert part.versions == whole.versions
    tf.graph_util.import_graph_def(part, name="")


def test_a_part_computes_what_the_whole_did(whole):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.import_graph_def(extract(whole, ["c"]), name="")
        assert session.run("c:0", {"a:0": [2, 3]}).tolist() == [4, 9]


def test_cycles_and_long_chains_end():
    loop = v1.GraphDef()
    for i in range(5000):
        loop.node.add(name=f"n{i}", op="Identity", input=[f"n{(i + 1) % 5000}"])
    assert len(extract(loop, ["n7"]).node) == 5000


@pytest.mark.parametrize("name", ["nope", "c:0", "^c", ""])
def test_nodes_that_are_not_there(whole, name):
    with pytest.raises(AssertionError, match="is not in graph"):
        extract(whole, [name])


def test_an_input_that_is_not_there():
    broken = v1.GraphDef()
    broken.node.add(name="x", op="Identity", input=["gone:1"])
    with pytest.raises(AssertionError, match="gone is not in graph"):
        extract(broken, ["x"])


def test_wrong_types(whole):
    with pytest.raises(TypeError, match="must be a graph_pb2.GraphDef proto, but got"):
        extract(tf.Graph(), ["c"])
    with pytest.raises(TypeError, match="dest_nodes must be an iterable of strings"):
        extract(whole, "c")
