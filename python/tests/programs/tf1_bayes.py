"""TensorFlow 1's way: regression with tf.distributions, a posterior found by its bound."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(6)
ds = tf.distributions
draw = np.random.RandomState(0)
x_data = draw.normal(size=(60, 2)).astype("f4")
y_data = (x_data @ [1.5, -0.7] + 0.3 + draw.normal(size=60) * 0.2).astype("f4")
x = tf.placeholder(tf.float32, [None, 2])
y = tf.placeholder(tf.float32, [None])
w_loc = tf.get_variable("w/loc", [2], initializer=tf.zeros_initializer())
w_scale = tf.nn.softplus(
    tf.get_variable("w/scale", [2], initializer=tf.constant_initializer(-2.0))
)
b_loc = tf.get_variable("b/loc", [], initializer=tf.zeros_initializer())
qw = ds.Normal(loc=w_loc, scale=w_scale, name="qw")
qb = ds.Normal(loc=b_loc, scale=0.1)
pw = ds.Normal(loc=tf.zeros(2), scale=tf.ones(2))
w = qw.sample(4, seed=1)
b = qb.sample(4, seed=2)
mean = tf.matmul(w, x, transpose_b=True) + b[:, None]
likelihood = ds.Normal(loc=mean, scale=0.2)
log_p = tf.reduce_sum(likelihood.log_prob(y[None]), 1)
kl = tf.reduce_sum(ds.kl_divergence(qw, pw)) + ds.kl_divergence(qb, ds.Normal(0.0, 1.0))
loss = kl - tf.reduce_mean(log_p)
rate = tf.train.polynomial_decay(0.1, tf.train.get_or_create_global_step(), 100, 0.01)
train = tf.train.AdamOptimizer(rate).minimize(loss, tf.train.get_global_step())
feed = {x: x_data, y: y_data}
print(qw, qw.batch_shape, qw.event_shape, w.shape, qw.name)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(w).round(4).tolist())
    for i in range(81):
        _, value = sess.run([train, loss], feed)
        if i % 20 == 0:
            print(i, "%.3f" % value)
    print(
        sess.run(w_loc).round(2),
        "%.2f" % sess.run(b_loc),
        (sess.run(w_scale) < 0.12).all(),
    )
    gamma = ds.Gamma(concentration=3.0, rate=2.0)
    beta = ds.Beta([2.0, 3.0], 4.0)
    categorical = ds.Categorical(logits=[[0.1, 0.5, 0.4]])
    bernoulli = ds.Bernoulli(probs=[0.2, 0.7])
    dirichlet = ds.Dirichlet([1.0, 2.0, 3.0])
    print(*sess.run([gamma.mean(), gamma.log_prob(1.5), gamma.entropy()]))
    print(*sess.run([beta.mean(), beta.log_prob([0.3, 0.4])]))
    print(
        *sess.run(
            [categorical.log_prob([2]), categorical.entropy(), categorical.mode()]
        )
    )
    print(*sess.run([bernoulli.log_prob([1, 0]), bernoulli.variance()]))
    print(*sess.run([dirichlet.log_prob([0.2, 0.3, 0.5]), dirichlet.mean()]))
    student, laplace = ds.StudentT(4.0, 0.0, 1.0), ds.Laplace(0.0, 2.0)
    print(*sess.run([student.log_prob(1.0), laplace.cdf(1.0), laplace.stddev()]))
    uniform, exponential = ds.Uniform(1.0, 3.0), ds.Exponential(2.0)
    print(*sess.run([uniform.entropy(), uniform.prob(2.5), exponential.log_prob(0.5)]))
    counts = ds.Multinomial(4.0, probs=[0.2, 0.3, 0.5])
    print(*sess.run([counts.log_prob([1.0, 1.0, 2.0]), counts.covariance()[0]]))
    samples = sess.run(
        [d.sample(3, seed=7) for d in (gamma, bernoulli, uniform, exponential, laplace)]
    )
    print(*(s.round(3).tolist() for s in samples))
    print(
        sess.run(categorical.sample(6, seed=3)).ravel(),
        ds.kl_divergence(bernoulli, ds.Bernoulli(0.5 * tf.ones(2))).eval(),
    )
    print(
        type(gamma.reparameterization_type).__name__, gamma.copy(rate=1.0).mean().eval()
    )
