"""TensorFlow 1's way: one-shot, initializable, reinitializable and feedable iterators."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
sess = tf.Session()
value = tf.data.Dataset.range(5).make_one_shot_iterator().get_next()
print([sess.run(value) for _ in range(5)])
try:
    sess.run(value)
except tf.errors.OutOfRangeError as error:
    print("End of sequence" in error.message)

max_value = tf.placeholder(tf.int64, shape=[])
iterator = (
    tf.data.Dataset.range(max_value).map(lambda x: x * x).make_initializable_iterator()
)
next_element = iterator.get_next()
for n in (3, 6):
    sess.run(iterator.initializer, feed_dict={max_value: n})
    print([int(sess.run(next_element)) for _ in range(n)])

tf.set_random_seed(4)
training = tf.data.Dataset.range(10).map(
    lambda x: x + tf.random_uniform([], -5, 5, tf.int64, seed=2)
)
validation = tf.data.Dataset.range(5)
iterator = tf.data.Iterator.from_structure(
    training.output_types, training.output_shapes
)
next_element = iterator.get_next()
training_init_op = iterator.make_initializer(training)
validation_init_op = iterator.make_initializer(validation, name="validation")
for _ in range(2):
    sess.run(training_init_op)
    print([int(sess.run(next_element)) for _ in range(10)])
    sess.run(validation_init_op)
    print([int(sess.run(next_element)) for _ in range(5)])

handle = tf.placeholder(tf.string, shape=[])
iterator = tf.data.Iterator.from_string_handle(
    handle, validation.output_types, validation.output_shapes
)
element = iterator.get_next()
one_shot = validation.repeat().make_one_shot_iterator()
reset = tf.data.Dataset.range(100, 103).make_initializable_iterator()
handles = sess.run([one_shot.string_handle(), reset.string_handle()])
for _ in range(2):
    print([sess.run(element, {handle: handles[0]}) for _ in range(7)])
    sess.run(reset.initializer)
    while True:
        try:
            print(sess.run(element, feed_dict={handle: handles[1]}), end=" ")
        except tf.errors.OutOfRangeError:
            print("end")
            break

features = np.arange(20, dtype="f4").reshape(10, 2)
x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [None])
dataset = tf.data.Dataset.from_tensor_slices({"x": x, "y": y})
dataset = dataset.shuffle(4, seed=9).repeat(2)
dataset = dataset.apply(
    tf.data.experimental.map_and_batch(lambda d: (d["x"], d["y"]), 4)
)
dataset = dataset.prefetch(1)
print(dataset.output_shapes, dataset.output_types, dataset.output_classes[0].__name__)
iterator = dataset.make_initializable_iterator()
batch_x, batch_y = iterator.get_next("batch")
w = tf.Variable([[1.0], [1.0]])
step = tf.assign_add(w, tf.matmul(batch_x, batch_x - 1, transpose_a=True)[:, :1] * 1e-3)
sess.run(tf.global_variables_initializer())
sess.run(iterator.initializer, {x: features, y: np.arange(10)})
count = 0
with tf.control_dependencies([step]):
    labels = tf.identity(batch_y)
while True:
    try:
        print(sess.run(labels))
        count += 1
    except tf.errors.OutOfRangeError:
        break
print(count, sess.run(w).ravel().round(3))


def generator():
    for i in range(3):
        yield {"i": i, "words": ["w%d" % j for j in range(i)]}


dataset = tf.data.Dataset.from_generator(
    generator,
    {"i": tf.int64, "words": tf.string},
    {"i": tf.TensorShape([]), "words": tf.TensorShape([None])},
)
dataset = dataset.padded_batch(
    3, {"i": [], "words": [None]}, {"i": tf.constant(0, tf.int64), "words": "-"}
)
print(sess.run(dataset.make_one_shot_iterator().get_next())["words"].tolist())
try:
    sess.run(tf.data.Dataset.range(max_value).make_one_shot_iterator().get_next())
except ValueError as error:
    print(type(error).__name__)
