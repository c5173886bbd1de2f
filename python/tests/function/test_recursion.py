"""Functions that call themselves, and functions whose calls multiply."""

import os
import resource
import subprocess
import sys
import time

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
FLOAT = tf.float32.as_datatype_enum


def function(gd, name, args=1, result="x"):
    fd = gd.library.function.add()
    fd.signature.name = name
    for i in range(args):
        a = fd.signature.input_arg.add()
        a.name, a.type = "xyz"[i], FLOAT
    o = fd.signature.output_arg.add()
    o.name, o.type = "result", FLOAT
    fd.ret["result"] = result
    return fd


def node(nodes, op, name, inputs, **types):
    n = nodes.add()
    n.name, n.op = name, op
    n.input.extend(inputs)
    for key, value in types.items():
        n.attr[key].type = value
    return n


def call(nodes, name, inputs, f, op="PartitionedCall"):
    n = node(nodes, op, name, inputs)
    n.attr["Tin"].list.type.extend([FLOAT] * len(inputs))
    n.attr["Tout"].list.type.append(FLOAT)
    n.attr["f"].func.name = f


def constant(nodes, name, value):
    n = node(nodes, "Const", name, [], dtype=FLOAT)
    n.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))


def graph_calling(gd, f, inputs=1):
    names = ["k", "l", "m"][:inputs]
    for name in names:
        node(gd.node, "Placeholder", name, [], dtype=FLOAT)
    call(gd.node, "call", names, f)
    return gd


def run(gd, feeds, **options):
    with tf.Graph().as_default():
        tf.import_graph_def(gd, name="")
        with v1.Session() as session:
            how = v1.RunOptions(**options) if options else None
            return session.run("call:0", feeds, options=how)


def endless():
    gd = v1.GraphDef()
    fd = function(gd, "F", result="c:output:0")
    call(fd.node_def, "c", ["x"], "F")
    return graph_calling(gd, "F")


def endless_pair():
    gd = v1.GraphDef()
    for name, other in ("F", "G"), ("G", "F"):
        fd = function(gd, name, result="c:output:0")
        call(fd.node_def, "c", ["x"], other, "StatefulPartitionedCall")
    return graph_calling(gd, "F")


def branch(nodes, name, condition, inputs, then, other):
    n = node(nodes, "StatelessIf", name, [condition, *inputs])
    n.attr["Tcond"].type = tf.bool.as_datatype_enum
    n.attr["Tin"].list.type.extend([FLOAT] * len(inputs))
    n.attr["Tout"].list.type.append(FLOAT)
    n.attr["then_branch"].func.name = then
    n.attr["else_branch"].func.name = other


def sum_to():
    """F(x) = x + F(x - 1) for x > 0, else 0: recursion that is legal."""
    gd = v1.GraphDef()
    fd = function(gd, "F", result="if:output:0")
    constant(fd.node_def, "zero", 0.0)
    node(fd.node_def, "Greater", "more", ["x", "zero:output:0"], T=FLOAT)
    branch(fd.node_def, "if", "more:z:0", ["x"], "Deeper", "End")
    fd = function(gd, "Deeper", result="sum:z:0")
    constant(fd.node_def, "one", 1.0)
    node(fd.node_def, "Sub", "less", ["x", "one:output:0"], T=FLOAT)
    call(fd.node_def, "again", ["less:z:0"], "F")
    node(fd.node_def, "AddV2", "sum", ["x", "again:output:0"], T=FLOAT)
    fd = function(gd, "End", result="zero:output:0")
    constant(fd.node_def, "zero", 0.0)
    return graph_calling(gd, "F")


def loops(turns="x"):
    """F(x) = 1 + F(x - 1) for every turn of a loop within it."""
    gd = v1.GraphDef()
    fd = function(gd, "F", result="while:output:2")
    constant(fd.node_def, "one", 1.0)
    node(fd.node_def, "Sub", "less", ["x", "one:output:0"], T=FLOAT)
    n = node(
        fd.node_def, "StatelessWhile", "while", [turns, "less:z:0", "one:output:0"]
    )
    n.attr["T"].list.type.extend([FLOAT] * 3)
    n.attr["cond"].func.name = "More"
    n.attr["body"].func.name = "Turn"
    fd = function(gd, "More", args=3, result="more:z:0")
    fd.signature.output_arg[0].type = tf.bool.as_datatype_enum
    constant(fd.node_def, "zero", 0.0)
    node(fd.node_def, "Greater", "more", ["x", "zero:output:0"], T=FLOAT)
    fd = function(gd, "Turn", args=3, result="less:z:0")
    for name, result in ("same", "y"), ("sum", "sum:z:0"):
        o = fd.signature.output_arg.add()
        o.name, o.type = name, FLOAT
        fd.ret[name] = result
    constant(fd.node_def, "one", 1.0)
    node(fd.node_def, "Sub", "less", ["x", "one:output:0"], T=FLOAT)
    call(fd.node_def, "again", ["y"], "F")
    node(fd.node_def, "AddV2", "sum", ["z", "again:output:0"], T=FLOAT)
    return graph_calling(gd, "F")


def endless_loops():
    return loops("one:output:0")


@pytest.mark.parametrize("make", [endless, endless_pair, endless_loops])
def test_endless_recursion_is_an_error(make):
    with pytest.raises(tf.errors.ResourceExhaustedError, match="too deep"):
        run(make(), {"k:0": 1.0})


def test_endless_recursion_on_a_small_stack(tmp_path):
    """What a thread's stack holds decides, not a number."""
    program = tmp_path / "small.py"
    program.write_text(
        "import sys, threading\n"
        f"sys.path.insert(0, {str(__file__.rsplit('/', 1)[0])!r})\n"
        "import headrace as tf\n"
        "import test_recursion\n"
        "def work():\n"
        "    try:\n"
        "        test_recursion.run(test_recursion.endless(), {'k:0': 1.0})\n"
        "    except tf.errors.ResourceExhaustedError:\n"
        "        print('refused')\n"
        "threading.stack_size(1 << 20)\n"
        "t = threading.Thread(target=work)\n"
        "t.start()\n"
        "t.join()\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr[-2000:]


@pytest.mark.parametrize("depth", [0, 3, 500])
def test_legal_recursion(depth):
    assert run(sum_to(), {"k:0": float(depth)}) == depth * (depth + 1) / 2


@pytest.mark.parametrize(("depth", "value"), [(0, 1), (2, 5), (4, 65), (7, 13700)])
def test_recursion_of_loops(depth, value):
    """Deeper than the loops that one plan holds, too."""
    assert run(loops(), {"k:0": float(depth)}) == value


def test_recursion_deeper_than_the_stack():
    with pytest.raises(tf.errors.ResourceExhaustedError, match="too deep"):
        run(sum_to(), {"k:0": 1e9})
    assert run(sum_to(), {"k:0": 4.0}) == 10.0


@pytest.mark.parametrize("make", [endless, sum_to])
def test_gradient_of_recursion_names_the_function(make):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(make(), name="")
        with pytest.raises(tf.errors.UnimplementedError, match="calls itself"):
            tf.gradients(
                graph.get_tensor_by_name("call:0"), graph.get_tensor_by_name("k:0")
            )


def doubling(levels, bottom):
    """F0 calls F1 twice, which calls F2 twice, ..."""
    gd = v1.GraphDef()
    for i in range(levels):
        if i == levels - 1:
            fd = function(gd, f"F{i}", result="c:y:0" if bottom else "x")
            if bottom:
                node(fd.node_def, bottom, "c", ["x"], T=FLOAT)
        else:
            fd = function(gd, f"F{i}", result="d:output:0")
            call(fd.node_def, "c", ["x"], f"F{i + 1}")
            call(fd.node_def, "d", ["c:output:0"], f"F{i + 1}")
    return graph_calling(gd, "F0")


@pytest.mark.parametrize("bottom", [None, "Neg"])
def test_calls_that_multiply_keep_the_deadline(bottom):
    begin = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError):
        run(doubling(40, bottom), {"k:0": 1.0}, timeout_in_ms=300)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("bottom", [None, "Neg"])
def test_calls_that_multiply_are_right(bottom):
    """More bodies than are written out: the others are called."""
    assert run(doubling(18, bottom), {"k:0": 3.0}) == 3.0


def test_gradient_of_calls_that_multiply():
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(doubling(30, "Neg"), name="")
        k = graph.get_tensor_by_name("k:0")
        (g,) = tf.gradients(graph.get_tensor_by_name("call:0"), k)
        assert g.dtype == tf.float32


@pytest.mark.skipif(
    bool(os.environ.get("LD_PRELOAD")), reason="sanitizers keep freed memory"
)
@pytest.mark.parametrize(
    ("make", "large", "depth", "value"),
    [(sum_to, "End", 2.0, 3.0), (loops, "Turn", 6.0, 1957.0)],
)
def test_recursive_functions_do_not_hold_themselves(make, large, depth, value):
    """Graphs whose functions call each other are freed with their sessions."""
    megabyte, rounds = 1 << 20, 20

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize()

    def once():
        gd = make()
        (f,) = (f for f in gd.library.function if f.signature.name == large)
        constant(f.node_def, "large", np.ones(megabyte // 2, np.float32))
        assert run(gd, {"k:0": depth}) == value

    for _ in range(3):
        once()
    before = resident()
    for _ in range(rounds):
        once()
    assert resident() - before < rounds * megabyte
