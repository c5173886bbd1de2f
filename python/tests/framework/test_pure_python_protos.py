"""Proto messages where protobuf is the pure-Python one, which older packages ask for."""

import os
import subprocess
import sys

PROGRAM = """
import headrace as tf
from google.protobuf.internal import api_implementation

assert api_implementation.Type() == "python", api_implementation.Type()
graph = tf.compat.v1.GraphDef()
graph.node.add(name="a", op="NoOp").attr["list"].list.i.extend([1, 2])
print(tf.compat.v1.GraphDef.FromString(graph.SerializeToString()) == graph)
print(tf.compat.v1.AttrValue.ListValue(i=[3]).i[0])
print(tf.make_tensor_proto([True, False]).tensor_shape.dim[0].size)
print(tf.compat.v1.Event.__doc__.splitlines()[2].strip())
with tf.Graph().as_default() as g:
    tf.constant([1.0, 2.0], name="c")
print(tf.make_ndarray(g.as_graph_def().node[0].attr["value"].tensor).tolist())
"""


def test_messages_of_the_pure_python_protobuf():
    env = dict(os.environ, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "True",
        "3",
        "2",
        "double wall_time = 1",
        "[1.0, 2.0]",
    ]
