"""Activations, losses and a layer of Keras 3 by many calls."""

import numpy as np
import tensorflow as tf

K = tf.keras
A = K.activations
x = tf.constant(
    [
        [-7.0, -2.0, -1.0, -0.5, -0.2, 0.0, 0.3, 0.5],
        [0.9, 1.0, 1.5, 2.9, 3.0, 6.0, 7.0, -3.2],
    ]
)


def t(name, f):
    try:
        print(name, np.round(np.asarray(f()), 5).tolist())
    except Exception as e:
        print(name, type(e).__name__, str(e)[:100])


for n in "leaky_relu relu6 celu glu log_softmax log_sigmoid hard_silu hard_swish hard_tanh hard_shrink soft_shrink tanh_shrink squareplus sparse_plus sparse_sigmoid silu".split():
    t(n, lambda: getattr(A, n)(x))
    t(n + " get", lambda: A.get(n)(x))
t("thr", lambda: A.threshold(x, 0.4, 9.0))
t("celu2", lambda: A.celu(x, 2.0))
t("glu0", lambda: A.glu(x, 0))
t("leaky", lambda: A.leaky_relu(x, 0.1))
t("sq", lambda: A.squareplus(x, 1.0))
t("hs", lambda: A.hard_shrink(x, 1.0))
t("ss", lambda: A.soft_shrink(x, 1.0))
y = np.array([[1.0, 0, 1], [0, 1, 1]], "f")
p = np.array([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]], "f")
L = K.losses
t("dice", lambda: L.Dice()(y, p))
t("dice1", lambda: L.Dice(axis=1)(y, p))
t("dicen", lambda: L.Dice(axis=1, reduction="none")(y, p))
t("tv", lambda: L.Tversky(alpha=0.3, beta=0.9)(y, p))
t("tv1", lambda: L.Tversky(alpha=0.3, beta=0.9, axis=(1,), reduction="none")(y, p))
t("get", lambda: L.get("dice")(y, p))
t("fn", lambda: L.tversky(y, p, alpha=0.2))
lg = np.random.RandomState(0).randn(2, 6, 5).astype("f")
lab = np.array([[1, 2, 0], [3, 3, 1]])
t("ctc", lambda: L.CTC()(lab, lg))
t("ctcn", lambda: L.CTC(reduction="none")(lab, lg))
l = K.layers.RMSNormalization()
t("rms", lambda: l(x))
print(len(l.weights), l.weights[0].shape)
l = K.layers.RMSNormalization(axis=[1, 2])
t("rms12", lambda: l(tf.reshape(x, (2, 2, 4))))
t(
    "dense",
    lambda: K.layers.Dense(2, activation="hard_shrink", kernel_initializer="ones")(x),
)
