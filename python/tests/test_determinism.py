"""The same bits with 1, 2 and 4 threads."""

import os
import subprocess
import sys

# Trains an MLP and a convolution for three traced steps on sizes that are cut
# into several pieces, and prints a digest of every variable and gradient.
_PROGRAM = """
import hashlib
import numpy as np
import headrace as tf

rng = np.random.default_rng(1)
def draw(*shape):
    return tf.constant(rng.normal(0, 0.1, shape).astype("f4"))

images = draw(32, 24, 24, 3)
labels = tf.constant(rng.integers(0, 10, 32).astype("i4"))
kernel, bias = tf.Variable(draw(3, 3, 3, 16)), tf.Variable(draw(16))
w1, w2 = tf.Variable(draw(12 * 12 * 16, 128)), tf.Variable(draw(128, 10))
variables = [kernel, bias, w1, w2]

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        h = tf.nn.conv2d(x, kernel, strides=1, padding="SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, bias))
        h = tf.nn.max_pool2d(h, 2, 2, "SAME")
        h = tf.reshape(h, [-1, 12 * 12 * 16])
        h = tf.tanh(tf.matmul(h, w1))
        logits = tf.matmul(h, w2)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    gradients = tape.gradient(loss, variables)
    for v, g in zip(variables, gradients):
        v.assign_sub(0.1 * g)
    return [loss, tf.reduce_sum(x, axis=[0, 1, 2]), tf.reduce_sum(h)] + gradients

# Convolutions whose filters are cut by channels, and by channels and rows.
deep, deeper = tf.Variable(draw(3, 3, 512, 320)), tf.Variable(draw(3, 3, 320, 384))

@tf.function
def convolve(x):
    h = tf.nn.relu(tf.nn.conv2d(x, deep, strides=1, padding="SAME") * 2.0 + 0.25)
    return tf.nn.relu(tf.nn.conv2d(h, deeper, strides=2, padding="SAME") - 0.5)

digest = hashlib.sha256()
for size in (7, 14):
    digest.update(convolve(draw(2, size, size, 512)).numpy().tobytes())
for _ in range(3):
    for t in step(images, labels):
        digest.update(t.numpy().tobytes())
for v in variables:
    digest.update(v.numpy().tobytes())
print(digest.hexdigest())
"""


# Kernels on sizes that are cut into several pieces.
_KERNELS = """
import hashlib
import numpy as np
import headrace as tf

rng = np.random.default_rng(2)
def draw(*shape):
    return tf.constant(rng.normal(0, 1, shape).astype("f4"))

long, batch = draw(2, 65536), draw(100, 48, 60)
results = []
for x in (long, batch):
    z = tf.complex(x, x[..., ::-1])
    results += [tf.signal.fft(z), tf.signal.ifft(z), tf.signal.rfft(x)]
results += [tf.signal.fft2d(tf.complex(batch, batch)), tf.signal.irfft2d(
    tf.signal.rfft2d(batch), [48, 60])]
digest = hashlib.sha256()
for t in results:
    digest.update(t.numpy().tobytes())
print(digest.hexdigest())
"""


def _digest(threads, program=_PROGRAM):
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HEADRACE_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_training_step_by_threads():
    one = _digest(1)
    assert len(one) == 64
    assert _digest(1) == one
    assert _digest(2) == one
    assert _digest(4) == one


def test_kernels_by_threads():
    one = _digest(1, _KERNELS)
    assert len(one) == 64
    assert _digest(2, _KERNELS) == one
    assert _digest(4, _KERNELS) == one
