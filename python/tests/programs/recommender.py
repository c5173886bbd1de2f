"""Two towers over strings, with sampled negatives within the batch."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
L = tf.keras.layers
users, films = [f"u{i}" for i in range(6)], [f"f{i}" for i in range(9)]
rng = np.random.default_rng(2)
seen_u = rng.integers(0, 6, 60)
seen_f = (seen_u * 3 // 2 + rng.integers(0, 2, 60)) % 9


def tower(names):
    return tf.keras.Sequential(
        [
            L.StringLookup(vocabulary=names, mask_token=None),
            L.Embedding(len(names) + 1, 4),
        ]
    )


class Retrieval(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.user, self.film = tower(users), tower(films)
        self.hits = tf.keras.metrics.SparseTopKCategoricalAccuracy(k=3, name="top3")

    def call(self, batch):
        return tf.matmul(
            self.user(batch["user"]), self.film(batch["film"]), transpose_b=True
        )

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            scores = self(batch, training=True)
            truth = tf.range(tf.shape(scores)[0])
            loss = tf.reduce_sum(
                tf.nn.sparse_softmax_cross_entropy_with_logits(truth, scores)
            )
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        self.hits.update_state(truth, scores)
        return {"loss": loss, self.hits.name: self.hits.result()}


data = tf.data.Dataset.from_tensor_slices(
    {"user": [users[i] for i in seen_u], "film": [films[i] for i in seen_f]}
)
model = Retrieval()
model.compile(tf.keras.optimizers.Adagrad(0.3))
logs = model.fit(data.batch(12), epochs=4, verbose=0).history
print(np.round(logs["loss"], 3), np.round(logs["top3"], 3))
print(model.user(tf.constant(["u1", "nobody"])).shape, len(model.trainable_variables))
index = model.film(tf.constant(films))
scores, best = tf.math.top_k(
    tf.matmul(model.user(tf.constant(["u3"])), index, transpose_b=True), 3
)
print(scores.shape, best.shape, list(map(str, model.film.layers[0].get_vocabulary())))
rating = tf.keras.Sequential([L.Dense(8, activation="relu"), L.Dense(1)])
rating.compile(
    "adam",
    tf.keras.losses.MeanSquaredError(),
    [tf.keras.metrics.RootMeanSquaredError()],
)
pairs = np.concatenate(
    [model.user(data.batch(60).get_single_element()["user"]), index.numpy()[seen_f]], 1
)
print(
    {
        k: np.round(v, 3).tolist()
        for k, v in rating.fit(
            pairs,
            (seen_u % 3)[:, None].astype("float32"),
            epochs=2,
            verbose=0,
            shuffle=False,
        ).history.items()
    }
)
