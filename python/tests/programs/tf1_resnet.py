"""TensorFlow 1's way: residual blocks, tf.layers, and updates that training waits for."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
_BATCH_NORM_DECAY, _BATCH_NORM_EPSILON = 0.9, 1e-5


def batch_norm(inputs, training, data_format):
    return tf.layers.batch_normalization(
        inputs=inputs,
        axis=1 if data_format == "channels_first" else 3,
        momentum=_BATCH_NORM_DECAY,
        epsilon=_BATCH_NORM_EPSILON,
        center=True,
        scale=True,
        training=training,
        fused=True,
    )


def fixed_padding(inputs, kernel_size):
    total = kernel_size - 1
    begin = total // 2
    return tf.pad(
        inputs, [[0, 0], [begin, total - begin], [begin, total - begin], [0, 0]]
    )


def conv2d_fixed_padding(inputs, filters, kernel_size, strides):
    if strides > 1:
        inputs = fixed_padding(inputs, kernel_size)
    return tf.layers.conv2d(
        inputs=inputs,
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=("SAME" if strides == 1 else "VALID"),
        use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(seed=6),
    )


def building_block(inputs, filters, training, projection, strides):
    shortcut = inputs
    if projection is not None:
        shortcut = batch_norm(projection(inputs), training, "channels_last")
    inputs = conv2d_fixed_padding(inputs, filters, 3, strides)
    inputs = tf.nn.relu(batch_norm(inputs, training, "channels_last"))
    inputs = conv2d_fixed_padding(inputs, filters, 3, 1)
    inputs = batch_norm(inputs, training, "channels_last")
    inputs += shortcut
    return tf.nn.relu(inputs)


def block_layer(inputs, filters, blocks, strides, training, name):
    def projection(x):
        return conv2d_fixed_padding(x, filters, 1, strides)

    inputs = building_block(inputs, filters, training, projection, strides)
    for _ in range(1, blocks):
        inputs = building_block(inputs, filters, training, None, 1)
    return tf.identity(inputs, name)


def model(inputs, training):
    with tf.variable_scope("resnet_model"):
        inputs = conv2d_fixed_padding(inputs, 4, 3, 1)
        inputs = tf.identity(inputs, "initial_conv")
        for i, filters in enumerate((4, 8)):
            inputs = block_layer(
                inputs, filters, 2, 1 + i, training, "block_layer%d" % (i + 1)
            )
        inputs = tf.reduce_mean(inputs, [1, 2], keepdims=True)
        inputs = tf.identity(inputs, "final_reduce_mean")
        inputs = tf.squeeze(inputs, [1, 2])
        inputs = tf.layers.dense(
            inputs, 3, kernel_initializer=tf.glorot_uniform_initializer(seed=7)
        )
        return tf.identity(inputs, "final_dense")


features = tf.placeholder(tf.float32, [None, 8, 8, 3], name="features")
labels = tf.placeholder(tf.int32, [None], name="labels")
is_training = tf.placeholder(tf.bool, [], name="is_training")
logits = model(features, is_training)
cross_entropy = tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels)
tf.identity(cross_entropy, name="cross_entropy")
l2_loss = 1e-3 * tf.add_n(
    [
        tf.nn.l2_loss(tf.cast(v, tf.float32))
        for v in tf.trainable_variables()
        if "batch_normalization" not in v.name
    ]
)
loss = cross_entropy + l2_loss
global_step = tf.train.get_or_create_global_step()
learning_rate = tf.train.piecewise_constant(global_step, [4, 8], [0.1, 0.05, 0.01])
optimizer = tf.train.MomentumOptimizer(learning_rate=learning_rate, momentum=0.9)
grad_vars = optimizer.compute_gradients(loss)
minimize_op = optimizer.apply_gradients(grad_vars, global_step)
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
train_op = tf.group(minimize_op, update_ops)
print(len(tf.trainable_variables()), len(update_ops), len(grad_vars))
for v in tf.global_variables()[:9]:
    print(v.name, v.shape)
draw = np.random.RandomState(0)
y = draw.randint(0, 3, 24)
x = draw.rand(24, 8, 8, 3) + np.eye(3)[y][:, None, None]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {features: x, labels: y, is_training: True}
    for i in range(10):
        _, value, rate = sess.run([train_op, cross_entropy, learning_rate], feed)
        if i % 3 == 0:
            print(i, "%.4f" % value, "%.3f" % rate)
    feed[is_training] = False
    value = sess.run(cross_entropy, feed)
    print("%.3f" % value, sess.run(global_step))
    print(sess.run("resnet_model/batch_normalization/moving_mean:0").round(4))
    block = sess.graph.get_tensor_by_name("resnet_model/block_layer2:0")
    print(block.shape, sess.run(block, feed).shape)
