"""Weak tensors in the rest of a program: functions, loops, datasets, models, sessions."""

import tempfile

import numpy as np
import tensorflow as tf

n = tf.experimental.numpy
n.experimental_enable_numpy_behavior(dtype_conversion_mode="all")


@tf.function
def count(limit):
    i = tf.constant(0)
    while i < limit:
        i += 1
    return i


@tf.function
def chosen(x):
    if tf.reduce_sum(x) > 0:
        y = x * 2
    else:
        y = x - 1
    return y


class Doubling(tf.Module):
    @tf.function
    def __call__(self, x):
        return x * 2


print(count(tf.constant(3)), chosen(tf.constant([1.0, 2.0])))
print(chosen(tf.constant([-1.0, -2.0], tf.float64)))
print(chosen.experimental_get_tracing_count())

model = Doubling()
model(tf.constant([1.0, 2.0]))
folder = tempfile.mkdtemp()
tf.saved_model.save(model, folder)
loaded = tf.saved_model.load(folder)
print(loaded(tf.constant([3.0, 4.0])))
try:
    loaded(tf.constant([3.0, 4.0], tf.float32))
except ValueError as error:
    print(str(error).splitlines()[0])

elements = tf.data.Dataset.from_tensor_slices(tf.constant([1, 2, 3]))
print(elements.element_spec)
for batch in elements.map(lambda x: x * 2.5).batch(2):
    print(batch)
print(tf.map_fn(lambda x: x + 1, tf.constant([1, 2])))
print(
    tf.nest.map_structure(
        lambda x: x * 2, {"a": tf.constant(1), "b": [tf.constant(2.0)]}
    )
)

x = tf.constant([1.0, 2.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = x * x * tf.constant([2, 3])
print(tape.gradient(y, x), tape.jacobian(y, x))
with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as accumulator:
    y = x * x
print(accumulator.jvp(y))


@tf.custom_gradient
def cube(x):
    return x**3, lambda upstream: upstream * 3 * x**2


with tf.GradientTape() as tape:
    tape.watch(x)
    y = cube(x)
print(y, tape.gradient(y, x))

variable = tf.Variable([1.0, 2.0], dtype=tf.bfloat16)
variable.assign_add(tf.constant([1, 1]))
print(variable * 2, variable + tf.constant(0.5), variable * np.float32(2))
try:
    variable.assign(tf.constant([1.0, 2.0], tf.float32))
except TypeError as error:
    print(type(error).__name__)

net = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
net.compile("sgd", "mse")
history = net.fit(tf.constant([[1.0, 2.0]]), tf.constant([[1.0]]), verbose=0)
print(history.history["loss"], net.predict(tf.constant([[1.0, 1.0]]), verbose=0))

print(tf.ragged.constant([[1], [2, 3]]) + tf.constant(1))
print(tf.concat([tf.ragged.constant([[1.0], []]), tf.constant([[2.0]])], 0))

with tf.Graph().as_default():
    one = tf.constant(1)
    total = one + 1.5
    print(repr(one), repr(total))
    fed = tf.compat.v1.placeholder(tf.float32)
    with tf.compat.v1.Session() as session:
        print(session.run([one, total]), session.run(fed * total, {fed: 2.0}))
