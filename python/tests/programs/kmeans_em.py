"""Clusters by k-means and by a mixture, in while loops of the graph."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
points = np.concatenate(
    [rng.normal(c, 0.3, (20, 2)) for c in ((0, 0), (3, 0), (0, 3))]
).astype("float32")


@tf.function
def kmeans(x, centers):
    def assign(centers):
        return tf.argmin(tf.reduce_sum((x[:, None] - centers[None]) ** 2, -1), 1)

    def body(i, centers, moved):
        new = tf.math.unsorted_segment_mean(x, assign(centers), 3)
        return i + 1, new, tf.reduce_max(tf.abs(new - centers))

    i, centers, _ = tf.while_loop(
        lambda i, c, moved: tf.logical_and(i < 20, moved > 1e-4),
        body,
        (0, centers, tf.constant(1.0)),
    )
    return i, centers, assign(centers)


steps, centers, where = kmeans(points, tf.constant(points[[0, 25, 45]]))
print(
    steps.numpy(),
    np.round(centers.numpy(), 3).tolist(),
    tf.math.bincount(tf.cast(where, tf.int32)).numpy(),
)
means, spread, share = tf.identity(centers), tf.ones([3]), tf.fill([3], 1 / 3)
for _ in range(5):
    distance = tf.reduce_sum((points[:, None] - means[None]) ** 2, -1)
    logs = tf.math.log(share) - distance / (2 * spread) - tf.math.log(spread)
    r = tf.nn.softmax(logs)
    total = tf.reduce_sum(r, 0)
    means = tf.matmul(r, points, transpose_a=True) / total[:, None]
    spread = tf.reduce_sum(r * distance, 0) / (2 * total)
    share = total / 60
print(np.round(spread.numpy(), 4), "%.4f" % tf.reduce_sum(tf.reduce_logsumexp(logs, 1)))
parts = tf.dynamic_partition(points, tf.cast(where, tf.int32), 3)
print([p.shape[0] for p in parts], np.round(tf.math.reduce_std(parts[1], 0).numpy(), 3))
print(
    tf.unique_with_counts(where).count.numpy(),
    tf.sort(tf.math.top_k(points[:, 0], 3).indices).numpy(),
)
print(
    tf.map_fn(lambda c: tf.norm(c), centers).numpy().round(3),
    tf.scan(lambda a, b: a + b, tf.range(5)).numpy(),
)
