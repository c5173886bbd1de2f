"""Shared layers, two inputs, two outputs, class weights and weights of samples."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(4)
L = tf.keras.layers
base = tf.keras.Sequential([L.Dense(6, activation="relu"), L.Dense(3)], name="base")
left, right = tf.keras.Input((4,), name="left"), tf.keras.Input((4,), name="right")
a, b = base(left), base(right)
distance = L.Lambda(lambda t: tf.reduce_sum(tf.square(t[0] - t[1]), -1, keepdims=True))(
    [a, b]
)
same = L.Dense(1, activation="sigmoid", name="same")(distance)
kind = L.Dense(3, activation="softmax", name="kind")(L.Concatenate()([a, b]))
model = tf.keras.Model([left, right], [same, kind])
model.compile(
    "adam",
    {"same": "binary_crossentropy", "kind": "sparse_categorical_crossentropy"},
    metrics={
        "same": ["accuracy", tf.keras.metrics.AUC(name="auc")],
        "kind": "accuracy",
    },
    loss_weights=[1.0, 0.5],
)
rng = np.random.default_rng(6)
x, y = rng.normal(size=(2, 48, 4)).astype("float32")
y[::2] = x[::2] + 0.05
targets = {
    "same": (np.arange(48) % 2 == 0).astype("float32"),
    "kind": rng.integers(0, 3, 48),
}
logs = model.fit(
    {"left": x, "right": y}, targets, epochs=3, batch_size=16, verbose=0, shuffle=False
).history
for name in logs:
    print(name, np.round(logs[name], 3).tolist())
print(model.metrics_names)
weights = {"same": np.ones(48), "kind": np.linspace(0, 1, 48)}
print(
    np.round(
        model.evaluate(
            [x, y],
            [targets["same"], targets["kind"]],
            sample_weight=[weights["same"], weights["kind"]],
            verbose=0,
        ),
        3,
    )
)
single = tf.keras.Sequential([L.Dense(3, activation="softmax")])
single.compile("sgd", "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
print(
    np.round(
        single.fit(
            x,
            targets["kind"],
            class_weight={0: 1.0, 1: 2.0, 2: 0.5},
            epochs=2,
            verbose=0,
            shuffle=False,
        ).history["loss"],
        3,
    )
)
