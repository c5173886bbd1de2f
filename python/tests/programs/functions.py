"""What tf.function traces, refuses and remembers."""

import numpy as np
import tensorflow as tf

count = []


@tf.function
def double(x):
    count.append(str(x.dtype if hasattr(x, "dtype") else x))
    return x * 2


for value in (
    tf.constant(1),
    tf.constant(2),
    tf.constant(1.5),
    3,
    3,
    4,
    np.float32(2),
    [1, 2],
):
    print(tf.convert_to_tensor(double(value)).numpy())
print(len(count), double.experimental_get_tracing_count())


@tf.function(
    input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.int32)]
)
def power(x, n):
    return x ** tf.cast(n, tf.float32)


print(power([[1, 2], [3, 4]], 2).numpy().tolist())
for bad in ((tf.ones([3]), 1), (tf.ones([1, 2]), 1.5), (tf.ones([1, 2]),), ("text", 1)):
    try:
        power(*bad)
    except TypeError as e:
        told = str(e)
        print(told[told.index("Binding inputs") :].split("`. Received")[0])
concrete = power.get_concrete_function()
print(concrete.structured_input_signature, concrete.output_shapes)


class Counter(tf.Module):
    def __init__(self):
        super().__init__(name="counter")
        self.total = None

    @tf.function
    def add(self, x):
        if self.total is None:
            self.total = tf.Variable(0.0, name="total")
        return self.total.assign_add(tf.reduce_sum(x))


counter = Counter()
print(
    counter.add(tf.ones(3)).numpy(),
    counter.add(tf.ones(2)).numpy(),
    [v.name for v in counter.variables],
)


@tf.function
def branches(x):
    sign = tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x)
    i, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, sign))
    return tf.switch_case(tf.shape(y)[0] - 1, [lambda: y, lambda: y + 1, lambda: y + 2])


print(branches(tf.constant([-1.0, -2.0])).numpy(), branches(tf.constant([5.0])).numpy())
try:
    tf.function(lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])))()
except ValueError as e:
    print("Dimensions must be equal, but are 3 and 2" in str(e))
try:
    tf.function(lambda x: [tf.debugging.assert_positive(x, message="not so"), x][1])(
        tf.constant(-1)
    )
except tf.errors.InvalidArgumentError as e:
    print("not so" in e.message)
many = tf.function(lambda x: {"a": [x, x + 1], "b": (x * 2, None)})
print(
    tf.nest.map_structure(lambda t: int(t), many(tf.constant(1))["a"]),
    many(tf.constant(1))["b"][1],
)
print(
    tf.vectorized_map(
        lambda r: tf.tensordot(r, r, 1), tf.constant([[1.0, 2], [3, 4]])
    ).numpy()
)
acc = tf.TensorArray(tf.float32, 0, dynamic_size=True)
print(acc.write(0, 1.0).write(1, 2.0).stack().numpy())
print(
    tf.py_function(lambda a: a.numpy() + 1, [3], tf.int32).numpy(),
    tf.numpy_function(np.cumsum, [np.arange(4)], tf.int64).numpy(),
)
