"""TensorFlow 1's way: a generator and a discriminator, an optimizer each for its var_list."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.reset_default_graph()
tf.set_random_seed(7)


def xavier_init(size):
    return tf.random_normal(shape=size, stddev=1.0 / tf.sqrt(size[0] / 2.0))


def generator(z, reuse=False):
    with tf.variable_scope("generator", reuse=reuse):
        h1 = tf.layers.dense(z, 16, activation=tf.nn.leaky_relu)
        h2 = tf.layers.dense(h1, 16, activation=tf.nn.leaky_relu)
        return tf.layers.dense(h2, 2)


def discriminator(x, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        h1 = tf.layers.dense(x, 16, activation=tf.nn.leaky_relu)
        h2 = tf.layers.dense(h1, 2, name="features")
        return tf.layers.dense(h2, 1), h2


X = tf.placeholder(tf.float32, [None, 2])
Z = tf.placeholder(tf.float32, [None, 3])
clip_W = tf.Variable(xavier_init([3, 4]), name="unused", trainable=False)
G_sample = generator(Z)
r_logits, r_rep = discriminator(X)
f_logits, g_rep = discriminator(G_sample, reuse=True)
disc_loss = tf.reduce_mean(
    tf.nn.sigmoid_cross_entropy_with_logits(
        logits=r_logits, labels=tf.ones_like(r_logits)
    )
    + tf.nn.sigmoid_cross_entropy_with_logits(
        logits=f_logits, labels=tf.zeros_like(f_logits)
    )
)
gen_loss = tf.reduce_mean(
    tf.nn.sigmoid_cross_entropy_with_logits(
        logits=f_logits, labels=tf.ones_like(f_logits)
    )
)
gen_vars = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="generator")
disc_vars = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="discriminator")
gen_step = tf.train.RMSPropOptimizer(learning_rate=0.002).minimize(
    gen_loss, var_list=gen_vars
)
disc_step = tf.train.RMSPropOptimizer(learning_rate=0.002).minimize(
    disc_loss, var_list=disc_vars
)
clip = [v.assign(tf.clip_by_value(v, -0.9, 0.9)) for v in disc_vars]

draw = np.random.RandomState(1)


def sample_data(n):
    x = 4 * (draw.random_sample((n, 1)) - 0.5)
    return np.hstack([x, 0.5 * x * x])


print([v.name for v in gen_vars], len(disc_vars))
print([v.op.name for v in tf.global_variables() if "RMSProp" in v.op.name][:9])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(np.round(sess.run(clip_W), 4))
    print(np.round(sess.run(G_sample, {Z: np.eye(3)}), 4))
    for i in range(41):
        x_batch = sample_data(32)
        z_batch = draw.uniform(-1.0, 1.0, size=[32, 3])
        for _ in range(2):
            _, dloss = sess.run([disc_step, disc_loss], {X: x_batch, Z: z_batch})
        sess.run(clip)
        rrep, grep = sess.run([r_rep, g_rep], {X: x_batch, Z: z_batch})
        _, gloss = sess.run([gen_step, gen_loss], {Z: z_batch})
        if i % 10 == 0:
            print("%d\t D %.4f\t G %.4f" % (i, dloss, gloss))
            print(np.round(rrep.mean(0) - grep.mean(0), 3))
    print(np.round(sess.run(G_sample, {Z: np.eye(3)}), 3))
    print(max(abs(w).max() for w in sess.run(disc_vars)) <= 0.92)
