"""keras.backend by many calls."""

import numpy as np
import tensorflow as tf

B = tf.keras.backend
r = np.random.RandomState(0)


def t(name, f):
    try:
        print(
            name,
            tf.nest.map_structure(lambda a: np.round(np.asarray(a), 4).tolist(), f()),
        )
    except Exception as e:
        print(name, type(e).__name__, str(e)[:90])


x = tf.constant(r.randn(2, 5, 4).astype("f"))
im = tf.constant(r.randn(1, 4, 4, 2).astype("f"))
cf = tf.constant(r.randn(1, 2, 4, 4).astype("f"))
v3 = tf.constant(r.randn(1, 3, 3, 3, 2).astype("f"))
k1 = tf.constant(r.randn(2, 4, 3).astype("f"))
k2 = tf.constant(r.randn(2, 2, 2, 3).astype("f"))
k3 = tf.constant(r.randn(2, 2, 2, 2, 1).astype("f"))
t("b", lambda: [len(B.backend())])
t("ge", lambda: B.greater_equal([1, 2], [2, 2]))
t("rev", lambda: B.reverse(x[0], 1))
t("rev2", lambda: B.reverse(x[0], [0, 1]))
t("map", lambda: B.map_fn(lambda a: a * 2, x[0]))
t("fl", lambda: B.foldl(lambda a, b: a + b, x[0]))
t("fr", lambda: B.foldr(lambda a, b: a - b, x[0]))
t("sp", lambda: B.to_dense(tf.sparse.from_dense([[1, 0]])))
t("ma", lambda: (lambda v: B.moving_average_update(v, 3.0, 0.9))(tf.Variable(1.0)))
t("up", lambda: B.update_add(tf.Variable(1.0), 2.0))
t(
    "cce",
    lambda: B.categorical_crossentropy(
        tf.constant([[0.0, 1]]), tf.constant([[0.3, 0.7]])
    ),
)
t(
    "scce",
    lambda: B.sparse_categorical_crossentropy(
        tf.constant([1]), tf.constant([[0.3, 0.7]])
    ),
)
t("topk", lambda: B.in_top_k(tf.constant([[0.1, 0.5, 0.4]]), tf.constant([2]), 2))
lab = tf.constant([[1, 2, 0], [3, 1, 2]])
p = tf.nn.softmax(tf.constant(r.randn(2, 6, 5).astype("f")))
t("ds", lambda: B.to_dense(B.ctc_label_dense_to_sparse(lab, tf.constant([2, 3]))))
t(
    "cost",
    lambda: B.ctc_batch_cost(lab, p, tf.constant([[6], [5]]), tf.constant([[2], [3]])),
)
t("dec", lambda: B.ctc_decode(p, tf.constant([6, 5])))
t("decb", lambda: B.ctc_decode(p, tf.constant([6, 5]), greedy=False, top_paths=2))
t("ba", lambda: B.bias_add(im, tf.constant([1.0, 2.0])))
t("bacf", lambda: B.bias_add(cf, tf.constant([1.0, 2.0]), "channels_first"))
t("tp", lambda: B.temporal_padding(x, (1, 2))[0])
t("sp2", lambda: B.spatial_2d_padding(im, ((1, 0), (0, 1))))
t("sp2c", lambda: B.spatial_2d_padding(cf, ((1, 0), (0, 1)), "channels_first"))
t("sp3", lambda: tf.reduce_sum(B.spatial_3d_padding(v3), [1, 2, 4]))
t("c1", lambda: B.conv1d(x, k1))
t("c1c", lambda: B.conv1d(x, k1, padding="causal", dilation_rate=2))
t("c2", lambda: B.conv2d(im, k2, strides=(2, 2), padding="same"))
t("c2f", lambda: B.conv2d(cf, k2, data_format="channels_first"))
t("c3", lambda: B.conv3d(v3, k3))
t("p2", lambda: B.pool2d(im, (2, 2), strides=(2, 2)))
t(
    "p2a",
    lambda: B.pool2d(
        cf, (2, 2), padding="same", pool_mode="avg", data_format="channels_first"
    ),
)
t("p3", lambda: B.pool3d(v3, (2, 2, 2)))
t("ri", lambda: B.resize_images(im, 2, 1, "channels_last"))
t("rib", lambda: B.resize_images(cf, 2, 2, "channels_first", "bilinear"))
for a, b, ax in [
    ((2, 3), (2, 3), None),
    ((2, 3, 4), (2, 4, 5), None),
    ((2, 3, 4), (2, 4), None),
    ((2, 4), (2, 4, 5), None),
    ((2, 3, 4), (2, 5, 4), (2, 2)),
    ((2, 3, 4), (2, 3, 5), 1),
    ((2, 3), (2, 3), 1),
    ((2, 3, 4, 5), (2, 5, 6), None),
    ((2, 3, 4), (2, 5, 4, 6), (2, 2)),
]:
    A = tf.constant(np.random.RandomState(1).randn(*a).astype("f"))
    C = tf.constant(np.random.RandomState(2).randn(*b).astype("f"))
    t(
        ("bd", a, b, ax),
        lambda: (lambda z: (z.shape.as_list(), tf.reduce_sum(z), z[0]))(
            B.batch_dot(A, C, ax) if ax is not None else B.batch_dot(A, C)
        ),
    )
t("shape", lambda: B.shape(x))
t("rb", lambda: B.random_bernoulli([3], 1.0))
t("hs", lambda: B.hard_sigmoid(x[0]))
t("rv", lambda: [len(B.random_uniform_variable((2, 3), 0, 1).shape)])
