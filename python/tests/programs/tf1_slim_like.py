"""TensorFlow 1's way: an arg_scope in plain Python, scopes, collections, end points."""

import contextlib
import functools

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
_STACK = [{}]


@contextlib.contextmanager
def arg_scope(functions, **kwargs):
    scope = dict(_STACK[-1])
    for f in functions:
        scope[f.__name__] = {**scope.get(f.__name__, {}), **kwargs}
    _STACK.append(scope)
    yield scope
    _STACK.pop()


def add_arg_scope(func):
    @functools.wraps(func)
    def with_args(*args, **kwargs):
        return func(*args, **{**_STACK[-1].get(func.__name__, {}), **kwargs})

    return with_args


def variable(name, shape, initializer, regularizer=None, trainable=True):
    return tf.get_variable(
        name,
        shape,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=[tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES],
    )


def l2_regularizer(scale):
    def l2(weights):
        with tf.name_scope(None, "l2_regularizer", [weights]) as name:
            return tf.multiply(scale, tf.nn.l2_loss(weights), name=name)

    return l2


@add_arg_scope
def batch_norm(x, decay=0.9, is_training=True, scope=None):
    with tf.variable_scope(scope, "BatchNorm", [x]):
        size = x.shape.as_list()[-1:]
        beta = variable("beta", size, tf.zeros_initializer())
        mean = variable("moving_mean", size, tf.zeros_initializer(), trainable=False)
        var = variable("moving_variance", size, tf.ones_initializer(), trainable=False)
        if not is_training:
            return tf.nn.batch_normalization(x, mean, var, beta, None, 1e-3)
        m, v = tf.nn.moments(x, list(range(x.shape.ndims - 1)))
        for old, new in ((mean, m), (var, v)):
            update = old.assign_sub((old - new) * (1 - decay))
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        return tf.nn.batch_normalization(x, m, v, beta, None, 1e-3)


@add_arg_scope
def conv2d(
    x,
    num,
    size,
    stride=1,
    padding="SAME",
    activation_fn=tf.nn.relu,
    normalizer_fn=None,
    weights_regularizer=None,
    outputs_collections=None,
    scope=None,
    reuse=None,
):
    with tf.variable_scope(scope, "Conv", [x], reuse=reuse) as sc:
        shape = [size, size, x.shape.as_list()[-1], num]
        init = tf.truncated_normal_initializer(stddev=0.2, seed=1)
        w = variable("weights", shape, init, weights_regularizer)
        out = tf.nn.conv2d(x, w, [1, stride, stride, 1], padding)
        if normalizer_fn is not None:
            out = normalizer_fn(out)
        else:
            out = tf.nn.bias_add(out, variable("biases", [num], tf.zeros_initializer()))
        out = activation_fn(out) if activation_fn else out
        tf.add_to_collection(outputs_collections, (sc.original_name_scope, out))
        return out


def repeat(x, times, layer, *args, scope=None, **kwargs):
    with tf.variable_scope(scope, "Repeat", [x]):
        for i in range(times):
            x = layer(x, *args, scope="%s_%d" % (scope, i + 1), **kwargs)
        return x


def net(images, classes, is_training, reuse=None, scope="SmallNet"):
    with tf.variable_scope(scope, "SmallNet", [images], reuse=reuse) as sc:
        points = sc.original_name_scope + "_end_points"
        with arg_scope([conv2d], outputs_collections=points):
            x = conv2d(images, 4, 3, scope="conv1")
            x = repeat(x, 2, conv2d, 4, 3, scope="conv2")
            x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID", name="pool2")
            x = conv2d(x, 6, 3, stride=2)
            x = conv2d(x, 6, 1)
            x = tf.reduce_mean(x, [1, 2], keepdims=True, name="global_pool")
            logits = conv2d(
                x, classes, 1, activation_fn=None, normalizer_fn=None, scope="logits"
            )
        return tf.squeeze(logits, [1, 2], name="SpatialSqueeze"), tf.get_collection(
            points
        )


images = tf.placeholder(tf.float32, [None, 8, 8, 2], "images")
labels = tf.placeholder(tf.int32, [None], "labels")
with arg_scope(
    [conv2d], normalizer_fn=batch_norm, weights_regularizer=l2_regularizer(0.01)
):
    with arg_scope([batch_norm], is_training=True):
        logits, end_points = net(images, 3, True)
    with arg_scope([batch_norm], is_training=False):
        evaluated, _ = net(images, 3, False, reuse=True)
for name, point in end_points:
    print(name, point.op.name, point.shape)
print(
    [
        v.op.name
        for v in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES, "SmallNet/conv2")
    ]
)
print([x.name for x in tf.losses.get_regularization_losses()])
print(logits.name, evaluated.name, len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
tf.losses.sparse_softmax_cross_entropy(labels, logits)
total_loss = tf.losses.get_total_loss()
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    total_loss = tf.identity(total_loss, "train_loss")
train_op = tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True).minimize(total_loss)
draw = np.random.RandomState(0)
y = draw.randint(0, 3, 30)
x = draw.rand(30, 8, 8, 2) + y[:, None, None, None] * np.array([0.5, -0.5])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(16):
        _, value = sess.run([train_op, total_loss], {images: x, labels: y})
        if i % 5 == 0:
            print(i, "%.4f" % value)
    print(np.round(sess.run(evaluated, {images: x[:2]}), 3))
    print(sess.run("SmallNet/conv1/BatchNorm/moving_mean:0").round(4))
