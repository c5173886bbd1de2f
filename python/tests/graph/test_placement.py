"""Where operations of graphs say that they are placed, and how compiled."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def groups(x):
    return [g.decode() for g in x.op.colocation_groups()]


def test_colocate_with_operations_tensors_and_variables():
    with tf.Graph().as_default() as graph:
        with tf.device("/device:CPU:0"):
            a = tf.constant(1.0, name="a")
        b = tf.constant(2.0, name="b")
        v = v1.get_variable("v", [], use_resource=True)
        assert groups(a) == ["loc:@a"]
        with v1.colocate_with(a):
            c = a + b
            with graph.colocate_with(b.op):
                both = a * b
            with graph.colocate_with(v, ignore_existing=True):
                other = a - b
            with graph.colocate_with(None, ignore_existing=True):
                free = tf.identity(b, name="free")
        after = tf.identity(c, name="after")
        assert groups(c) == ["loc:@a"] and c.op.device == a.op.device
        assert groups(both) == ["loc:@a", "loc:@b"] and both.op.device == ""
        assert groups(other) == ["loc:@v"]
        assert groups(free) == ["loc:@free"] and groups(after) == ["loc:@after"]
        node = next(n for n in graph.as_graph_def().node if n.name == both.op.name)
        assert list(node.attr["_class"].list.s) == [b"loc:@a", b"loc:@b"]
        with pytest.raises(ValueError, match="ignore_existing is not"):
            with graph.colocate_with(None):
                pass
        with v1.Session(graph=graph) as session:
            assert session.run([c, both, after]) == [3.0, 2.0, 3.0]


def test_colocate_with_runs_eagerly_and_in_functions():
    x = tf.constant(3.0)
    with v1.colocate_with(x):
        assert float(x * x) == 9.0

    @tf.function
    def f(x):
        with v1.colocate_with(x):
            return x * x

    assert float(f(x)) == 9.0


def test_gradients_are_placed_with_what_they_are_of():
    with tf.Graph().as_default() as graph:
        x = tf.constant([[2.0]], name="x")
        with graph.device("/device:CPU:0"):
            y = tf.matmul(x, tf.constant([[3.0]]), name="y")
        z = tf.matmul(x, tf.constant([[5.0]]), name="z")
        (one,) = v1.gradients(y, x, colocate_gradients_with_ops=True)
        assert groups(one) == ["loc:@y"] and one.op.device == y.op.device
        (sums,) = v1.gradients([y, z], x, colocate_gradients_with_ops=True)
        assert groups(sums) == ["loc:@x"]  # of two devices
        w = tf.matmul(x, tf.constant([[7.0]]), name="w")
        (near,) = v1.gradients([z, w], x, colocate_gradients_with_ops=True)
        assert groups(near)[0] in ("loc:@z", "loc:@w")  # of one
        (free,) = v1.gradients([y, z], x)
        assert groups(free) == ["loc:@" + free.op.name]
        with v1.Session() as session:
            found = session.run([one, sums, near, free])
            assert [float(g[0, 0]) for g in found] == [3.0, 8.0, 12.0, 8.0]


def test_jit_scopes_mark_operations():
    with tf.Graph().as_default() as graph:
        with tf.xla.experimental.jit_scope():
            x = tf.constant(1.0) + 1.0
            with tf.xla.experimental.jit_scope(compile_ops=False):
                y = x + 1.0
        z = y + 1.0
        assert x.op.get_attr("_XlaCompile") and not y.op.get_attr("_XlaCompile")
        assert x.op.get_attr("_XlaScope") == y.op.get_attr("_XlaScope")
        with pytest.raises(ValueError, match="no attr named '_XlaCompile'"):
            z.op.get_attr("_XlaCompile")
        with v1.Session(graph=graph) as session:
            assert session.run(z) == 4.0
        with pytest.raises(NotImplementedError, match="compile_ops"):
            with tf.xla.experimental.jit_scope(compile_ops=lambda n: True):
                pass
    with pytest.raises(RuntimeError, match="eager execution"):
        with tf.xla.experimental.jit_scope():
            pass


def test_compile_gives_what_the_computation_does():
    def compiled(x):
        one = tf.xla.experimental.compile(lambda x: x * 2, [x])
        parts = tf.xla.experimental.compile(lambda: {"a": x, "b": [x + 1]})
        assert type(one) is list and set(parts) == {"a", "b"}
        return one[0], parts["b"][0]

    for f in (compiled, tf.function(compiled)):
        assert [float(x) for x in f(tf.constant(3.0))] == [6.0, 4.0]
    with pytest.raises(TypeError, match="inputs must be a list"):
        tf.xla.experimental.compile(lambda x: x, 3.0)


@pytest.mark.parametrize("of_cluster", [False, True])
def test_errors_tell_where_the_node_was_made(of_cluster):
    target = tf.distribute.Server.create_local_server().target if of_cluster else ""
    with tf.Graph().as_default(), v1.Session(target) as session:
        x = tf.constant(1.0)
        with tf.device("/device:GPU:7"):
            y = tf.negative(x, name="far")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(y)
    text = caught.value.message
    assert text.startswith(
        "Graph execution error:\n\nDetected at node 'far' defined at"
    )
    assert f'    File "{__file__}"' in text
    assert (
        "Node: 'far'\nCannot assign a device for operation far: {{node far}} was "
        "explicitly assigned to /device:GPU:7 but available devices are"
    ) in text
    assert caught.value.op is y.op
