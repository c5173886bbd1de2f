"""Calls whose counts or types are not those of their functions are refused."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
raw = tf.raw_ops
WRONG = (tf.errors.InvalidArgumentError, ValueError)


@pytest.fixture(scope="module")
def integers():
    """int64 -> int64."""
    f = tf.function(lambda x: x)
    return f.get_concrete_function(tf.TensorSpec(None, tf.int64))


def partitioned(x, dtype, f):
    return raw.PartitionedCall(args=[x], Tout=[dtype], f=f)[0]


READERS = {
    "string": (tf.string, tf.strings.length),
    "double": (tf.float64, lambda y: y + 1.0),
    "complex": (tf.complex128, tf.reduce_sum),
    "resource": (
        tf.resource,
        lambda y: raw.ReadVariableOp(resource=y, dtype=tf.float32),
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("given", [tf.float32, tf.int64])
def test_result_of_another_type(integers, reader, given):
    dtype, read = READERS[reader]
    f = tf.function(lambda x: read(partitioned(x, dtype, integers)))
    with pytest.raises(WRONG):
        f(tf.ones([64], given))


@pytest.mark.parametrize("dtype", [tf.string, tf.float64])
@pytest.mark.parametrize("way", ["eager", "traced"])
def test_result_that_is_returned(integers, dtype, way):
    def call():
        return partitioned(1.0, dtype, integers)

    with pytest.raises(WRONG):
        call() if way == "eager" else tf.function(call)()


def branches(f, inputs, outputs):
    """Calls with these inputs and output types, in every form."""
    return {
        "PartitionedCall": lambda: raw.PartitionedCall(args=inputs, Tout=outputs, f=f),
        "StatefulPartitionedCall": lambda: raw.StatefulPartitionedCall(
            args=inputs, Tout=outputs, f=f
        ),
        "StatelessIf": lambda: raw.StatelessIf(
            cond=True, input=inputs, Tout=outputs, then_branch=f, else_branch=f
        ),
        "If": lambda: raw.If(
            cond=True, input=inputs, Tout=outputs, then_branch=f, else_branch=f
        ),
        "StatelessCase": lambda: raw.StatelessCase(
            branch_index=0, input=inputs, Tout=outputs, branches=[f]
        ),
        "Case": lambda: raw.Case(
            branch_index=0, input=inputs, Tout=outputs, branches=[f]
        ),
    }


FORMS = list(branches(None, [], []))
LIES = {
    "more of both": (2, [tf.float32, tf.float16]),
    "more inputs": (2, [tf.float32]),
    "more outputs": (1, [tf.int64, tf.float16]),
    "another output": (1, [tf.float16]),
    "no input": (0, [tf.int64]),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", ["eager", "traced", "gradient"])
def test_counts_and_types(integers, form, lie, way):
    count, outputs = LIES[lie]

    def call(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = branches(integers, [x] * count, outputs)[form]()
        floating = [o for o in out if o.dtype.is_floating]
        return tape.gradient(floating, x) if way == "gradient" else out

    f = call
    if way != "eager":
        f = tf.function(call, input_signature=[tf.TensorSpec(None)])
    with pytest.raises(WRONG):
        f(tf.constant(1.0))


@pytest.mark.parametrize("way", ["eager", "traced", "gradient"])
def test_loop(integers, way):
    def call(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = raw.StatelessWhile(input=[x, x], cond=integers, body=integers)
        return tape.gradient(out, x) if way == "gradient" else out

    f = call if way == "eager" else tf.function(call)
    with pytest.raises(WRONG):
        f(tf.constant(1.0))


def lying_graph(reader, in_type, out_type):
    """placeholder -> call of an identity of int64 -> reader, as a GraphDef."""
    gd = v1.GraphDef()
    fd = gd.library.function.add()
    fd.signature.name = "F"
    a = fd.signature.input_arg.add()
    a.name, a.type = "x", tf.int64.as_datatype_enum
    o = fd.signature.output_arg.add()
    o.name, o.type = "y", tf.int64.as_datatype_enum
    n = fd.node_def.add()
    n.name, n.op = "c", "Identity"
    n.input.append("x")
    n.attr["T"].type = tf.int64.as_datatype_enum
    fd.ret["y"] = "c:output:0"
    n = gd.node.add()
    n.name, n.op = "k", "Placeholder"
    n.attr["dtype"].type = in_type.as_datatype_enum
    n = gd.node.add()
    n.name, n.op = "call", "PartitionedCall"
    n.input.append("k")
    n.attr["Tin"].list.type.append(in_type.as_datatype_enum)
    n.attr["Tout"].list.type.append(out_type.as_datatype_enum)
    n.attr["f"].func.name = "F"
    n = gd.node.add()
    n.name, n.op = "read", reader
    n.input.append("call")
    if reader != "StringLength":
        n.attr["T"].type = out_type.as_datatype_enum
    return gd


@pytest.mark.parametrize(
    ("reader", "in_type", "out_type"),
    [
        ("StringLength", tf.int64, tf.string),
        ("Neg", tf.float32, tf.int64),
        ("Neg", tf.int64, tf.complex128),
    ],
)
def test_graph_from_outside(reader, in_type, out_type):
    with tf.Graph().as_default() as graph, pytest.raises(WRONG):
        tf.import_graph_def(lying_graph(reader, in_type, out_type), name="")
        with v1.Session() as session:
            holder = graph.get_tensor_by_name("k:0")
            fed = np.full(64, 0x41414141).astype(in_type.as_numpy_dtype)
            session.run("read:0", {holder: fed})


@pytest.mark.parametrize("first", ["caller", "callee"])
def test_import_looks_into_functions(first):
    """F calls G, whose argument is of another type; nobody need run F."""
    gd = lying_graph("Neg", tf.float32, tf.int64)
    calls = [n for n in gd.node if n.name != "read"]
    outer = v1.GraphDef().library.function.add()
    outer.signature.name = "Outer"
    given, result = outer.signature.input_arg.add(), outer.signature.output_arg.add()
    given.name, given.type = "x", tf.float32.as_datatype_enum
    result.name, result.type = "y", tf.int64.as_datatype_enum
    outer.node_def.add().CopyFrom(calls[1])
    outer.node_def[0].input[0] = "x"
    outer.ret["y"] = "call:output:0"
    inner = v1.GraphDef().library.function.add()
    inner.CopyFrom(gd.library.function[0])
    del gd.node[:], gd.library.function[:]
    both = [outer, inner] if first == "caller" else [inner, outer]
    gd.library.function.extend(both)
    with tf.Graph().as_default(), pytest.raises(WRONG, match="in function Outer"):
        tf.import_graph_def(gd, name="")


def test_gradient_of_a_graph_from_outside():
    with tf.Graph().as_default() as graph, pytest.raises(WRONG):
        gd = lying_graph("Neg", tf.float32, tf.float64)
        tf.import_graph_def(gd, name="")
        tf.gradients(
            graph.get_tensor_by_name("read:0"), graph.get_tensor_by_name("k:0")
        )


@pytest.mark.parametrize(
    ("count", "equation"), [(1, "ij,jk->k"), (3, "i,j->ij"), (2, "i->i"), (3, "i->i")]
)
@pytest.mark.parametrize("way", ["eager", "traced", "graph"])
def test_einsum_counts_its_operands(count, equation, way):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = raw.Einsum(inputs=[x] * count, equation=equation)
        return tape.gradient(y, x)

    with pytest.raises(WRONG):
        if way == "eager":
            gradient(tf.ones([2]))
        elif way == "traced":
            tf.function(gradient, input_signature=[tf.TensorSpec(None)])(tf.ones([2]))
        else:
            with tf.Graph().as_default():
                x = v1.placeholder(tf.float32)
                tf.gradients(raw.Einsum(inputs=[x] * count, equation=equation), x)


def test_calls_that_fit_still_run(integers):
    for form in FORMS:
        f = tf.function(
            lambda x, form=form: branches(integers, [x], [tf.int64])[form]()
        )
        assert f(tf.constant([3], tf.int64))[0].numpy().tolist() == [3]
