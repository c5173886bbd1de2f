"""TensorFlow 1's way: gradients registered and overridden, py_func, clipped and stopped ones."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


@tf.RegisterGradient("GuidedRelu")
def _guided_relu(op, grad):
    return tf.where(
        grad > 0.0, tf.cast(op.outputs[0] > 0, grad.dtype) * grad, tf.zeros_like(grad)
    )


@tf.RegisterGradient("Flip")
def _flip(unused_op, grad):
    return tf.negative(grad) * 0.5


def flip_gradient(x):
    with tf.get_default_graph().gradient_override_map({"Identity": "Flip"}):
        return tf.identity(x)


def py_func(func, inp, Tout, name, grad):
    registered = "PyFuncGrad%s" % name
    tf.RegisterGradient(registered)(grad)
    with tf.get_default_graph().gradient_override_map({"PyFunc": registered}):
        return tf.py_func(func, inp, Tout, stateful=True, name=name)


def _cube(x):
    return x**3


def _cube_grad(op, grad):
    return grad * 3.0 * tf.square(op.inputs[0])


def binarize(x):
    with tf.get_default_graph().gradient_override_map({"Sign": "Identity"}):
        return tf.sign(x)


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.log(1 + e), grad


x = tf.placeholder(tf.float32, [None, 3], name="x")
w = tf.get_variable(
    "w", initializer=np.array([[0.5, -1.0], [1.0, 0.3], [-0.2, 0.8]], "f4")
)
h = tf.matmul(x, w)
with tf.get_default_graph().gradient_override_map({"Relu": "GuidedRelu"}):
    guided = tf.nn.relu(h, name="guided")
plain = tf.nn.relu(h, name="plain")
weights = tf.constant([[1.0, -1.0]])
cubed = py_func(_cube, [h], tf.float32, "Cube", _cube_grad)
cubed.set_shape(h.shape)
outputs = {
    "guided": tf.reduce_sum(guided * weights),
    "plain": tf.reduce_sum(plain * weights),
    "flip": tf.reduce_sum(flip_gradient(h) * weights),
    "cube": tf.reduce_sum(cubed),
    "sign": tf.reduce_sum(binarize(h) * weights),
    "log1pexp": tf.reduce_sum(log1pexp(100 * h)),
    "stopped": tf.reduce_sum(tf.stop_gradient(h) * h),
}
grads = {k: tf.gradients(v, [x, w]) for k, v in sorted(outputs.items())}
second = tf.gradients(tf.gradients(outputs["cube"], h)[0], h)[0]
print(guided.op.get_attr("_gradient_op_type"), cubed.op.type, cubed.shape)
feed = {x: [[1.0, 2.0, 3.0], [-1.0, 0.5, 0.2]]}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for name, (gx, gw) in sorted(grads.items()):
        a, b = sess.run([gx, gw], feed)
        print(name, a.round(3).tolist(), b.round(3).tolist())
    print(sess.run(second, feed).round(3).tolist())
    loss = outputs["cube"] + tf.reduce_sum(tf.square(w))
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    pairs = optimizer.compute_gradients(loss, gate_gradients=optimizer.GATE_OP)
    clips = {
        "value": [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs],
        "norm": [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs],
        "average": [(tf.clip_by_average_norm(g, 0.1), v) for g, v in pairs],
    }
    clipped, total = tf.clip_by_global_norm([g for g, _ in pairs], 2.0)
    for name, pair in clips.items():
        print(name, sess.run(pair[0][0], feed).round(4).tolist())
    print("%.4f" % sess.run(total, feed), sess.run(clipped[0], feed).round(3)[0])
    step = optimizer.apply_gradients(clips["norm"])
    for _ in range(3):
        _, value = sess.run([step, loss], feed)
        print("%.4f" % value)
    print(sess.run(w).round(4).tolist())
    print(tf.gradients(tf.argmax(h, 1), x), tf.gradients(h, tf.constant(1.0)))
    stray = tf.py_func(lambda a: a + 1, [h], tf.float32)
    print(tf.gradients(stray, x))
    try:
        sess.run(tf.py_func(lambda: 1, [], tf.float32))
    except Exception as error:
        print(type(error).__name__)
    checked = tf.check_numerics(tf.log(h), "negative")
    with tf.control_dependencies(
        [tf.assert_greater(h, -5.0), tf.Assert(tf.reduce_all(h < 1), [h])]
    ):
        fine = tf.identity(h)
    for bad in (checked, fine):
        try:
            sess.run(bad, feed)
        except tf.errors.InvalidArgumentError as error:
            print(error.message.splitlines()[0][:48])
