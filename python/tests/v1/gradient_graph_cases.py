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

    # --- of single functions ---

    def _of(self, function, *shapes, dtypes="f" * 9):
        kinds = {"f": "float32", "i": "int32"}
        xs = [
            self._x(*shape, name=name, dtype=kinds[kind])
            for shape, name, kind in zip(shapes, "xyz", dtypes)
        ]
        wanted = [x for x in xs if x.dtype.is_floating]
        self.v1.gradients(function(*xs), wanted)

    def powers(self):
        tf = self.tf
        self._of(tf.pow, (None, 3), (3,))
        self._of(lambda x: x**2.0, (2, 3))
        self._of(lambda x: 2.0**x, (40, 40))
        self._of(tf.atan2, (None, 3), (3,))

    def extremes(self):
        tf = self.tf
        for keep in (False, True):
            for shape in ((2, 3), (None, 3)):
                self._of(lambda x: tf.reduce_max(x, 1, keepdims=keep), shape)
        self._of(lambda x: tf.reduce_min(x), (None, 3))
        self._of(lambda x: tf.reduce_max(x, 1), (None, None))

    def totals(self):
        tf = self.tf
        for keep in (False, True):  # TensorFlow keeps what it found for a shape
            self._of(lambda x: tf.reduce_sum(x, 1, keepdims=keep), (2, 3 + keep))
            self._of(lambda x: tf.reduce_mean(x, [1], keepdims=keep), (3, 4 + keep))
            self._of(lambda x: tf.reduce_mean(x, 1, keepdims=keep), (None, 3))
        self._of(lambda x: tf.reduce_prod(x, 1), (None, 3))
        self._of(lambda x: tf.math.reduce_euclidean_norm(x, 1), (None, 3))

    def choices(self):
        tf, v1 = self.tf, self.v1
        for shape in ((2, 3), (None, 3), (40, 40)):
            self._of(lambda x, y: v1.where(x > 0.0, x, y), shape, shape)
        self._of(lambda x, y: tf.where(x > 0.0, x, y), (2, 3), (2, 3))
        self._of(lambda x, y: tf.where(x > 0.0, x, y), (None, 3), ())

    def parts(self):
        tf = self.tf
        for shape in ((2, 3), (None, 3)):
            self._of(lambda x: tf.pad(x, [[1, 1], [2, 2]]), shape)
            self._of(lambda x: tf.pad(x, [[1, 1], [1, 1]], "REFLECT"), shape)
            self._of(lambda x: tf.tile(x, [2, 2]), shape)
            self._of(lambda x: tf.slice(x, [0, 1], [-1, 2]), shape)
        self._of(lambda x: tf.pad(x, [[1, 1], [2, 2]], constant_values=3.0), (2, 3))
        self._of(lambda x: tf.split(x, 3, 1)[0], (None, 3))
        self._of(lambda x: tf.split(x, [1, 2], 1), (None, 3))
        self._of(lambda x: tf.unstack(x, 3, 1)[1], (None, 3))

    def joins(self):
        tf = self.tf
        self._of(lambda x, y: tf.concat([x, y], -1), (2, None), (None, None))
        self._of(lambda x, y: tf.concat([x, y], 0), (2, 3), (None, 3))
        self._of(
            lambda x, y: tf.raw_ops.Concat(concat_dim=0, values=[x, y]),
            (2, 3),
            (None, 3),
        )
        self._of(lambda x, y: tf.stack([x, y], 1), (None, 3), (None, 3))

    def lookups(self):
        tf, v1 = self.tf, self.v1
        i = "fi"
        self._of(lambda x, i: tf.gather(x, i), (5, 3), (4,), dtypes=i)
        self._of(lambda x, i: tf.gather(x, i), (None, 3), (None,), dtypes=i)
        self._of(
            lambda x, i: tf.raw_ops.Gather(params=x, indices=i), (5, 3), (4,), dtypes=i
        )
        v = v1.get_variable("v", [5, 3], use_resource=True)
        rows = self._x(None, name="rows", dtype="int32")
        looked = tf.raw_ops.ResourceGather(
            resource=v.handle, indices=rows, dtype=tf.float32
        )
        v1.gradients(looked, [v])

    def products(self):
        tf = self.tf
        self._of(tf.matmul, (5, 2, 3), (5, 3, 4))
        self._of(tf.matmul, (None, 2, 3), (1, 3, 4))

    def slopes(self):
        tf = self.tf
        names = "sin cos tan asin acos atan sinh cosh acosh asinh erf erfc lgamma sign"
        for name in (names + " expm1 digamma").split():
            self._of(getattr(tf.math, name), (2, 3))
        self._of(lambda x, y: x % y, (2, 3), (2, 3))
        self._of(tf.math.squared_difference, (2, 3), (2, 3))
        self._of(lambda x, y: x * y, (2, 3), (2, 3))


NAMES = ("classes", "regression", "images", "broadcasts", "twice")
# These with the order of the nodes, and their inputs.
WIRED = "powers extremes totals choices parts joins lookups products slopes".split()


def nodes(tf, name):
    """["name op"] of the nodes below "gradients" that a case makes, sorted."""
    with tf.Graph().as_default() as graph:
        getattr(Cases(tf), name)()
    made = graph.as_graph_def().node
    return sorted(f"{n.name} {n.op}" for n in made if "gradients" in n.name)


def wiring(tf, name):
    """["name op input..."], without those that are waited for, of the nodes below "gradients", in the graph's order."""
    with tf.Graph().as_default() as graph:
        getattr(Cases(tf), name)()
    return [
        " ".join([n.name, n.op, *(i for i in n.input if i[0] != "^")])
        for n in graph.as_graph_def().node
        if n.name.startswith("gradients")
    ]


def main(module, folder):
    tf = importlib.import_module(module)
    found = {name: nodes(tf, name) for name in NAMES}
    found |= {name: wiring(tf, name) for name in WIRED}
    with open(os.path.join(folder, "gradient_graphs.json"), "w") as file:
        json.dump(found, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
