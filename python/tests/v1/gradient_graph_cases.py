"""Training graphs of TensorFlow 1 of which tests/golden/v1/gradient_graphs.json keeps the
nodes that gradients are made of.

Written anew by a Python that has TensorFlow 2.21:
`python gradient_graph_cases.py tensorflow ../../../tests/golden/v1`.
"""

import importlib
import json
import os
import sys


class Cases:
    """Each method builds one graph."""

    def __init__(self, tf):
        self.tf, self.v1 = tf, tf.compat.v1

    def _x(self, *shape, name="x", dtype="float32"):
        return self.v1.placeholder(dtype, shape, name=name)

    def _variable(self, name, *shape):
        zeros = self.v1.zeros_initializer()
        return self.v1.get_variable(name, shape, initializer=zeros, use_resource=False)

    def classes(self):
        tf, v1 = self.tf, self.v1
        x, t = self._x(None, 8), self._x(None, name="t", dtype="int32")
        h = tf.matmul(x, self._variable("w", 8, 16)) + self._variable("b", 16)
        h = tf.matmul(tf.nn.relu(h), self._variable("w2", 16, 4))
        logits = tf.nn.bias_add(h, self._variable("b2", 4))
        loss = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits)
        v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(loss))

    def regression(self):
        tf, v1 = self.tf, self.v1
        x, y = self._x(4, 3), self._x(4, 1, name="y")
        w = self._variable("w", 3, 1)
        p = tf.matmul(x, w) + self._variable("b")
        loss = tf.reduce_sum(tf.square(p - y)) / 2.0 + 0.1 * tf.nn.l2_loss(w)
        v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)

    def images(self):
        tf, v1 = self.tf, self.v1
        h = tf.nn.conv2d(
            self._x(None, 8, 8, 1),
            self._variable("k", 3, 3, 1, 4),
            [1, 1, 1, 1],
            "SAME",
            name="conv",
        )
        h = tf.nn.relu(tf.nn.bias_add(h, self._variable("kb", 4)))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", name="pool")
        h = tf.matmul(tf.reshape(h, [-1, 64]), self._variable("w", 64, 12))
        h = tf.matmul(tf.nn.tanh(h), self._variable("w2", 12, 10))
        loss = tf.reduce_mean(tf.sigmoid(h), name="loss")
        v1.train.AdamOptimizer(0.01).minimize(loss)

    def broadcasts(self):
        tf, v1 = self.tf, self.v1
        x, y = self._x(None, 4), self._x(4, name="y")
        z = self._x(None, name="z")
        a = tf.subtract(x * y, y) / (2.0 + tf.exp(y))
        b = tf.reduce_sum(tf.math.squared_difference(a, x), 1)
        c = tf.maximum(b, z) + tf.math.log(1.0 + tf.math.log1p(tf.abs(b * z)))
        d = tf.math.divide_no_nan(c, tf.sqrt(c)) + tf.math.rsqrt(tf.minimum(c, 3.0))
        v1.gradients(tf.nn.softmax(tf.reshape(d, [-1, 4])), [x, y, z])

    def twice(self):
        tf, v1 = self.tf, self.v1
        x = self._x(3, 4)
        y = tf.nn.log_softmax(tf.transpose(x)) * tf.square(-tf.transpose(x))
        first = v1.gradients([y, tf.exp(x)], [x])[0]
        with tf.name_scope("more"):
            v1.gradients(tf.reduce_sum(tf.square(first)), [x])


NAMES = ("classes", "regression", "images", "broadcasts", "twice")


def nodes(tf, name):
    """["name op"] of the nodes below "gradients" that a case makes, sorted."""
    with tf.Graph().as_default() as graph:
        getattr(Cases(tf), name)()
    made = graph.as_graph_def().node
    return sorted(f"{n.name} {n.op}" for n in made if "gradients" in n.name)


def main(module, folder):
    tf = importlib.import_module(module)
    found = {name: nodes(tf, name) for name in NAMES}
    with open(os.path.join(folder, "gradient_graphs.json"), "w") as file:
        json.dump(found, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
