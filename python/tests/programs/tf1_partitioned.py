"""TensorFlow 1's way: variables in parts, their saver, and shapes that savers check."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
folder = tempfile.mkdtemp()
path = os.path.join(folder, "model")


def tower(x, partitioner, reuse=None):
    with tf.variable_scope("tower", partitioner=partitioner, reuse=reuse):
        table = tf.get_variable(
            "table",
            [10, 4],
            initializer=tf.random_normal_initializer(seed=3),
            regularizer=tf.keras.regularizers.l2(0.1),
        )
        bias = tf.get_variable("bias", [4], initializer=tf.constant_initializer(0.5))
        rows = tf.nn.embedding_lookup(table, x, partition_strategy="div")
        return tf.add(rows, bias, name="out"), table


ids = tf.placeholder(tf.int64, [None], name="ids")
out, table = tower(ids, tf.fixed_size_partitioner(3))
again, _ = tower(ids, tf.fixed_size_partitioner(3), reuse=True)
print(type(table).__name__, table.shape, len(list(table)))
for v in tf.global_variables():
    info = v._get_save_slice_info()
    print(v.op.name, v.shape, info.var_offset, info.full_shape, info.spec)
loss = tf.reduce_sum(tf.square(out)) + tf.losses.get_regularization_loss()
optimizer = tf.train.AdagradOptimizer(0.1)
grads = optimizer.compute_gradients(loss, tf.trainable_variables())
print([type(g).__name__ for g, _ in grads])
train = optimizer.apply_gradients(grads)
saver = tf.train.Saver(sharded=False)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        _, value = sess.run([train, loss], {ids: [0, 3, 9]})
        print("%.4f" % value)
    full = sess.run(tf.convert_to_tensor(table))
    print(full.shape, np.allclose(*sess.run([out, again], {ids: [1, 4]})))
    saver.save(sess, path, global_step=3)
    print([v.op.name for v in optimizer.variables()])
for name, shape in tf.train.list_variables(path + "-3"):
    print(name, shape)
print(np.allclose(tf.train.load_variable(path + "-3", "tower/table"), full))

with tf.Graph().as_default(), tf.Session() as sess:
    whole = tf.get_variable("tower/table", [10, 4])
    tf.train.Saver().restore(sess, path + "-3")
    print(np.allclose(sess.run(whole), full))
with tf.Graph().as_default(), tf.Session() as sess:
    ids = tf.constant([0, 9], tf.int64)
    out, table = tower(ids, tf.fixed_size_partitioner(2, axis=0))
    print([v.op.name for v in table], [v.shape.as_list() for v in table])
    saver = tf.train.Saver({"tower/table": table})
    saver.restore(sess, path + "-3")
    print(np.allclose(np.concatenate(sess.run(list(table)), 0), full))
    print([str(v)[2:12] for v in sess.run(tf.report_uninitialized_variables())])
with tf.Graph().as_default(), tf.Session() as sess:
    tf.get_variable("tower/table", [9, 4])
    try:
        tf.train.Saver().restore(sess, path + "-3")
    except tf.errors.InvalidArgumentError as error:
        print("Assign requires shapes of both tensors to match" in error.message)
with tf.Graph().as_default(), tf.Session() as sess:
    cut = tf.min_max_variable_partitioner(2, min_slice_size=16)
    other = tf.get_variable("other", [4, 4], partitioner=cut)
    b = tf.get_variable("renamed/bias", [4])
    tf.train.init_from_checkpoint(path + "-3", {"tower/bias": b})
    sess.run(tf.global_variables_initializer())
    print(sess.run(b).round(3), len(list(other)))
with tf.Graph().as_default(), tf.Session() as sess:
    a, b = (tf.get_variable(n, initializer=float(i)) for i, n in enumerate("ab"))
    with tf.device("/cpu:0"):
        saver = tf.train.Saver([a, b], sharded=True, max_to_keep=1)
    sess.run(tf.global_variables_initializer())
    os.mkdir(os.path.join(folder, "s"))
    for step in (1, 2):
        saver.save(sess, os.path.join(folder, "s", "x"), step, write_meta_graph=False)
    print(
        sorted(os.listdir(os.path.join(folder, "s"))),
        [os.path.basename(p) for p in saver.last_checkpoints],
    )
