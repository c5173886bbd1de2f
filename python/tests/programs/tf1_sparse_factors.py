"""TensorFlow 1's way: factors of a matrix and a logistic regression, sparse placeholders fed."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
draw = np.random.RandomState(0)
USERS, ITEMS, RANK = 8, 6, 3
truth = draw.rand(USERS, 2) @ draw.rand(2, ITEMS)
where = np.argwhere(draw.rand(USERS, ITEMS) < 0.6)
ratings = truth[where[:, 0], where[:, 1]]

with tf.Graph().as_default():
    seen = tf.sparse_placeholder(tf.float32, shape=[USERS, ITEMS], name="ratings")
    init = tf.random_uniform_initializer(0.0, 0.5, seed=1)
    u = tf.get_variable("user_factors", [USERS, RANK], initializer=init)
    v = tf.get_variable("item_factors", [ITEMS, RANK], initializer=init)
    rows, columns = seen.indices[:, 0], seen.indices[:, 1]
    guess = tf.reduce_sum(tf.gather(u, rows) * tf.gather(v, columns), 1)
    error = tf.SparseTensor(seen.indices, seen.values - guess, seen.dense_shape)
    loss = tf.reduce_mean(tf.square(error.values)) + 0.01 * (
        tf.nn.l2_loss(u) + tf.nn.l2_loss(v)
    )
    worst = tf.sparse_reduce_max(
        tf.SparseTensor(error.indices, tf.abs(error.values), error.dense_shape), axis=1
    )
    gradients = tf.gradients(loss, [u, v])
    print([type(g).__name__ for g in gradients])
    optimizer = tf.train.AdamOptimizer(0.05)
    train = optimizer.minimize(loss)
    filled = tf.sparse_tensor_to_dense(seen, default_value=-1.0, validate_indices=False)
    totals = tf.sparse_reduce_sum(seen, axis=1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        value = tf.SparseTensorValue(where, ratings, [USERS, ITEMS])
        for i in range(41):
            _, told = sess.run([train, loss], {seen: value})
            if i % 10 == 0:
                print(i, "%.5f" % told)
        print(sess.run(worst, {seen: value}).round(3))
        print(sess.run(filled, {seen: (where, ratings, [USERS, ITEMS])})[0].round(2))
        print(sess.run(totals, {seen: value}).round(3)[:3])
        back = sess.run(seen, {seen: value})
        print(type(back).__name__, back.indices.dtype, back.values.shape)

with tf.Graph().as_default():
    x = tf.sparse_placeholder(tf.float32, name="x")
    ids = tf.sparse_placeholder(tf.int64, name="ids")
    y = tf.placeholder(tf.float32, [None], name="y")
    w = tf.get_variable("w", [20, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    table = tf.get_variable("table", [10, 1], initializer=tf.ones_initializer())
    logits = tf.sparse_tensor_dense_matmul(x, w) + b
    logits += tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    logits = tf.squeeze(logits, 1)
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
    )
    train = tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.001).minimize(loss)
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(y > 0.5, logits > 0)))
    dense = draw.rand(30, 20) * (draw.rand(30, 20) < 0.2)
    labels = (dense[:, :10].sum(1) > dense[:, 10:].sum(1)).astype("f4")
    indices = np.argwhere(dense)
    words = np.argwhere(np.arange(3) < draw.randint(1, 4, (30, 1)))
    feed = {
        x: tf.SparseTensorValue(indices, dense[tuple(indices.T)], dense.shape),
        ids: tf.SparseTensorValue(words, draw.randint(0, 10, len(words)), (30, 3)),
        y: labels,
    }
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(16):
            _, told = sess.run([train, loss], feed)
            if i % 5 == 0:
                print(i, "%.4f" % told)
        print("%.3f" % sess.run(accuracy, feed), (sess.run(w) == 0).sum())
        print([v.op.name for v in tf.global_variables()])
        split = tf.string_split(["a b c", "", "d e"])
        print(
            sess.run(split).values,
            sess.run(tf.sparse_to_dense([[0, 1], [1, 2]], [2, 3], [5, 6])).tolist(),
        )
