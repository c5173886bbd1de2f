"""What modules register is there also for a program that begins with its use."""

import subprocess
import sys

import pytest

PROGRAMS = {
    "a default graph": """
        print(tf.compat.v1.get_default_graph().get_operations())""",
    "graphs by default": """
        tf.compat.v1.disable_eager_execution()
        print(tf.constant(1).graph is tf.compat.v1.get_default_graph())""",
    "a first value in a graph": """
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            v = tf.compat.v1.Variable(2.0, use_resource=True)
            print(session.run(v.initialized_value()))""",
    "a restore in a graph": """
        import tempfile
        path = tf.train.Checkpoint(v=tf.Variable(3.0)).save(tempfile.mkdtemp() + "/c")
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            v = tf.Variable(1.0)
            restored = tf.train.Checkpoint(v=v).restore(path)
            restored.initialize_or_restore(session)
            print(session.run(v))""",
    "a variable of a scope below a custom gradient": """
        @tf.recompute_grad
        def times(x):
            ones = tf.compat.v1.ones_initializer()
            return x * tf.compat.v1.get_variable(
                "w", [], initializer=ones, use_resource=True)
        with tf.Graph().as_default():
            x = tf.constant(1.0)
            tf.gradients(times(x), x)
            print([v.name for v in tf.compat.v1.global_variables()])""",
    "an operation on a KerasTensor": """
        print((tf.keras.KerasTensor((None, 3), "float32") * 2).shape)""",
    "a layer's metric": """
        layer = tf.keras.layers.Layer()
        layer.add_metric(tf.constant(4.0), name="m")
        print(layer.metrics[0].result().numpy())""",
    "ragged images": """
        images = tf.RaggedTensor.from_tensor(tf.zeros([2, 3, 4, 1]))
        print(tf.image.resize(images, [5, 6]).shape)""",
}
PRINTED = {
    "a default graph": "[]",
    "graphs by default": "True",
    "a first value in a graph": "2.0",
    "a restore in a graph": "3.0",
    "a variable of a scope below a custom gradient": "['w:0']",
    "an operation on a KerasTensor": "(None, 3)",
    "a layer's metric": "4.0",
    "ragged images": "(2, 5, 6, 1)",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_begins_with(what):
    program = "if True:\n        import headrace as tf" + PROGRAMS[what]
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == PRINTED[what], done.stderr
