"""Every optimizer a few steps; accumulated gradients; averages; clipping."""

import numpy as np
import tensorflow as tf

O = tf.keras.optimizers
kinds = {
    "SGD": O.SGD(0.1),
    "Nesterov": O.SGD(0.1, 0.9, True),
    "Adam": O.Adam(0.1),
    "AMS": O.Adam(0.1, amsgrad=True),
    "AdamW": O.AdamW(0.1, weight_decay=0.1),
    "RMSprop": O.RMSprop(0.1, momentum=0.5, centered=True),
    "Adagrad": O.Adagrad(0.5),
    "Adadelta": O.Adadelta(1.0),
    "Adamax": O.Adamax(0.1),
    "Nadam": O.Nadam(0.1),
    "Ftrl": O.Ftrl(0.5, l1_regularization_strength=0.01),
    "Clip": O.SGD(0.1, clipnorm=0.5),
    "Global": O.Adam(0.1, global_clipnorm=0.3),
    "Value": O.SGD(0.1, clipvalue=0.2),
    "Decay": O.SGD(O.schedules.ExponentialDecay(0.2, 2, 0.5)),
    "EMA": O.SGD(0.1, use_ema=True, ema_momentum=0.5),
}
for name, optimizer in kinds.items():
    dense, table = tf.Variable([1.0, -2.0]), tf.Variable([[1.0], [2.0], [3.0]])
    for step in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(dense**2 * [1.0, 2.0]) + tf.reduce_sum(
                tf.gather(table, [0, 1, 2, 2]) ** 2
            )
        weights = [dense, table]
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    print(
        name,
        np.round(dense.numpy(), 4),
        np.round(table.numpy().ravel(), 4),
        int(optimizer.iterations),
    )
total = [tf.zeros([2])]
v, plain = tf.Variable([1.0, 2.0]), O.SGD(0.1)
for i in range(4):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * (i + 1.0))
    total = [t + g for t, g in zip(total, tape.gradient(loss, [v]))]
    if i % 2 == 1:
        plain.apply_gradients(zip([t / 2 for t in total], [v]))
        total = [tf.zeros([2])]
print(np.round(v.numpy(), 4))
average = tf.train.ExponentialMovingAverage(0.5)
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    w = tf.compat.v1.get_variable("w", initializer=4.0)
    update = average.apply([w])
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(w.assign(8.0))
    session.run(update)
    print(session.run(average.average(w)))
print(
    O.get({"class_name": "Adam", "config": {"learning_rate": 0.5}}).get_config()[
        "learning_rate"
    ]
)
print(
    sorted(
        k
        for k in O.Adam(0.1).get_config()
        if k in ("beta_1", "epsilon", "amsgrad", "name")
    )
)
print(type(O.get("rmsprop")).__name__)
for f in (
    O.schedules.PolynomialDecay(1.0, 10, 0.1, power=2.0),
    O.schedules.InverseTimeDecay(1.0, 2, 0.5),
    O.schedules.CosineDecayRestarts(1.0, 4),
):
    print([round(float(f(i)), 4) for i in (0, 3, 7, 12)])
