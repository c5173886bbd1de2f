"""Rows of different lengths, and matrices that are mostly zeros."""

import numpy as np
import tensorflow as tf

r = tf.ragged.constant([[3, 1], [], [4, 1, 5]])
print(r, r.shape, r.row_lengths().numpy(), r.to_tensor(-1).numpy().tolist())
print(tf.reduce_sum(r, 1).numpy(), tf.concat([r, r], 1), r[2, 1:].numpy(), r[:, :1])
print(
    (r * 2).to_list(),
    tf.gather(r, [2, 0]).to_list(),
    tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 1, 3]),
)
words = tf.strings.split(["a bc", "d"])
print(
    words,
    words.flat_values.numpy(),
    tf.strings.reduce_join(words.to_tensor(), 1, separator="-").numpy(),
)
print(
    tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]),
    tf.ragged.range([2, 0, 3]),
)
print(
    tf.map_fn(
        lambda row: tf.reduce_max(tf.concat([row, [0]], 0)),
        r,
        fn_output_signature=tf.int32,
    ).numpy()
)
s = tf.sparse.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])
print(tf.sparse.to_dense(s).numpy().tolist(), tf.sparse.reduce_sum(s, 1).numpy())
print(tf.sparse.sparse_dense_matmul(s, tf.ones([4, 2])).numpy().tolist())
print(
    tf.sparse.to_dense(tf.sparse.add(s, s)).numpy()[2].tolist(),
    tf.sparse.transpose(s).dense_shape.numpy(),
)
print(
    tf.sparse.to_dense(tf.sparse.concat(0, [s, s])).shape,
    tf.sparse.slice(s, [1, 0], [2, 2]).values.numpy(),
)
print(
    tf.nn.embedding_lookup_sparse(
        tf.constant(np.eye(4), tf.float32),
        tf.sparse.from_dense([[1, 2, 0], [3, 0, 0]]),
        None,
        combiner="sum",
    )
    .numpy()
    .tolist()
)
data = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4, 5, 6]]))
print(
    [x.numpy().tolist() for x in data],
    next(iter(data.ragged_batch(2))) if hasattr(data, "ragged_batch") else "",
)
with tf.GradientTape() as tape:
    v = tf.Variable(tf.ones([4, 2]))
    loss = tf.reduce_sum(tf.gather(v, [1, 1, 3]) ** 2)
g = tape.gradient(loss, v)
print(type(g).__name__, g.indices.numpy(), tf.convert_to_tensor(g).numpy()[:, 0])
tf.keras.optimizers.SGD(0.5).apply_gradients([(g, v)])
print(v.numpy()[:, 0])
