"""Loops in SavedModels have the form by which TensorFlow differentiates them."""

import headrace as tf
from headrace.v1.saved.loader import parse_saved_model


class Loops(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[0.5, 0.1], [0.2, 0.3]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def nested(self, x):
        h = x
        while tf.reduce_sum(h * h) < 50.0:
            h = h * 1.5 + x @ self.w
            for j in tf.range(2):
                h += tf.cast(j, tf.float32) * x
        return h

    @tf.function(input_signature=[tf.TensorSpec([3, None])])
    def rows(self, x):
        rows = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            rows = rows.write(i, x[i] * self.w[0, 0])
        return rows.stack()


def loops_of(folder):
    graph = parse_saved_model(folder).meta_graphs[0].graph_def
    functions = {f.signature.name: f for f in graph.library.function}
    for f in functions.values():
        for node in f.node_def:
            if node.op in ("While", "StatelessWhile"):
                yield node, functions


def gradients(model):
    found = []
    for f, x in (
        (model.nested, tf.constant([[1.0, 2.0]])),
        (model.rows, tf.ones([3, 2])),
    ):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(x) ** 2)
        found.append(tape.gradient(y, model.w).numpy().tolist())
    return found


# What TensorFlow 2.21 gave for the model of this file, as it was saved here.
IN_TENSORFLOW = [
    [[35.000003814697266, 56.24999237060547], [70.00000762939453, 112.49998474121094]],
    [[6.0, 0.0], [0.0, 0.0]],
]


def test_loops_are_counted_once(tmp_path):
    model = Loops()
    once, twice = str(tmp_path / "once"), str(tmp_path / "twice")
    tf.saved_model.save(model, once)
    tf.saved_model.save(tf.saved_model.load(once), twice)
    for folder in once, twice:
        loops = list(loops_of(folder))
        assert len(loops) == 3
        for node, functions in loops:
            assert node.input[0].endswith("/loop_counter:output:0")
            assert node.input[1].endswith("/maximum_iterations:output:0")
            count = node.attr["_num_original_outputs"].i
            body = functions[node.attr["body"].func.name].signature
            cond = functions[node.attr["cond"].func.name].signature
            assert len(body.input_arg) == len(cond.input_arg) == count
            assert len(body.output_arg) == count
            assert [a.type for a in body.input_arg[:2]] == [3, 3]


def test_loops_have_the_gradients_that_they_had(tmp_path):
    model = Loops()
    assert gradients(model) == IN_TENSORFLOW
    tf.saved_model.save(model, str(tmp_path))
    assert gradients(tf.saved_model.load(str(tmp_path))) == IN_TENSORFLOW
