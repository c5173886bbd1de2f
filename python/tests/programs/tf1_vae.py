"""TensorFlow 1's way: a variational autoencoder as a class with methods and a session."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)


def xavier_init(fan_in, fan_out, constant=1):
    low = -constant * np.sqrt(6.0 / (fan_in + fan_out))
    high = constant * np.sqrt(6.0 / (fan_in + fan_out))
    return tf.random_uniform((fan_in, fan_out), low, high, dtype=tf.float32)


class VariationalAutoencoder:
    def __init__(self, sizes, transfer_fct=tf.nn.softplus, rate=0.01, batch_size=20):
        self.sizes, self.transfer_fct = sizes, transfer_fct
        self.batch_size = batch_size
        self.x = tf.placeholder(tf.float32, [None, sizes["n_input"]])
        self._create_network()
        self._create_loss_optimizer(rate)
        self.sess = tf.InteractiveSession()
        self.sess.run(tf.global_variables_initializer())

    def _layer(self, n_in, n_out, name):
        return (
            tf.Variable(xavier_init(n_in, n_out), name=name + "_w"),
            tf.Variable(tf.zeros([n_out], dtype=tf.float32), name=name + "_b"),
        )

    def _create_network(self):
        s = self.sizes
        with tf.name_scope("recognition"):
            w, b = self._layer(s["n_input"], s["n_hidden"], "h1")
            layer = self.transfer_fct(tf.add(tf.matmul(self.x, w), b))
            w, b = self._layer(s["n_hidden"], s["n_z"], "mean")
            self.z_mean = tf.add(tf.matmul(layer, w), b)
            w, b = self._layer(s["n_hidden"], s["n_z"], "log_sigma")
            self.z_log_sigma_sq = tf.add(tf.matmul(layer, w), b)
        eps = tf.random_normal((self.batch_size, s["n_z"]), 0, 1, dtype=tf.float32)
        self.z = tf.add(
            self.z_mean, tf.multiply(tf.sqrt(tf.exp(self.z_log_sigma_sq)), eps)
        )
        with tf.name_scope("generator"):
            w, b = self._layer(s["n_z"], s["n_hidden"], "h1")
            layer = self.transfer_fct(tf.add(tf.matmul(self.z, w), b))
            w, b = self._layer(s["n_hidden"], s["n_input"], "out")
            self.x_reconstr_mean = tf.nn.sigmoid(tf.add(tf.matmul(layer, w), b))

    def _create_loss_optimizer(self, rate):
        reconstr_loss = -tf.reduce_sum(
            self.x * tf.log(1e-10 + self.x_reconstr_mean)
            + (1 - self.x) * tf.log(1e-10 + 1 - self.x_reconstr_mean),
            1,
        )
        latent_loss = -0.5 * tf.reduce_sum(
            1
            + self.z_log_sigma_sq
            - tf.square(self.z_mean)
            - tf.exp(self.z_log_sigma_sq),
            1,
        )
        self.cost = tf.reduce_mean(reconstr_loss + latent_loss)
        self.optimizer = tf.train.AdamOptimizer(learning_rate=rate).minimize(self.cost)

    def partial_fit(self, X):
        _, cost = self.sess.run((self.optimizer, self.cost), feed_dict={self.x: X})
        return cost

    def transform(self, X):
        return self.sess.run(self.z_mean, feed_dict={self.x: X})

    def generate(self, z_mu):
        return self.sess.run(self.x_reconstr_mean, feed_dict={self.z: z_mu})


draw = np.random.RandomState(0)
patterns = draw.rand(3, 24) > 0.5
data = patterns[draw.randint(0, 3, 200)] ^ (draw.rand(200, 24) > 0.95)
vae = VariationalAutoencoder(dict(n_input=24, n_hidden=12, n_z=2))
print([v.name for v in tf.trainable_variables()])
print(np.round(vae.transform(data[:3]), 4))
for epoch in range(6):
    cost = 0.0
    for i in range(10):
        cost += vae.partial_fit(data[20 * i : 20 * i + 20]) / 10
    print("Epoch: %04d cost= %.4f" % (epoch + 1, cost))
print(np.round(vae.generate(np.zeros([20, 2]))[0, :6], 3))
path = os.path.join(tempfile.mkdtemp(), "vae.ckpt")
tf.train.Saver(tf.trainable_variables()).save(vae.sess, path)
reader = tf.train.NewCheckpointReader(path)
print(sorted(reader.get_variable_to_shape_map().items())[:3])
bias = vae.sess.run("recognition/mean_b:0")
print(np.allclose(reader.get_tensor("recognition/mean_b"), bias))
vae.sess.close()
