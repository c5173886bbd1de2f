"""Random programs of TensorFlow 1's branches and loops: their graphs, values, gradients.

`python frame_programs.py tensorflow` writes tests/golden/programs/frames.json: for each
seed the program's result, its gradients and a digest of the nodes that it made.
"""

import hashlib
import json
import os
import random
import sys

import numpy as np

_HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(_HERE, "../../../tests/golden/programs/frames.json")
SEEDS = [s for s in range(60) if s != 21]  # 21 ends TensorFlow's run with an error
X, W = 0.7, [0.3, -0.5, 0.9]  # a placeholder's value, a variable's


class Writer:
    """Makes one program; `scope` holds the tensors of shape [3] that a part may read."""

    def __init__(self, tf, seed):
        self.tf, self.random = tf, random.Random(seed)

    def value(self, scope, depth):
        """A tensor of shape [3], bounded so that loops stay so."""
        kinds = [self.smooth] * 2
        if depth > 0:
            kinds += [self.branch, self.loop, self.loop, self.array, self.mapped]
        return self.random.choice(kinds)(scope, depth)

    def smooth(self, scope, depth):
        tf, pick = self.tf, lambda: self.random.choice(scope)
        ways = [
            lambda: pick() * tf.tanh(pick()),
            lambda: tf.sin(pick() + pick()),
            lambda: tf.tanh(pick()) - 0.5 * pick(),
            lambda: tf.tanh(tf.reduce_sum(pick()) * pick()),
            lambda: tf.tanh(tf.cumsum(tf.concat([pick()[1:], pick()[:1]], 0))),
            lambda: tf.stop_gradient(tf.tanh(pick())) * pick(),
            lambda: pick() / (1.0 + tf.square(pick())),
        ]
        return self.random.choice(ways)()

    def several(self, scope, depth):
        """A value by way of some others, which later ones may read."""
        scope = list(scope)
        for _ in range(self.random.randint(1, 3)):
            scope.append(self.value(scope, depth))
        return scope[-1]

    def predicate(self, scope):
        value = self.random.choice(scope)
        return self.tf.reduce_sum(value) > self.random.uniform(-1.0, 1.0)

    def branch(self, scope, depth):
        tf = self.tf.compat.v1
        one = lambda: self.several(scope, depth - 1)
        kind = self.random.randrange(4)
        if kind == 0:  # what is in a branch already
            there = self.random.choice(scope)
            return tf.cond(self.predicate(scope), lambda: there, one)
        if kind == 1:  # two results, one of which nobody differentiates
            first, second = tf.cond(
                self.predicate(scope),
                lambda: (one(), self.tf.constant(1.0)),
                lambda: (one(), self.tf.constant(2.0)),
            )
            return first * second
        if kind == 2:
            pairs = [(self.predicate(scope), one), (self.predicate(scope), one)]
            return tf.case(pairs, default=one)
        return tf.cond(self.predicate(scope), one, one)

    def loop(self, scope, depth):
        tf = self.tf
        turns = self.random.randint(0, 3)
        first = self.random.choice(scope)
        kind = self.random.randrange(3)
        most = self.random.choice([None, 2])

        def body(i, state, other):
            inside = [*scope, state, other, tf.cast(i, tf.float32) * state]
            value = tf.tanh(self.several(inside, depth - 1))
            return i + 1, value, (state if kind else other + value)

        def go_on(i, state, other):
            if kind == 2:
                return tf.logical_and(i < turns, tf.reduce_sum(state) < 2.0)
            return i < turns

        _, state, other = tf.compat.v1.while_loop(
            go_on,
            body,
            (tf.constant(0), first, self.random.choice(scope)),
            maximum_iterations=most,
            parallel_iterations=self.random.choice([1, 10]),
        )
        return tf.tanh(state + other)

    def array(self, scope, depth):
        tf, size = self.tf, self.random.randint(1, 3)
        array = tf.TensorArray(tf.float32, size, element_shape=[3])

        def body(i, array, state):
            value = tf.tanh(self.several([*scope, state], depth - 1))
            return i + 1, array.write(i, value), value

        _, array, _ = tf.compat.v1.while_loop(
            lambda i, *_: i < size, body, (0, array, self.random.choice(scope))
        )
        if self.random.random() < 0.3:
            return tf.tanh(tf.reshape(array.concat(), [size, 3])[0])
        return tf.tanh(tf.reduce_sum(array.stack(), 0))

    def mapped(self, scope, depth):
        tf = self.tf
        rows = tf.stack([self.random.choice(scope), self.random.choice(scope)])
        kind = self.random.randrange(3)
        if kind == 0:
            one = lambda row: tf.tanh(self.several([*scope, row], depth - 1))
            return tf.reduce_sum(tf.map_fn(one, rows), 0)
        two = lambda a, row: tf.tanh(self.several([*scope, a, row], depth - 1))
        if kind == 1:
            return tf.scan(two, rows)[-1]
        return tf.foldr(two, rows, initializer=self.random.choice(scope))


def nodes_of(graph):
    """The nodes of control flow and their kinds: they are called as in TensorFlow."""
    kinds = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}
    nodes = graph.as_graph_def().node
    return sorted(f"{n.name} {n.op}" for n in nodes if n.op in kinds)


def digest(nodes):
    return hashlib.sha256("\n".join(nodes).encode()).hexdigest()[:16]


def build(tf, seed):
    """(result, [placeholder, variable]) of a program, in the current graph."""
    x = tf.compat.v1.placeholder(tf.float32, [], "x")
    w = tf.compat.v1.get_variable(
        "w", initializer=np.float32(W), use_resource=seed % 2 == 0
    )
    writer = Writer(tf, seed)
    scope = [tf.fill([3], x), w + 0.0, tf.constant([0.2, -0.4, 0.6])]
    return tf.reduce_sum(writer.several(scope, 2) + writer.value(scope, 2)), [x, w]


def run(tf, seed):
    """[digest of the nodes, value, gradients]."""
    with tf.Graph().as_default() as graph:
        y, sources = build(tf, seed)
        made = digest(nodes_of(graph))
        gradients = tf.compat.v1.gradients(y, sources)
        gradients = [
            tf.zeros_like(s) if g is None else tf.convert_to_tensor(g)
            for g, s in zip(gradients, sources)
        ]
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            value, (gx, gw) = session.run([y, gradients], {sources[0]: X})
    return [made, float(value), float(gx), [float(g) for g in gw]]


def main():
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    found = [run(tf, seed) for seed in SEEDS]
    with open(GOLDEN, "w", encoding="utf8") as file:
        file.write("[\n" + ",\n".join(json.dumps(r) for r in found) + "\n]\n")


if __name__ == "__main__" and sys.argv[1:] == ["tensorflow"]:
    main()
